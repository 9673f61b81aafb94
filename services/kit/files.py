"""Atomic writes, whatever happens to the process or the disk, and locks between processes."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces `path` when the context ends; a reader sees the old or the new one, never a part.

    A link stays and its target is replaced, an old file's mode is kept, and a pipe or a device is written to as it is.

    Raises:
        OSError: the disk failed; the old file stays, as with any other error inside.
    """
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by this content; see `whole`."""
    with whole(path) as file:
        file.write(content)


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold `path` as a lock between processes; the kernel frees it should we die.

    Waits until it is free, and calls `waiting` before it does so.
    """
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        # A child that outlives us, say pip after our kill, holds on to it until it has ended.
        os.set_inheritable(file.fileno(), True)
        yield
