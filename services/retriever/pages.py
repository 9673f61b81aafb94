"""Pages to chunks: duplicates dropped, and the work on a page as one function for a process pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from proto.base import MAX_PAGE_TEXT_CHARS, Degradation
from services.retriever.chunk import CHUNKERS, Chunk, Chunking
from services.retriever.extract import Extraction, extract
from services.retriever.tables import Table, split_rows

# Pieces of a table, its head included: the encoders read about 600 characters of digits and bars.
TABLE_CHILD_CHARS = 600
TABLE_PARENT_CHARS = 1_200
_BETWEEN_TABLES = "\n\n"


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How pages are processed; the same for all of a request.

    Attributes:
        parent_chars: 0 is the chunker's own size, as published.
        tokenizer: path of the encoder's `tokenizer.json`, for the chunker `tokens`.
        max_chars: characters of the text to chunk.
    """

    extractor: str = "resiliparse"
    chunker: str = "passages"
    parent_chars: int = 0
    tables: bool = True
    tokenizer: str = ""
    max_chars: int = MAX_PAGE_TEXT_CHARS


@dataclass(frozen=True, slots=True)
class ProcessedPage:
    """A page as text, tables and chunks.

    Attributes:
        text: the extracted text; may be empty.
        tables_markdown: all tables, parted by an empty line; the offsets of table chunks are in it.
        chunking: the chunks of the text, then those of the tables; parents are numbered through.
        unread: in words, what of the page is in neither.
    """

    text: str
    title: str
    tables_markdown: str
    chunking: Chunking
    unread: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.chunking.children


def content_key(html: str) -> str:
    """Hash of a page's content, equal for equal pages: 128 bits in hexadecimal."""
    return blake2b(html.strip().encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def drop_duplicates(pages: Sequence[str]) -> tuple[list[int], list[Degradation]]:
    """Indices of the distinct pages, and the pages that are empty or equal to an earlier one.

    Search results repeat pages: two in five, in some of CRAG's questions.
    """
    distinct: list[int] = []
    dropped: list[Degradation] = []
    first: dict[str, int] = {}
    for index, html in enumerate(pages):
        if not html or html.isspace():
            dropped.append(Degradation(stage=f"page:{index}", reason="empty"))
            continue
        original = first.setdefault(content_key(html), index)
        if original == index:
            distinct.append(index)
        else:
            detail = f"same as page {original}"
            dropped.append(Degradation(stage=f"page:{index}", reason="duplicate", detail=detail))
    return distinct, dropped


def process_page(html: str, options: PageOptions, name: str = "") -> ProcessedPage:
    """Extract and chunk one page; to be run in a process that may be killed.

    Args:
        name: the page's name, for its tables; the document's own title where empty.

    Raises:
        ExtractionError: the page defeated the extractor.
    """
    return chunk_page(extract(html, options.extractor, name=name, tables=options.tables), options)


def chunk_page(page: Extraction, options: PageOptions) -> ProcessedPage:
    """Chunk an extracted page."""
    text = page.text[: options.max_chars].rstrip()
    chunking = CHUNKERS[options.chunker](options.parent_chars, options.tokenizer).chunk(text, page.language)
    offset = 0
    for table in page.tables:
        _add_table(table, offset, chunking)
        offset += len(table.markdown) + len(_BETWEEN_TABLES)
    tables_markdown = _BETWEEN_TABLES.join(table.markdown for table in page.tables)
    unread = page.unread
    if (over := len(page.text) - options.max_chars) > 0:
        unread = (*unread, f"cut at {options.max_chars:,} characters of text, before the last {over:,}")
    return ProcessedPage(text, page.title, tables_markdown, chunking, unread)


def _add_table(table: Table, offset: int, chunking: Chunking) -> None:
    def piece(head: int, start: int, end: int, parent: int | None = None) -> Chunk:
        text = table.markdown[:head] + table.markdown[start:end]
        return Chunk(text, offset + start, offset + end, parent, "table")

    for head, start, end in split_rows(table, TABLE_PARENT_CHARS):
        parent = len(chunking.parents)
        chunking.parents.append(piece(head, start, end))
        rows = split_rows(table, TABLE_CHILD_CHARS, start, end)
        chunking.children.extend(piece(*row, parent) for row in rows)
