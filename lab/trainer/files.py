"""Files and folders that are whole or absent, whatever happens to the process or the disk."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.trainer.errors import BadTarget, WriteFailed
from services.kit.files import write_whole


def write(path: Path, content: bytes) -> None:
    """Replace a file; a reader sees the old or the new one, never a part.

    Raises:
        WriteFailed: the disk took no more; the old file stays.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        _sync_folder(path.parent)


def check_target(folder: Path, run: Path, *, marker: str, written: str, lack: str) -> None:
    """Refuse to replace a folder of another kind.

    Args:
        run: the run's own folder, whose checkpoints must outlive the writing.
        marker: the file that such a folder has.
        written: what is written, and `lack` what a folder without the marker does, in words.

    Raises:
        BadTarget: the folder has no such file, or the run lies in it.
    """
    target = folder.resolve()
    if run.resolve().is_relative_to(target):
        raise BadTarget(
            f"{folder} would be replaced whole, and {run} lies in it: name another folder for the {written}"
        )
    if target.exists() and not (target / marker).is_file():
        raise BadTarget(f"{folder} would be replaced whole, and {lack}: there is no {marker} in it")


def write_folder(path: Path, files: dict[str, bytes]) -> None:
    """Make a folder of these files, or replace one; a reader never sees a part of it.

    The old one is put aside while the new one takes its name: a kill then leaves both whole beside `path`, and the next
    try puts the old one back.

    Raises:
        WriteFailed: the disk took no more; what was there stays.
    """
    # A link to a folder stays one.
    path = path.resolve()
    # The new folder is one level deeper than `path`: no search through the folders beside `path` meets it.
    staging = path.with_name(f".{path.name}.partial")
    new, old = staging / "new", staging / "old"
    with naming(path, lambda: _undo(path, staging)):
        _undo(path, staging)
        new.mkdir(parents=True)
        for name, content in files.items():
            write_whole(new / name, content)
        _sync_folder(new)
        if path.exists():
            path.rename(old)
        new.rename(path)
        _sync_folder(path.parent)
    shutil.rmtree(staging, ignore_errors=True)


def _undo(path: Path, staging: Path) -> None:
    """Leave things as before a replacement that was cut short."""
    old = staging / "old"
    if old.exists() and not path.exists():
        old.rename(path)
    shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def naming(path: Path, clean_up: Callable[[], object] = lambda: None) -> Iterator[None]:
    """An error of the disk becomes `WriteFailed` with the path in it, after `clean_up`."""
    try:
        yield
    except OSError as error:
        # The first error is the one to report.
        with contextlib.suppress(OSError):
            clean_up()
        raise WriteFailed(f"{path}: {error.strerror or error}") from error


def _sync_folder(path: Path) -> None:
    """A rename is on the disk only when the folder is."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
