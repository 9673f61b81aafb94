"""Documents to passages: their versions, and the work of a page worker."""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b, sha256
from pathlib import PurePosixPath
from typing import Any

from markdown_it import MarkdownIt

from proto.base import MAX_PASSAGE_CHARS
from proto.collections import Document, FieldValue, FileFormat
from proto.retrieve import ChunkerName
from services.kit.text.cutting import window_chars
from services.retriever.chunk import Chunk
from services.retriever.collections.keys import CONTENT, DOCUMENT, FIELDS, FORMAT, NAMED, SOURCE, TITLE, URL
from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats import READERS, read
from services.retriever.formats.base import MAX_CHARS, Unreadable, read_html
from services.retriever.markup import clean_line, clean_text, encodable
from services.retriever.pages import PageOptions, ProcessedPage, chunk_page

# The beginning of a file's address.
FILE_URL = "file:"
CHUNKER: ChunkerName = "paragraphs"
# Characters of a chunk; of English the encoders read 1,000, and vectors of longer texts are less precise.
CHUNK_CHARS = 600
# Of one document; more would be hours of an embedded encoder.
MAX_PASSAGES = 50_000

# A text file has no NUL, and few replacement signs and control characters.
_SAMPLE_CHARS = 65_536
_MAX_UNREADABLE = 0.05
_NAMESPACE = uuid.UUID("7f0c2f0e-0a57-5d38-9d1c-6a2f6b1f6c11")


@dataclass(frozen=True, slots=True)
class File:
    """A document as received: a text, or a file's bytes."""

    content: str | bytes = field(repr=False)
    format: FileFormat = "text"
    id: str = ""
    title: str = ""
    url: str = ""
    source: str = ""
    fields: Mapping[str, FieldValue] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Document) -> "File":
        values = {name: getattr(document, name) for name in ("format", "id", "title", "url", "source", "fields")}
        return cls(document.text, **values)

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return sha256(self.data).hexdigest()

    @property
    def data(self) -> bytes:
        """The content as bytes."""
        return self.content if isinstance(self.content, bytes) else self.content.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Version:
    """A document's version: what is stored of it beside its passages.

    Attributes:
        id: the caller's, or a hash of all the others.
        title: the caller's; may be empty.
        content: SHA-256 of the content.
    """

    id: str
    title: str
    url: str
    content: str
    format: str
    fields: Mapping[str, FieldValue]
    source: str

    @classmethod
    def of(cls, file: File) -> "Version":
        """The file's version; the same in every process and for every order of its fields."""
        version = cls(file.id, file.title, file.url, file.digest, file.format, file.fields, file.source)
        return version if file.id else replace(version, id=version.digest)

    @classmethod
    def of_payload(cls, payload: Mapping[str, Any]) -> "Version":
        """The version in the payload of a document's first point."""
        return cls(*(payload.get(key, "") for key in (DOCUMENT, NAMED, URL, CONTENT, FORMAT, FIELDS, SOURCE)))

    @cached_property
    def digest(self) -> str:
        """Of all of it; each version under an id has its own."""
        fields = dict(sorted(self.fields.items()))
        values = (self.id, self.title, self.url, self.content, self.format, fields, self.source)
        return blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()

    def point(self, chunk: int) -> str:
        return point_id(self.id, self.digest, chunk)


@dataclass(frozen=True, slots=True)
class Passages:
    """A document's passages.

    Attributes:
        title: the caller's, or the document's own.
        chunks: in the order of the text, tables last of their page; empty when the document holds no text.
        pages: their number, or 0 where it has none.
        problem: why it cannot be indexed; empty when it can.
    """

    title: str
    chunks: tuple[Chunk, ...]
    problem: str = ""
    pages: int = 0


def title_of(payload: Mapping[str, Any]) -> str:
    """The title to show of a document by the payload of any of its points: its own, else its file's name."""
    title, url = str(payload.get(TITLE, "")), str(payload.get(URL, ""))
    if title or not url.startswith(FILE_URL):
        return title
    return PurePosixPath(url.removeprefix(FILE_URL)).name


