"""The logs of the embedded mesh, as they are or as they grow."""

import asyncio
import itertools
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from services.cli.console import plain, write

POLL_S = 0.3
# A log is read from so far before its end for each line that is wanted: a line of a trace is longer than others.
LINE_BYTES = 4_096


def tail(path: Path, lines: int) -> tuple[str, ...]:
    """The last lines of a log; nothing when there is none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as log:
            start = max(0, log.seek(0, os.SEEK_END) - lines * LINE_BYTES)
            log.seek(start)
            # The first one is cut.
            last = deque(log if not start else itertools.islice(log, 1, None), maxlen=lines)
            return tuple(line.decode(errors="replace").rstrip("\r\n") for line in last)
    except FileNotFoundError:
        return ()


def show(files: Sequence[Path], lines: int) -> None:
    """Print the last lines of each log, named when there are several."""
    for file in files:
        for line in tail(file, lines):
            write(_named(file, line, files))


async def follow(files: Sequence[Path]) -> None:
    """Print what is added from now on, until cancelled; a log that starts anew is read from its start."""
    seen = {file: _state(file) for file in files}
    while True:
        await asyncio.sleep(POLL_S)
        for file in files:
            (inode, size), (earlier, offset) = _state(file), seen[file]
            if inode != earlier or size < offset:
                offset = 0
            if size > offset:
                offset += _print_from(file, offset, files)
            seen[file] = inode, offset


def _print_from(file: Path, offset: int, files: Sequence[Path]) -> int:
    with file.open("rb") as log:
        log.seek(offset)
        # A line still being written is printed once it is whole.
        content, newline, _ = log.read().rpartition(b"\n")
    for line in content.decode(errors="replace").splitlines() if newline else ():
        write(_named(file, line, files))
    return len(content) + len(newline)


def _state(file: Path) -> tuple[int, int]:
    """Which file has the name now, and its bytes."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_size


def _named(file: Path, line: str, files: Sequence[Path]) -> str:
    return plain(line) if len(files) == 1 else f"{file.stem} | {plain(line)}"
