"""Reading source files, plain, gzip or bzip2: lines with their places, rows of tables, suffixes and digests."""

import bz2
import csv
import gzip
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from services.kg.load.errors import LoadError

MAX_LINE_BYTES = 64 * 1024 * 1024
# The text of a line that is not UTF-8, or is too long.
UNREADABLE = "\ufffd"
_LFS = b"version https://git-lfs"


class _Commas(csv.excel):
    """Cells may be aligned by spaces behind the commas, quoted ones too."""

    skipinitialspace = True


class _Semicolons(_Commas):
    """Excel's, where numbers have a decimal comma: 12,5 and 1.250,75."""

    delimiter = ";"


TABULAR: Mapping[str, type[csv.Dialect]] = {".csv": _Commas, ".dict": _Commas, ".tsv": csv.excel_tab}
_DECIMAL_COMMA = re.compile(r"-?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file. `end` is where it ends in the file as stored, in bytes, for progress."""

    number: int
    text: str
    end: int


def suffix(path: Path) -> str:
    """The last suffix before that of a compression: .jsonl of kg.jsonl.bz2."""
    unpacked = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    return unpacked.suffix.lower()


def check(path: Path) -> None:
    """Check that the file can be read.

    Raises:
        LoadError: it is missing or unreadable, or a Git LFS pointer stands in its place.
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
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _chunks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Lines as bytes, in pieces where they are too long, each with its end in the file as stored."""
    with path.open("rb") as raw:
        unpack = _COMPRESSED.get(path.suffix.lower())
        file: IO[bytes] = unpack(raw, "rb") if unpack else raw
        while chunk := file.readline(MAX_LINE_BYTES + 1):
            yield chunk, raw.tell()


def lines(path: Path) -> Iterator[Line]:
    """Lines that are not blank, with their numbers from 1.

    Raises:
        LoadError: the compression is broken.
    """
    chunks = _chunks(path)
    try:
        for number, (chunk, end) in enumerate(chunks, 1):
            try:
                text = chunk.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError:
                text = UNREADABLE
            if len(chunk) > MAX_LINE_BYTES:
                text = UNREADABLE
                while not chunk.endswith(b"\n"):
                    chunk, end = next(chunks, (b"\n", end))
            if text:
                yield Line(number, text, end)
    except (OSError, EOFError) as error:
        raise LoadError(f"{path} is broken: {error}") from None


def records(path: Path) -> Iterator[tuple[Line, dict[str, str]]]:
    """Rows of a CSV or TSV file by their header, each with the line that it ends on and no text of its own.

    Raises:
        LoadError: the file has no header, or is no CSV.
    """
    end = 0

    def texts() -> Iterator[str]:
        nonlocal end
        encoding = "utf-8-sig"
        for chunk, place in _chunks(path):
            end = place
            yield chunk.decode(encoding, errors="replace")
            encoding = "utf-8"

    try:
        dialect, _ = _dialect(path)
        reader = csv.DictReader(texts(), dialect=dialect, restkey="", restval="")
        read = _with_decimal_point if dialect is _Semicolons else str
        for row in reader:
            yield Line(reader.line_num, "", end), {str(key).strip(): read(cell) for key, cell in row.items()}
    except (csv.Error, OSError, EOFError) as error:
        raise LoadError(f"{path} is no CSV: {error}") from None


def _dialect(path: Path) -> tuple[type[csv.Dialect], str]:
    """A file's dialect, that of semicolons if the first line has these and no comma, and its first line."""
    dialect, first = TABULAR[suffix(path)], next((line.text for line in lines(path)), "")
    return (_Semicolons if dialect is _Commas and ";" in first and "," not in first else dialect), first


def _with_decimal_point(cell: object) -> str:
    text = str(cell)
    return text.replace(".", "").replace(",", ".") if _DECIMAL_COMMA.fullmatch(text.strip()) else text


def header(path: Path) -> list[str]:
    """Column names of a CSV or TSV file; empty if its first line is no header."""
    dialect, first = _dialect(path)
    try:
        return [name.strip() for name in next(csv.reader([first], dialect=dialect), [])]
    except csv.Error:
        return []
