"""The logs of the embedded mesh, as they are or as they grow."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from services.cli.console import plain, write

POLL_S = 0.3
TAIL_BYTES = 64 * 1024


def tail(path: Path, lines: int) -> tuple[str, ...]:
    """The last lines of a log; nothing when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except FileNotFoundError:
        return ()
    return tuple(text.splitlines()[-lines:]) if lines else ()


def show(files: Sequence[Path], lines: int) -> None:
    """Print the last lines of each log, named when there are several."""
    for file in files:
        for line in tail(file, lines):
            write(_named(file, line, files))


async def follow(files: Sequence[Path]) -> None:
    """Print what is added from now on, until cancelled; a log that starts anew is read from its start."""
    offsets = {file: _size(file) for file in files}
    while True:
        await asyncio.sleep(POLL_S)
        for file in files:
            size = _size(file)
            if size < offsets[file]:
                offsets[file] = 0
            if size > offsets[file]:
                offsets[file] += _print_from(file, offsets[file], files)


def _print_from(file: Path, offset: int, files: Sequence[Path]) -> int:
    with file.open("rb") as log:
        log.seek(offset)
        # A line still being written is printed once it is whole.
        content, newline, _ = log.read().rpartition(b"\n")
    for line in content.decode(errors="replace").splitlines() if newline else ():
        write(_named(file, line, files))
    return len(content) + len(newline)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _named(file: Path, line: str, files: Sequence[Path]) -> str:
    return plain(line) if len(files) == 1 else f"{file.stem} | {plain(line)}"
