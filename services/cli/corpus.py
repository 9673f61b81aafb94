"""Documents to index, from pages, Markdown, text, records and binary files, and the reasons why others are left out."""

import os
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b, file_digest, sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from proto.base import MAX_PAGE_CHARS
from proto.collections import MAX_FIELDS, MAX_FILE_BYTES, MEDIA_TYPES, Document, DocumentFormat, FieldName
from services.cli.questions import BadInput, read_text, too_large
from services.kit import extras, jsonl

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
FILES = {
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".epub": "application/epub+zip",
    ".eml": "message/rfc822",
}
PARQUET = ".parquet"
RECORDS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.bz2", ".ndjson.bz2")
# Rows of a Parquet file in one batch.
ROWS = 256
SCALARS = (str, int, float, bool)
# Values left out of records whose names are shown; the rest is counted.
NAMED = 3
MAX_FIELD_NAME = 63
MAX_ID = 200
_FIELD = TypeAdapter[str](FieldName)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a record for the parts of a document."""

    text: str = "text"
    title: str = "title"
    id: str = "id"
    url: str = "url"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that is sent as it is, and read by the retriever."""

    path: Path
    id: str
    url: str
    source: str
    media_type: str

    @property
    def digest(self) -> str:
        with self.path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of a corpus, or the reason why it is left out.

    Attributes:
        name: of the file, and the line for a record.
        nbytes: bytes of the corpus that were read for it.
        problem: why it is left out; empty when it is not.
        place: the id of a file or record that cannot be read.
        hides: whether documents may stand there whose ids cannot be read.
    """

    name: str
    nbytes: int
    document: Document | None = None
    problem: str = ""
    upload: Upload | None = None
    place: str = ""
    hides: bool = False

    @property
    def content(self) -> Upload | Document | None:
        return self.upload or self.document

    @property
    def id(self) -> str:
        return self.content.id if self.content else self.place

    @property
    def key(self) -> str:
        """Decides whose share it is: its id, or its content where it has none."""
        return self.id or (self.digest if self.document else self.name)

    @property
    def url(self) -> str:
        return self.content.url if self.content else ""

    @property
    def chars(self) -> int:
        """Characters of the text that is sent; 0 for a file, which is read by the retriever."""
        return len(self.document.text) if self.document else 0

    @property
    def format(self) -> str:
        if self.upload:
            return MEDIA_TYPES[self.upload.media_type]
        return self.document.format if self.document else ""

    @property
    def digest(self) -> str:
        """SHA-256 of what is sent, as the collection keeps it."""
        if self.upload:
            return self.upload.digest
        text = self.document.text if self.document else ""
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def copy_with(self, **values: str) -> "Entry":
        """The same entry with other values in its document, if it has one."""
        return replace(self, document=self.document.model_copy(update=values)) if self.document else self


def files_in(path: Path) -> list[Path]:
    """A file, or all files below a folder that are not hidden, by name, and the links there that lead to none.

    Raises:
        BadInput: there is none, or a folder cannot be read: its files would seem to be gone.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(f"{path}: no such file or folder")
    try:
        files = sorted(item for item in _below(path) if item.is_file() or item.is_symlink())
    except OSError as error:
        raise BadInput(f"{error.filename}: {error.strerror}") from None
    if not files:
        raise BadInput(f"{path}: holds no file")
    return files


