"""Pages to chunks: duplicates dropped, and the work on a page as one function for a process pool."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from proto.base import MAX_PAGE_TEXT_CHARS, Degradation
from services.retriever.chunk import Chunk, Chunking, build_chunker, load_tokenizer
from services.retriever.extract import Extraction, extract
from services.retriever.tables import Table, split_rows

# Pieces of a table, its head included: the encoders read about 600 characters of digits and bars.
TABLE_CHILD_CHARS = 600
TABLE_PARENT_CHARS = 1_200

# An array of spans holds these per chunk: kind (0 text, 1 table), head start, head end, start, end, parent (-1 none).
_FIELDS = 6
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
    """A page as text, tables and chunks; small to pickle, since chunks are kept as offsets.

    Attributes:
        text: the extracted text; may be empty.
        tables_markdown: all tables, parted by an empty line; the offsets of table chunks are in it.
        unread: in words, what of the page is in neither.
    """

    text: str
    title: str
    tables_markdown: str
    child_spans: "array[int]" = field(repr=False)
    parent_spans: "array[int]" = field(repr=False)
    unread: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.child_spans

    def chunking(self) -> Chunking:
        """The chunks of the text, then those of the tables; parents are numbered through."""
        return Chunking(list(self._chunks(self.child_spans)), list(self._chunks(self.parent_spans)))

    def _chunks(self, spans: "array[int]") -> Iterator[Chunk]:
        for index in range(0, len(spans), _FIELDS):
            table, head_start, head_end, start, end, parent = spans[index : index + _FIELDS]
            source = self.tables_markdown if table else self.text
            yield Chunk(
                source[head_start:head_end] + source[start:end],
                start,
                end,
                parent if parent >= 0 else None,
                "table" if table else "text",
            )


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
        ValueError: an unknown extractor or chunker, or `tokens` without a tokenizer.
        ExtractionError: the page defeated the extractor.
    """
    return chunk_page(extract(html, options.extractor, name=name, tables=options.tables), options)


def chunk_page(page: Extraction, options: PageOptions) -> ProcessedPage:
    """Chunk an extracted page; raises the ValueErrors of `process_page`."""
    tokenizer = load_tokenizer(options.tokenizer) if options.tokenizer else None
    chunker = build_chunker(options.chunker, parent_chars=options.parent_chars, tokenizer=tokenizer)
    text = page.text[: options.max_chars].rstrip()
    chunking = chunker.chunk(text, page.language or "en")
    children, parents = _spans(chunking.children), _spans(chunking.parents)
    offset = 0
    for table in page.tables:
        _add_table(table, offset, children, parents)
        offset += len(table.markdown) + len(_BETWEEN_TABLES)
    tables_markdown = _BETWEEN_TABLES.join(table.markdown for table in page.tables)
    unread = page.unread
    if (over := len(page.text) - options.max_chars) > 0:
        unread = (*unread, f"cut at {options.max_chars:,} characters of text, before the last {over:,}")
    return ProcessedPage(text, page.title, tables_markdown, children, parents, unread)


def _spans(chunks: list[Chunk]) -> "array[int]":
    spans = array("i")
    for chunk in chunks:
        spans.extend((0, 0, 0, chunk.start, chunk.end, -1 if chunk.parent is None else chunk.parent))
    return spans


def _add_table(table: Table, offset: int, children: "array[int]", parents: "array[int]") -> None:
    for head, start, end in split_rows(table, TABLE_PARENT_CHARS):
        parent = len(parents) // _FIELDS
        parents.extend((1, offset, offset + head, offset + start, offset + end, -1))
        for child_head, child_start, child_end in split_rows(table, TABLE_CHILD_CHARS, start, end):
            children.extend((1, offset, offset + child_head, offset + child_start, offset + child_end, parent))
