"""Reading source files: lines of plain, gzip and bzip2 text with their place, digests, and what kind of file it is."""

import bz2
import csv
import gzip
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from services.kg.load.errors import BadRow, LoadError

MAX_LINE_BYTES = 64 * 1024 * 1024
READ_BYTES = 1024 * 1024
_LFS = b"version https://git-lfs"
_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file. `end` is where reading stood in the file, in bytes as stored, for progress."""

    number: int
    text: str
    end: int

    def checked(self) -> str:
        """The text.

        Raises:
            BadRow: it is no UTF-8, or too long.
        """
        if "\ufffd" in self.text and len(self.text) == 1:
            raise BadRow("", "is no UTF-8, or longer than 64 MiB")
        return self.text


def suffix(path: Path) -> str:
    """The last suffix but that of a compression: .jsonl of kg.jsonl.bz2."""
    plain = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    return plain.suffix.lower()


def check(path: Path) -> None:
    """Refuse what is not the file itself.

    Raises:
        LoadError: it is missing, empty, or a Git LFS pointer to it.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_LFS))
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from None
    if head == _LFS:
        raise LoadError(f"{path} is a Git LFS pointer, not the file: run `git lfs pull` where it comes from")


def digest(path: Path) -> str:
    """SHA-256 of the bytes."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(READ_BYTES):
            total.update(chunk)
    return total.hexdigest()


def lines(path: Path) -> Iterator[Line]:
    """Lines that are not blank, with their numbers from 1.

    Raises:
        LoadError: the compression is broken.
    """
    with path.open("rb") as raw:
        opener = _COMPRESSED.get(path.suffix.lower())
        file: IO[bytes] = opener(raw, "rb") if opener else raw
        number = 0
        try:
            while chunk := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(chunk) > MAX_LINE_BYTES:
                    while chunk and not chunk.endswith(b"\n"):
                        chunk = file.readline(READ_BYTES)
                    yield Line(number, "\ufffd", raw.tell())
                    continue
                try:
                    plain = chunk.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError:
                    yield Line(number, "\ufffd", raw.tell())
                    continue
                if plain:
                    yield Line(number, plain, raw.tell())
        except (OSError, EOFError) as error:
            raise LoadError(f"{path} is broken: {error}") from None


def records(path: Path, dialect: type[csv.Dialect] = csv.excel) -> Iterator[tuple[Line, dict[str, str]]]:
    """Rows of a CSV file by their header, each with the line that it ends on and no text of its own.

    Raises:
        LoadError: the file has no header, or is no CSV.
    """
    ends = {"end": 0}

    def texts() -> Iterator[str]:
        with path.open("rb") as raw:
            opener = _COMPRESSED.get(path.suffix.lower())
            file: IO[bytes] = opener(raw, "rb") if opener else raw
            first = True
            while chunk := file.readline(MAX_LINE_BYTES):
                ends["end"] = raw.tell()
                yield chunk.decode("utf-8-sig" if first else "utf-8", errors="replace")
                first = False

    reader = csv.DictReader(texts(), dialect=dialect, restkey="", restval="")
    try:
        for row in reader:
            yield Line(reader.line_num, "", ends["end"]), {str(key): str(value) for key, value in row.items()}
    except (csv.Error, OSError, EOFError) as error:
        raise LoadError(f"{path} is no CSV: {error}") from None


def header(path: Path, delimiter: str = ",") -> list[str]:
    """Column names of a CSV file, empty if the first line is none."""
    for line in lines(path):
        try:
            return next(csv.reader([line.text], delimiter=delimiter), [])
        except csv.Error:
            return []
    return []