def _below(path: Path) -> Iterator[Path]:
    """What lies below a folder and is not hidden: files, and links to folders elsewhere, which are not followed.

    Raises:
        OSError: a folder cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    walked: list[Path] = []
    links: list[Path] = []
    for folder, folders, names in os.walk(path, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder, name) for name in names if not name.startswith("."))
        walked.append(Path(folder))
        links += [link for name in folders if (link := Path(folder, name)).is_symlink()]
    if links:
        real = {folder.resolve() for folder in walked}
        yield from (link for link in links if link.resolve() not in real)


def read(files: Sequence[Path], root: Path, keys: Keys, source: str = "") -> Iterator[Entry]:
    """The documents of those files, one after the other.

    Args:
        root: names of documents are paths below it; a file's id is of where it lies, so that another folder's file of
            the same name is another document, and a later version of this one replaces it.
        source: the name of the corpus; where it lies, in a digest, when empty.
    """
    folder = (root if root.is_dir() else root.parent).resolve()
    source, folder = (source, Path(source)) if source else (source_of(folder), folder)
    for path in files:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) and path != root else path.name
        yield from read_one(path, name, folder / name, keys, source)


def read_one(path: Path, name: str, place: Path, keys: Keys, source: str) -> Iterator[Entry]:
    """The documents of a file, whose name, and the path that an id is a digest of, may be those of a copy."""
    if path.is_symlink() and not path.is_file():
        # Documents of a folder that lay here, or lies on a disk that is not mounted, are not gone.
        yield Entry(name, 0, problem="a link to a folder, or to nothing, is not followed", hides=True)
    elif path.name.lower().endswith(RECORDS):
        yield from _records(path, name, keys, source)
    elif path.suffix.lower() == PARQUET:
        yield from _rows(path, name, keys, source)
    else:
        yield _file(path, name, place, source)


def source_of(folder: Path) -> str:
    """The source of a folder's documents where the corpus has no name: a digest of its path."""
    return _digest(folder.resolve())


def _digest(path: Path) -> str:
    return blake2b(os.fsencode(path), digest_size=8).hexdigest()


@lru_cache(maxsize=4096)
def field_name(name: str) -> str:
    """A field's name for a record's key: the key where it is valid, else its words in lower case with `_` between.

    Empty where the key has no letter or digit that a name may have.
    """
    try:
        return _FIELD.validate_python(name)
    except ValidationError:
        ascii_letters = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
        words = re.sub("[^a-z0-9]+", "_", ascii_letters).strip("_")
        return (f"_{words}" if words[:1].isdecimal() else words)[:MAX_FIELD_NAME]


def _file(path: Path, name: str, place: Path, source: str) -> Entry:
    kind = FORMATS.get(path.suffix.lower())
    media_type = FILES.get(path.suffix.lower())
    # No address has a line feed.
    id = f"{_digest(place)}:{place.name}"[:MAX_ID].replace("\n", " ")
    if not _is_unicode(name):
        return Entry(name.encode("utf-8", "replace").decode(), 0, problem="its name is not in UTF-8", place=id)
    try:
        size = path.stat().st_size
        if media_type:
            if not 0 < size <= MAX_FILE_BYTES:
                problem = f"its {size:,} bytes are more than {MAX_FILE_BYTES:,}" if size else "it is empty"
                return Entry(name, size, problem=problem, place=id)
            return Entry(name, size, upload=Upload(path, id, f"file:{name}", source, media_type))
        if kind is None:
            endings = ", ".join(sorted({*FORMATS, *FILES, *RECORDS, PARQUET}))
            return Entry(name, size, problem=f"no kind of document that is known: {endings}")
        text = read_text(path, is_html=kind == "html")
    except OSError as error:
        return Entry(name, 0, problem=error.strerror or type(error).__name__, place=id)
    except BadInput as error:
        return Entry(name, size, problem=str(error), place=id)
    body = {"id": id, "url": f"file:{name}", "source": source, "text": text, "format": kind}
    return _checked(name, size, body)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _rows(path: Path, name: str, keys: Keys, source: str) -> Iterator[Entry]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        yield Entry(name, 0, problem=f"Parquet is read by pyarrow: {extras.command('ray')}", hides=True)
        return
    unnamed: Counter[str] = Counter()
    number = 0
    try:
        with parquet.ParquetFile(path) as opened:
            nbytes = path.stat().st_size // max(1, opened.metadata.num_rows)
            records = (record for batch in opened.iter_batches(ROWS) for record in batch.to_pylist())
            for number, record in enumerate(records, 1):
                yield _document(f"{name}:{number}", nbytes, record, keys, unnamed).copy_with(source=source)
    except (OSError, ArrowException) as error:
        yield Entry(f"{name}:{number + 1}", 0, problem=f"the rest cannot be read: {error}", hides=True)
    yield from _left_out(name, unnamed)


