"""Documents to index, from files as they lie about: pages, Markdown, text and records; what cannot be used is named."""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from proto.base import MAX_PAGE_CHARS
from proto.collections import MAX_FIELDS, Document, DocumentFormat
from services.cli.questions import MAX_PAGE_BYTES, BadInput, bounded_lines, decode, open_lines

FORMATS: dict[str, DocumentFormat] = {
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".rst": "text",
}
RECORDS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.bz2", ".ndjson.bz2")
SCALARS = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Keys:
    """Where a record has what a document has."""

    text: str = "text"
    title: str = "title"
    id: str = "id"
    url: str = "url"


@dataclass(frozen=True, slots=True)
class Read:
    """One document of a corpus, or why there is none.

    Attributes:
        name: of the file, and the line for a record.
        nbytes: of the corpus that were read for it.
        problem: why it is left out; empty when it is not.
    """

    name: str
    nbytes: int
    document: Document | None = None
    problem: str = ""


def files_in(path: Path) -> list[Path]:
    """A file, or all files below a folder that are not hidden, by name.

    Raises:
        BadInput: there is nothing.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(f"{path}: no such file or folder")
    found = [
        item
        for item in sorted(path.rglob("*"))
        if item.is_file() and not any(part.startswith(".") for part in item.relative_to(path).parts)
    ]
    if not found:
        raise BadInput(f"{path}: holds no file")
    return found


def read(files: Sequence[Path], root: Path, keys: Keys) -> Iterator[Read]:
    """The documents of those files, one after the other.

    Args:
        root: names of documents are paths below it.
        keys: of records.
    """
    for path in files:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) and path != root else path.name
        if path.name.lower().endswith(RECORDS):
            yield from _records(path, name, keys)
        else:
            yield _file(path, name)


def _file(path: Path, name: str) -> Read:
    kind = FORMATS.get(path.suffix.lower())
    try:
        size = path.stat().st_size
        if kind is None:
            endings = ", ".join(sorted({*FORMATS, *RECORDS}))
            return Read(name, size, problem=f"no kind of document that is known: {endings}")
        if size > MAX_PAGE_BYTES:
            return Read(name, size, problem=_too_large(size))
        text = decode(path.read_bytes(), path)
    except OSError as error:
        return Read(name, 0, problem=error.strerror or type(error).__name__)
    except BadInput:
        return Read(name, size, problem="no text")
    if len(text) > MAX_PAGE_CHARS:
        return Read(name, size, problem=_too_large(len(text)))
    return _checked(name, size, {"id": name[-200:], "url": f"file:{name}", "text": text, "format": kind})


def _records(path: Path, name: str, keys: Keys) -> Iterator[Read]:
    number = 0
    packed = path.suffix.lower() in (".gz", ".bz2")
    try:
        with path.open("rb") as raw, open_lines(path) as lines:
            # Of a packed file the share that is read is known at its end alone.
            for number, line in enumerate(bounded_lines(lines, path), 1):
                if line.strip():
                    yield _record(f"{name}:{number}", 0 if packed else len(line), line, keys)
            if packed:
                raw.seek(0, 2)
                yield Read(name, raw.tell())
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        yield Read(f"{name}:{number + 1}", 0, problem=f"the rest cannot be read: {reason}")
    except BadInput as error:
        yield Read(f"{name}:{number + 1}", 0, problem=f"the rest is left out: {error}")


def _record(name: str, nbytes: int, line: bytes, keys: Keys) -> Read:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return Read(name, nbytes, problem="not JSON")
    if not isinstance(record, dict):
        return Read(name, nbytes, problem="not a JSON object")
    text = record.get(keys.text)
    if not isinstance(text, str):
        return Read(name, nbytes, problem=f"has no text under {keys.text!r}")
    if len(text) > MAX_PAGE_CHARS:
        return Read(name, nbytes, problem=_too_large(len(text)))
    taken = {keys.text, keys.title, keys.id, keys.url, "format", "fields"}
    fields = {key: value for key, value in record.items() if key not in taken and isinstance(value, SCALARS)}
    if isinstance(record.get("fields"), dict):
        fields |= record["fields"]
    body = {
        "id": str(record.get(keys.id) or ""),
        "title": str(record.get(keys.title) or ""),
        "url": str(record.get(keys.url) or ""),
        "text": text,
        "format": record.get("format") or "text",
        "fields": fields,
    }
    if len(fields) > MAX_FIELDS:
        return Read(name, nbytes, problem=f"has {len(fields)} fields, more than {MAX_FIELDS}")
    return _checked(name, nbytes, body)


def _checked(name: str, nbytes: int, body: dict[str, Any]) -> Read:
    try:
        return Read(name, nbytes, Document.model_validate(body))
    except ValidationError as error:
        first = error.errors()[0]
        return Read(name, nbytes, problem=f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _too_large(size: int) -> str:
    return f"its {size:,} characters are more than the {MAX_PAGE_CHARS:,} that a document may have"
