"""Atomic writes: a file is replaced whole or stays as it was, whatever happens to the process or the disk."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces `path` when the context ends; a reader sees the old or the new one, never a part.

    Raises:
        OSError: the disk failed; the old file stays, as with any other error inside.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by this content; see `whole`."""
    with whole(path) as file:
        file.write(content)