def point_id(document: str, digest: str, chunk: int) -> str:
    """UUIDv5 of a point.

    The first chunk's depends on the document's id alone, so that any version of it is found without a search; the
    others' depend on the version's digest and their number.
    """
    return str(uuid.uuid5(_NAMESPACE, f"document {document}" if chunk == 0 else f"{digest} {chunk}"))


def is_binary(text: str) -> bool:
    """Whether a text is a picture, an archive, a PDF or the like, decoded as text."""
    sample = text[:_SAMPLE_CHARS]
    if "\x00" in sample:
        return True
    unreadable = sum(
        character == "\ufffd" or (character < " " and character not in "\t\n\r\f\v\x1b") for character in sample
    )
    return unreadable > _MAX_UNREADABLE * len(sample)


def passages(content: str | bytes, kind: FileFormat, title: str, chunker: str) -> Passages:
    """A document's passages; to be run in a process that may be killed.

    Args:
        chunker: of `CHUNKERS`; empty for one passage that holds it all.

    Raises:
        ExtractionError: the document defeated the extractor.
    """
    try:
        name, pages = _pages(content, kind, title, chunker or CHUNKER)
    except Unreadable as error:
        return Passages(title, (), str(error))
    if unread := [what for _, page in pages for what in page.unread]:
        # Half a document would be searched as if it were all of it.
        return Passages(name, (), f"it is too large: it would be {unread[0]}")
    last = max((number for number, _ in pages), default=0)
    if not chunker:
        whole = "\n\n".join(filter(None, (text for _, page in pages for text in (page.text, page.tables_markdown))))
        if len(whole) > MAX_PASSAGE_CHARS:
            return Passages(name, (), f"its {len(whole):,} characters need a collection with `chunked`")
        return Passages(name, (Chunk(whole, 0, len(whole)),) if whole else (), pages=last)
    chunks = tuple(_chunks(pages))
    if len(chunks) > MAX_PASSAGES:
        return Passages(name, (), f"it is cut into {len(chunks):,} passages, more than {MAX_PASSAGES:,}")
    return Passages(name, chunks, pages=last)


def _pages(
    content: str | bytes, kind: FileFormat, title: str, chunker: str
) -> tuple[str, list[tuple[int, ProcessedPage]]]:
    """The document's name, and its parts with their page numbers."""
    if kind in READERS:
        file = read(content if isinstance(content, bytes) else content.encode(), kind, title)
        return title or file.title, [(section.page, _chunk(section, chunker)) for section in file.sections]
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    page = _chunk(_extraction(text, kind, title), chunker)
    return title or page.title or (_heading(text) if kind == "markdown" else ""), [(0, page)]


def _chunk(page: Extraction, chunker: str) -> ProcessedPage:
    options = PageOptions(chunker=chunker, parent_chars=window_chars(page.text, CHUNK_CHARS), max_chars=MAX_CHARS)
    return chunk_page(page, options)


def _chunks(pages: list[tuple[int, ProcessedPage]]) -> Iterator[Chunk]:
    """The passages: parents of prose, and pieces of tables that an encoder can read whole.

    Offsets are counted through all parts of the document, texts and tables apart.
    """
    text_start = tables_start = 0
    for number, page in pages:
        children, parents = page.chunking
        prose = (parent for parent in parents if parent.kind == "text")
        for chunk in (*prose, *(child for child in children if child.kind == "table")):
            start = text_start if chunk.kind == "text" else tables_start
            yield chunk._replace(start=chunk.start + start, end=chunk.end + start, page=number)
        text_start += len(page.text) + bool(page.text)
        tables_start += len(page.tables_markdown) + bool(page.tables_markdown)


def _extraction(text: str, kind: FileFormat, title: str) -> Extraction:
    if kind == "text":
        return Extraction(clean_text(encodable(text)), title=clean_line(encodable(title), MAX_TITLE_CHARS))
    if kind == "markdown":
        text = f"<html><body><main><article>{_markdown().render(encodable(text))}</article></main></body></html>"
    return read_html(text, title, is_page=kind == "html")


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _heading(text: str) -> str:
    first = next((line for line in text[:_SAMPLE_CHARS].splitlines() if line.startswith("# ")), "")
    return clean_line(encodable(first.strip("# ")), MAX_TITLE_CHARS)
