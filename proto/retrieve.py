"""Contract of the retriever: pages in, the passages that may answer the query out."""

from typing import Literal

from pydantic import Field, model_validator

from proto.base import (
    MAX_PAGE_CHARS,
    MAX_PAGE_TEXT_CHARS,
    MAX_PAGES,
    MAX_PAGES_CHARS,
    Contract,
    Count,
    Degradation,
    Milliseconds,
    Query,
    StageTiming,
)

ExtractorName = Literal["resiliparse", "trafilatura", "beautifulsoup"]
ChunkerName = Literal["passages", "paragraphs", "parent-child", "sentence-groups", "tokens"]
RankingName = Literal["default", "dense", "hybrid"]
PassageKind = Literal["text", "table"]

# Chunks that are embedded for a question; why so many, `services/retriever/ranking.py` says.
PREFILTER = 200


class Page(Contract):
    """One web page."""

    name: str = Field("", max_length=4_000, description="Title of the page.")
    url: str = Field("", max_length=8_192, description="Address of the page; never fetched.")
    snippet: str = Field("", max_length=20_000, description="A search engine's summary of the page.")
    html: str = Field(
        "",
        max_length=MAX_PAGE_CHARS,
        description=f"The page itself; {MAX_PAGE_TEXT_CHARS:,} characters of its text are read, and `degraded` names "
        "a page of more.",
    )
    last_modified: str = Field("", max_length=200, description="As the page's server said it.")


class RetrieveRequest(Contract):
    query: Query = Field(description="What to look for.")
    pages: tuple[Page, ...] = Field((), max_length=MAX_PAGES, description="Where to look.")
    extractor: ExtractorName = Field("resiliparse", description="HTML to text.")
    chunker: ChunkerName = Field("passages", description="Text to chunks.")
    parent_chars: int = Field(0, ge=0, le=8_000, description="Size of parent chunks; 0 is the chunker's own.")
    ranking: RankingName = Field("default", description="How chunks are ordered.")
    tables: bool = Field(True, description="Whether tables become passages of their own, in Markdown.")
    page_fields: bool = Field(False, description="Whether a chunk is matched with its page's name and snippet.")
    prefilter: int = Field(
        PREFILTER, ge=10, le=5_000, description="Chunks that are embedded, chosen by BM25; never fewer than `recall_k`."
    )
    recall_k: int = Field(50, ge=1, le=1_000, description="Chunks that matching keeps.")
    top_n: int = Field(10, ge=1, le=200, description="Passages to return.")

    @model_validator(mode="after")
    def _bounded_in_all(self) -> "RetrieveRequest":
        if sum(len(page.html) for page in self.pages) > MAX_PAGES_CHARS:
            raise ValueError(f"pages hold more than {MAX_PAGES_CHARS} characters of HTML in all")
        return self


class RetrievedPassage(Contract):
    """A passage, with the place it was cut from."""

    text: str = Field(description="What the generator is shown.")
    score: float = Field(allow_inf_nan=False, description="Rank score; comparable within one response only.")
    page: Count = Field(description="Index of its page in the request.")
    kind: PassageKind = Field("text", description="Prose, or a table in Markdown.")
    start: Count = Field(0, description="First character, in the page's extracted text (or the table's Markdown).")
    end: Count = Field(0, description="One past the last character.")
    match: str = Field("", description="The child chunk that matched.")


class RetrieveResponse(Contract):
    passages: tuple[RetrievedPassage, ...] = Field((), description="Best first.")
    degraded: tuple[Degradation, ...] = Field((), description="Pages that were dropped, and why.")
    chunks: Count = Field(0, description="Chunks that were searched.")
    cached_pages: Count = Field(0, description="Pages whose chunks came from the cache.")
    timing: StageTiming = Field(default_factory=StageTiming, description="The whole of it.")
    extract_ms: Milliseconds = Field(0, description="Part spent on HTML and chunks, in the process pool.")
    rank_ms: Milliseconds = Field(0, description="Part spent on embedding and ranking.")
