"""Documents to passages: what identifies a document, what is no text, and the work of a page worker."""

import html
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from markdown_it import MarkdownIt

from proto.base import MAX_PASSAGE_CHARS
from proto.collections import Document, DocumentFormat, FieldValue
from services.retriever.chunk import Chunk
from services.retriever.extract import MAX_TITLE_CHARS
from services.retriever.markup import clean_line, encodable
from services.retriever.pages import PageOptions, process_page

CHUNKER = "passages"
# Characters of a chunk; the encoders read 1,000 and say less precisely what a longer text is about.
CHUNK_CHARS = 600
OPTIONS = PageOptions(chunker=CHUNKER, parent_chars=CHUNK_CHARS)

# A text file has no NUL, and few of what a decoder writes for bytes that are no text.
_SAMPLE_CHARS = 65_536
_MAX_UNREADABLE = 0.05
_NAMESPACE = uuid.UUID("7f0c2f0e-0a57-5d38-9d1c-6a2f6b1f6c11")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a document is known by.

    Attributes:
        id: the caller's name for it, or its content's hash.
        digest: of all that is stored of it; another digest under the same id is another version.
    """

    id: str
    digest: str

    def point(self, chunk: int) -> str:
        return point_id(self.id, self.digest, chunk)


@dataclass(frozen=True, slots=True)
class Passages:
    """A document as it is indexed.

    Attributes:
        title: the document's own where the caller gave none.
        chunks: in the order of the text, tables last; empty when the document holds no text.
        problem: why it cannot be indexed; empty when it can.
    """

    title: str
    chunks: tuple[Chunk, ...]
    problem: str = ""


def identify(document: Document) -> Identity:
    """The document's identity; the same in every process and for every order of its fields."""
    content = [document.title, document.url, document.text, document.format, _sorted(document.fields)]
    name = document.id or _digest(content)
    return Identity(name, _digest([name, *content]))


def point_id(document: str, digest: str, chunk: int) -> str:
    """UUIDv5 of a point.

    The first chunk's depends on the document's id alone, so that any version of it is found without a search; the
    others' on the version's digest and their number.
    """
    return str(uuid.uuid5(_NAMESPACE, f"document {document}" if chunk == 0 else f"{digest} {chunk}"))


def is_binary(text: str) -> bool:
    """Whether a text is what comes of reading a picture, an archive or a PDF as one."""
    sample = text[:_SAMPLE_CHARS]
    if "\x00" in sample:
        return True
    unreadable = sum(
        character == "\ufffd" or (character < " " and character not in "\t\n\r\f\v\x1b") for character in sample
    )
    return unreadable > _MAX_UNREADABLE * len(sample)


def passages(text: str, kind: DocumentFormat, title: str, chunked: bool) -> Passages:
    """A document's passages; to be run in a process that may be killed.

    Raises:
        ExtractionError: the document defeated the extractor.
    """
    page = process_page(_markup(text, kind), OPTIONS, title)
    name = title or page.title or (_heading(text) if kind == "markdown" else "")
    if not chunked:
        whole = "\n\n".join(filter(None, (page.text, page.tables_markdown)))
        if len(whole) > MAX_PASSAGE_CHARS:
            return Passages(name, (), f"its {len(whole):,} characters need a collection with `chunked`")
        return Passages(name, (Chunk(whole, 0, len(whole)),) if whole else ())
    chunking = page.chunking()
    # What answers are read from: parents of prose, and of tables the pieces that an encoder can read whole.
    prose = (parent for parent in chunking.parents if parent.kind == "text")
    return Passages(name, (*prose, *(child for child in chunking.children if child.kind == "table")))


def _markup(text: str, kind: DocumentFormat) -> str:
    if kind == "html":
        return text
    if kind == "markdown":
        return f"<html><body><main><article>{_markdown().render(encodable(text))}</article></main></body></html>"
    # Escaped, it has no tags for the extractor to see, which then takes it as the text that it is.
    return html.escape(text, quote=False)


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _heading(text: str) -> str:
    first = next((line for line in text[:_SAMPLE_CHARS].splitlines() if line.startswith("# ")), "")
    return clean_line(encodable(first.strip("# ")), MAX_TITLE_CHARS)


def _digest(content: object) -> str:
    return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def _sorted(fields: Mapping[str, FieldValue]) -> list[tuple[str, FieldValue]]:
    return sorted(fields.items())
