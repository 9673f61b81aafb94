"""Reading source files, plain, gzip or bzip2: lines with their places, rows of tables, suffixes and digests."""

import bz2
import csv
import gzip
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import IO, Any

from services.kg.load.errors import BadRow, LoadError
from services.kg.load.values import SIGN, UNIT

MAX_LINE_BYTES = 64 * 1024 * 1024
# A cell may be as long as a line; Python's own bound is 128 KiB.
csv.field_size_limit(MAX_LINE_BYTES)
# The text of a line that is not UTF-8, or is too long.
UNREADABLE = "\ufffd"
# Called with the line of a record that cannot be used, the reason and the record.
Bad = Callable[[int, BadRow, object], None]
_LFS = b"version https://git-lfs"


class _Commas(csv.excel):
    """Cells may be aligned by spaces behind the commas, quoted ones too."""

    skipinitialspace = True


class _Semicolons(_Commas):
    """Excel's, where numbers have a decimal comma: 12,5 and 1.250,75."""

    delimiter = ";"


TABULAR: Mapping[str, type[csv.Dialect]] = {".csv": _Commas, ".dict": _Commas, ".tsv": csv.excel_tab}
_DECIMAL_COMMA = re.compile(r"-?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
_THOUSANDS = re.compile(r"-?\d{1,3}(?:\.\d{3})+")
_AMOUNT = re.compile(rf"(?P<before>-?{SIGN}? ?)(?P<figure>-?\d[\d.,]*)(?P<behind> ?{UNIT}?)")
# What can be no thousands: 12.5, 1234.567.
_DECIMAL_POINT = re.compile(r"-?(?:\d+\.(?:\d{1,2}|\d{4,})|\d{4,}\.\d+)")
# Rows that tell how a file writes its numbers.
SAMPLE_ROWS = 2_000
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


def records(path: Path, bad: Bad | None = None) -> Iterator[tuple[Line, dict[str, str]]]:
    """Rows of a CSV or TSV file by their header, each with the line that it ends on and no text of its own.

    `bad` is called for a row that has more or fewer cells than the header, since they may be of other columns.

    Raises:
        LoadError: the file is no CSV, or no UTF-8; without `bad`, or has such a row.
    """
    dialect = _dialect(path)
    read = _with_decimal_point(path) if dialect is _Semicolons else str
    rows = _rows(path, dialect)
    names: list[str] | None = None
    for line, row in rows:
        if names is None:
            names = _names(row)
            continue
        # Spreadsheets end rows, the header too, with empty cells.
        if any(map(str.strip, row[len(names) :])) or any(names[len(row) :]):
            error = BadRow("", f"has {len(row)} cells where the header has {len(names)}")
            if bad is None:
                raise LoadError(f"{path}:{line.number} {error.reason}")
            bad(line.number, error, row)
            continue
        cells = dict.fromkeys(names, "")
        cells |= {name: read(cell) for name, cell in zip(names, row, strict=False)}
        yield line, cells


def header(path: Path) -> list[str]:
    """Column names of a CSV or TSV file; empty if it has no rows.

    Raises:
        LoadError: the file is no CSV, or no UTF-8.
    """
    return next((_names(row) for _, row in _rows(path, _dialect(path))), [])


def _rows(path: Path, dialect: type[csv.Dialect]) -> Iterator[tuple[Line, list[str]]]:
    """The rows that hold anything, the header first."""
    end = number = 0

    def texts() -> Iterator[str]:
        nonlocal end, number
        encoding = "utf-8-sig"
        for chunk, place in _chunks(path):
            end, number = place, number + 1
            yield chunk.decode(encoding)
            encoding = "utf-8"

    try:
        reader = csv.reader(texts(), dialect=dialect, strict=True)
        for row in reader:
            if any(map(str.strip, row)):
                yield Line(reader.line_num, "", end), row
    except UnicodeDecodeError:
        raise LoadError(f"{path} is no UTF-8 in line {number}: save it as UTF-8 (Excel: CSV UTF-8)") from None
    except (csv.Error, OSError, EOFError) as error:
        raise LoadError(f"{path} is no CSV: {error}") from None


def _names(row: Sequence[str]) -> list[str]:
    """The header's names in one line each, numbered where two columns have the same: price, price 2."""
    names: list[str] = []
    for cell in row:
        name = " ".join(cell.split())
        if name and name in names:
            name = next(one for one in (f"{name} {number}" for number in count(2)) if one not in names)
        names.append(name)
    return names


def _dialect(path: Path) -> type[csv.Dialect]:
    """A file's dialect, that of semicolons if the first line has these and no comma."""
    dialect, first = TABULAR[suffix(path)], next((line.text for line in lines(path)), "")
    return _Semicolons if dialect is _Commas and ";" in first and "," not in first else dialect


def _with_decimal_point(path: Path) -> Callable[[str], str]:
    """What reads the numbers of a file of semicolons: 1.250 are thousands where others have a decimal comma."""
    sample = [cell.strip() for _, row in islice(_rows(path, _Semicolons), SAMPLE_ROWS) for cell in row]
    amounts = [amount for cell in sample if (amount := _AMOUNT.fullmatch(cell))]
    has_commas = any(_DECIMAL_COMMA.fullmatch(amount["figure"]) for amount in amounts)
    # 8.30 Uhr is no number.
    figures = (amount["figure"] for amount in amounts if not amount["behind"].strip().isalpha())
    is_german = has_commas and not any(map(_DECIMAL_POINT.fullmatch, figures))

    def read(cell: str) -> str:
        amount = _AMOUNT.fullmatch(cell.strip())
        if amount is None:
            return cell
        before, figure, behind = amount.groups()
        if _DECIMAL_COMMA.fullmatch(figure) or (is_german and _THOUSANDS.fullmatch(figure)):
            figure = figure.replace(".", "").replace(",", ".")
        return f"{before}{figure}{behind}"

    return read