def _left_out(name: str, unnamed: Counter[str]) -> Iterator[Entry]:
    if unnamed:
        names = ", ".join(repr(key[:MAX_FIELD_NAME]) for key in sorted(unnamed)[:NAMED])
        more = f" and {len(unnamed) - NAMED:,} more" if len(unnamed) > NAMED else ""
        why = "whose name no field can have, or another value has"
        yield Entry(name, 0, problem=f"its documents lack {unnamed.total():,} values {why}: {names}{more}")


def _records(path: Path, name: str, keys: Keys, source: str) -> Iterator[Entry]:
    number = 0
    packed = path.suffix.lower() in (".gz", ".bz2")
    unnamed: Counter[str] = Counter()
    try:
        with path.open("rb") as raw, jsonl.open_bytes(path) as opened:
            # How much of a packed file is read is known only at its end.
            for number, line in jsonl.bounded_lines(opened, path):
                yield _record(f"{name}:{number}", 0 if packed else len(line), line, keys, unnamed).copy_with(
                    source=source
                )
            if packed:
                raw.seek(0, 2)
                yield Entry(name, raw.tell())
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        yield Entry(f"{name}:{number + 1}", 0, problem=f"the rest cannot be read: {reason}", hides=True)
    except jsonl.BadLine as error:
        yield Entry(f"{name}:{number + 1}", 0, problem=f"the rest is left out: {error}", hides=True)
    yield from _left_out(name, unnamed)


def _record(name: str, nbytes: int, line: bytes, keys: Keys, unnamed: Counter[str]) -> Entry:
    try:
        record = jsonl.object_of(line, name)
    except jsonl.BadLine as error:
        return Entry(name, nbytes, problem=error.problem, hides=True)
    return _document(name, nbytes, record, keys, unnamed)


def _document(name: str, nbytes: int, record: Mapping[str, Any], keys: Keys, unnamed: Counter[str]) -> Entry:
    text, id = record.get(keys.text), _text(record.get(keys.id))
    if not isinstance(text, str):
        return _bad(name, nbytes, f"has no text under {keys.text!r}", id)
    if len(text) > MAX_PAGE_CHARS:
        return _bad(name, nbytes, too_large(f"{len(text):,} characters"), id)
    reserved = {keys.text, keys.title, keys.id, keys.url, "format", "fields"}
    values = {key: value for key, value in record.items() if key not in reserved and isinstance(value, SCALARS)}
    if isinstance(record.get("fields"), dict):
        values |= record["fields"]
    fields, nameless = _fields(values)
    unnamed.update(nameless)
    body = {
        "id": id,
        "title": _text(record.get(keys.title)),
        "url": _text(record.get(keys.url)),
        "text": text,
        "format": record.get("format") or "text",
        "fields": fields,
    }
    if len(fields) > MAX_FIELDS:
        return _bad(name, nbytes, f"has {len(fields)} fields, more than {MAX_FIELDS}", id)
    return _checked(name, nbytes, body)


def _fields(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Fields by valid names, and the keys of values for which there is none."""
    names = {key: field_name(key) for key in values}
    fields = {key: values[key] for key, name in names.items() if key and name == key}
    nameless = []
    for key, name in names.items():
        if not name or (name != key and name in fields):
            nameless.append(key)
        else:
            fields[name] = values[key]
    return fields, nameless


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _checked(name: str, nbytes: int, body: dict[str, Any]) -> Entry:
    try:
        return Entry(name, nbytes, Document.model_validate(body))
    except ValidationError as error:
        first = error.errors()[0]
        return _bad(name, nbytes, f"{'.'.join(map(str, first['loc']))}: {first['msg']}", body["id"])


def _bad(name: str, nbytes: int, problem: str, id: str) -> Entry:
    """A record that is left out; what its document is called may be unknown."""
    return Entry(name, nbytes, problem=problem, place=id, hides=not id)
