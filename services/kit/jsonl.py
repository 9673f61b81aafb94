"""Files with a JSON object a line, plain or packed; whatever is wrong is named by file and line."""

import bz2
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

MAX_LINE_BYTES = 256 * 1024 * 1024
MIB = 1024 * 1024


class BadLine(ValueError):
    """A file or a line is unusable; the message begins with its place, `file:line` or the file."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.problem = problem


def open_bytes(path: Path) -> IO[bytes]:
    """An open file, unpacked when its name ends in `.gz` or `.bz2`."""
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    file: IO[bytes] = openers.get(path.suffix.lower(), open)(path, "rb")
    return file


def bounded_lines(file: IO[bytes], path: Path, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """The lines of an open file without blank ones, with their numbers from 1.

    Raises:
        BadLine: one is too long to be a record.
    """
    number = 0
    while line := file.readline(max_bytes + 1):
        number += 1
        if len(line) > max_bytes:
            raise BadLine(f"{path}:{number}", f"the line is longer than {max(1, max_bytes // MIB)} MiB")
        if line.strip():
            yield number, line


def lines(path: Path, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, as `bounded_lines` gives them.

    Raises:
        BadLine: the file cannot be read, or one of its lines is too long.
    """
    number = 0
    try:
        with open_bytes(path) as file:
            for number, line in bounded_lines(file, path, max_bytes=max_bytes):
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        place = f"{path}:{number + 1}" if number else str(path)
        raise BadLine(place, getattr(error, "strerror", None) or str(error)) from error


def object_of(line: bytes | str, place: str) -> dict[str, Any]:
    """The object that a line holds.

    Raises:
        BadLine: it holds something else.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(place, f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadLine(place, "not a JSON object")
    return record


def objects(path: Path, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, each with its place, `file:line`.

    Raises:
        BadLine: the file cannot be read, or a line of it is too long or no object.
    """
    for number, line in lines(path, max_bytes=max_bytes):
        place = f"{path}:{number}"
        yield place, object_of(line, place)
