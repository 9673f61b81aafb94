"""Reading source files: lines of plain, gzip and bzip2 text with their place, digests, and what kind of file it is."""

import bz2
import csv
import gzip
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from services.kg.load.errors import BadRow, LoadError

MAX_LINE_BYTES = 64 * 1024 * 1024
READ_BYTES = 1024 * 1024
_UNREADABLE = "\ufffd"
_LFS = b"version https://git-lfs"


class _Commas(csv.excel):
    """Also with the cells in columns, as people align them: what follows a comma and spaces may be quoted."""

    skipinitialspace = True


class _Semicolons(_Commas):
    """What Excel writes where numbers have a decimal comma, 12,5 and 1.250,75."""

    delimiter = ";"


# Tables by the endings of their names.
TABULAR: Mapping[str, type[csv.Dialect]] = {".csv": _Commas, ".dict": _Commas, ".tsv": csv.excel_tab}
_DECIMAL_COMMA = re.compile(r"-?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")


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
        if self.text == _UNREADABLE:
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
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(raw: IO[bytes], path: Path) -> IO[bytes]:
    opener = _COMPRESSED.get(path.suffix.lower())
    return cast(IO[bytes], opener(raw, "rb")) if opener else raw


def lines(path: Path) -> Iterator[Line]:
    """Lines that are not blank, with their numbers from 1.

    Raises:
        LoadError: the compression is broken.
    """
    with path.open("rb") as raw:
        file = _opened(raw, path)
        number = 0
        try:
            while chunk := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                try:
                    plain = chunk.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError:
                    plain = _UNREADABLE
                if len(chunk) > MAX_LINE_BYTES:
                    plain = _UNREADABLE
                    while chunk and not chunk.endswith(b"\n"):
                        chunk = file.readline(READ_BYTES)
                if plain:
                    yield Line(number, plain, raw.tell())
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
        with path.open("rb") as raw:
            file = _opened(raw, path)
            encoding = "utf-8-sig"
            while chunk := file.readline(MAX_LINE_BYTES):
                end = raw.tell()
                yield chunk.decode(encoding, errors="replace")
                encoding = "utf-8"

    try:
        dialect = _dialect(path, next((line.text for line in lines(path)), ""))
        reader = csv.DictReader(texts(), dialect=dialect, restkey="", restval="")
        cell = _pointed if dialect is _Semicolons else str
        for row in reader:
            yield Line(reader.line_num, "", end), {str(key).strip(): cell(value) for key, value in row.items()}
    except (csv.Error, OSError, EOFError) as error:
        raise LoadError(f"{path} is no CSV: {error}") from None


def _dialect(path: Path, first: str) -> type[csv.Dialect]:
    """How the file parts its cells: as its ending says; by semicolons where its first line has these and no comma."""
    known = TABULAR[suffix(path)]
    return _Semicolons if known is _Commas and ";" in first and "," not in first else known


def _pointed(cell: object) -> str:
    """A cell with its decimal comma as a point."""
    text = str(cell)
    return text.replace(".", "").replace(",", ".") if _DECIMAL_COMMA.fullmatch(text.strip()) else text


def header(path: Path) -> list[str]:
    """Column names of a CSV or TSV file, empty if the first line is none."""
    for line in lines(path):
        try:
            return [one.strip() for one in next(csv.reader([line.text], dialect=_dialect(path, line.text)), [])]
        except csv.Error:
            return []
    return []
