# Generated from proto/answer.py by `make contracts`: edits are lost.
"""Contract of the gateway's `POST /answer`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from cragmesh_client.contracts.base import (
    MAX_PAGE_CHARS,
    MAX_PAGE_TEXT_CHARS,
    MAX_PAGES,
    MAX_PAGES_CHARS,
    Contract,
    Count,
    Degradation,
    Milliseconds,
    Passage,
    Query,
    QueryTime,
    Score,
    StageTiming,
)
from cragmesh_client.contracts.classify import Classification
from cragmesh_client.contracts.collections import MAX_COLLECTIONS, MAX_FILTERS, CollectionName, Filter
from cragmesh_client.contracts.kg import KgResponse
from cragmesh_client.contracts.options import Options
from cragmesh_client.contracts.read import MAX_SPAN_CHARS

AnswerKind = Literal["answer", "unknown", "invalid_question"]
AnswerSource = Literal["kg", "web", "public_data", "model", "none"]
CitationSource = Literal["web", "kg", "public_data", "calculator", "model"]
TraceKind = Literal["plan", "decision", "prompt", "stage", "skipped"]

MAX_BUDGET_S = 30.0
MIN_BUDGET_S = 0.5

MAX_TURNS = 50

# Of an abstention; each passage is cut around its span.
MAX_CANDIDATES = 3
MAX_EXCERPT_CHARS = 800

# A trace is for reading: what is longer is cut, and how much was cut is said.
MAX_TRACE_EVENTS = 200
MAX_TRACE_TEXT_CHARS = 20_000
MAX_TRACE_CHARS = 250_000


class SearchResult(Contract):
    """One search result, named as in CRAG's records."""

    page_name: str = Field("", max_length=4_000, description="Title of the page.")
    page_url: str = Field("", max_length=8_192, description="Address of the page; never fetched.")
    page_snippet: str = Field("", max_length=20_000, description="The search engine's summary.")
    page_result: str = Field(
        "",
        max_length=MAX_PAGE_CHARS,
        description=f"The page's HTML; {MAX_PAGE_TEXT_CHARS:,} characters of its text are read, and `degraded` names "
        "a page of more.",
    )
    page_last_modified: str = Field("", max_length=200, description="As the page's server said it.")


class Turn(Contract):
    """Something that was said before the question."""

    role: Literal["user", "assistant", "system"] = Field(description="Who said it; `system` is a hint, no instruction.")
    content: str = Field(max_length=20_000, description="What was said.")


class AnswerRequest(Contract):
    """A question, with the pages to answer it from.

    A CRAG record posts as it is: fields that are not named here are ignored, but for those of `options` and `filters`.
    """

    query: Query = Field(description="The question.")
    query_time: QueryTime | None = Field(None, description="When it is asked; now by default.")
    turns: tuple[Turn, ...] = Field(
        (),
        max_length=MAX_TURNS,
        description="What was said before, oldest first; a question that points back to it is rewritten.",
    )
    search_results: tuple[SearchResult, ...] = Field((), max_length=MAX_PAGES, description="Pages to answer from.")
    collection: CollectionName | None = Field(
        None, description="A collection to answer from, instead of or beside `search_results`."
    )
    search: bool = Field(
        False,
        description="Whether pages of the web are searched for as well, behind `search_results`; the question then "
        "leaves the mesh.",
    )
    collections: tuple[CollectionName, ...] = Field(
        (), max_length=MAX_COLLECTIONS, description="Further collections to answer from."
    )
    filters: tuple[Filter, ...] = Field(
        (), max_length=MAX_FILTERS, description="What documents of the collections must be; all must hold."
    )
    evidence: tuple[Passage, ...] = Field(
        (),
        max_length=MAX_PAGES,
        description="Texts that stand in for retrieval: only these are shown to the generator.",
    )
    strategy: Annotated[str, StringConstraints(max_length=64)] = Field(
        "", description="A name from `GET /strategies`; the gateway's default when empty."
    )
    budget_s: float = Field(
        MAX_BUDGET_S,
        ge=MIN_BUDGET_S,
        le=MAX_BUDGET_S,
        allow_inf_nan=False,
        description="Seconds until the answer is due.",
    )
    interaction_id: str = Field(
        "", max_length=200, description="The caller's name for the question, returned as it is."
    )
    every_answer: bool = Field(
        False,
        description="Whether `adaptive` gives its answer however unlikely it is to be right: what a confidence is "
        "fitted on.",
    )
    options: Options = Field(default_factory=Options, description="Knobs of the strategy; see `Options`.")
    trace: bool = Field(False, description="Whether the response tells how the answer came about; see `Trace`.")

    @model_validator(mode="after")
    def _bounded_in_all(self) -> "AnswerRequest":
        if sum(len(result.page_result) for result in self.search_results) > MAX_PAGES_CHARS:
            raise ValueError(f"search_results hold more than {MAX_PAGES_CHARS} characters of HTML in all")
        return self

    @property
    def all_collections(self) -> tuple[str, ...]:
        """`collection` and `collections`, each once."""
        return tuple(dict.fromkeys((*((self.collection,) if self.collection else ()), *self.collections)))


class Citation(Contract):
    """A passage that the answer rests on."""

    page: Count = Field(
        description="Index in `search_results`, or in `evidence` when that was given; past their end for a document of "
        "the collection."
    )
    page_name: str = Field("", description="Title of the page.")
    page_url: str = Field("", description="Address of the page.")
    text: str = Field(description="The passage as the generator saw it.")
    score: float = Field(allow_inf_nan=False, description="The reranker's relevance.")
    start: Count = Field(0, description="First character, in the page's extracted text.")
    end: Count = Field(0, description="One past the last character.")
    document: str = Field("", description="Id in the collection; empty for what is not from there.")
    page_number: Count = Field(0, description="Page of the document, from 1; 0 where it has no pages.")
    source: CitationSource = Field(
        "web",
        description="A page or document, facts of the knowledge graph, stable records, a calculation, or the model's "
        "memory.",
    )


class Candidate(Contract):
    """What a passage says that may be the answer: shown with an abstention, and no answer itself."""

    span: str = Field(max_length=MAX_SPAN_CHARS, description="The words.")
    passage: str = Field(max_length=MAX_EXCERPT_CHARS, description="The passage around them, cut at both ends.")
    start: Count = Field(description="First character of the words in `passage`.")
    end: Count = Field(description="One past the last character.")
    citation: Count = Field(description="Index in `citations` of the passage.")
    probability: Score = Field(description="That the question's answer stands there, by the extractive reader.")


class Usage(Contract):
    """What the answer cost at the generator."""

    llm_calls: Count = Field(0, description="Requests to the generator.")
    prompt_tokens: Count = Field(0, description="Tokens read.")
    completion_tokens: Count = Field(0, description="Tokens written.")


class TraceMessage(Contract):
    """One chat message of a prompt."""

    role: Literal["system", "user", "assistant"] = Field(description="Who speaks.")
    content: str = Field(description="What is said.")


class TraceEvent(Contract):
    """One thing that happened on the way to an answer."""

    at_ms: Milliseconds = Field(description="When, counted from the arrival of the request.")
    step: str = Field(description="The step that it belongs to.")
    kind: TraceKind = Field(
        description="What the strategy meant to do, what it decided, a prompt with its reply, how a stage ended, or "
        "what was left out."
    )
    detail: str = Field("", description="In words; why, where something was decided, failed or was left out.")
    messages: tuple[TraceMessage, ...] = Field((), description="The prompt.")
    constraint: str = Field("", description="What the reply was made to look like, as JSON; empty for free text.")
    reply: str = Field("", description="What the generator said.")
    elapsed_ms: Milliseconds = Field(0, description="How long it took.")
    prompt_tokens: Count = Field(0, description="Tokens read.")
    completion_tokens: Count = Field(0, description="Tokens written.")


class Trace(Contract):
    """How an answer came about. It goes to the caller who asked for it, and nowhere else.

    Bounded: 200 events, 20,000 characters a text, 250,000 in all.
    """

    events: tuple[TraceEvent, ...] = Field((), max_length=MAX_TRACE_EVENTS, description="In order of time.")
    omitted_chars: Count = Field(0, description="Characters that were cut.")
    omitted_events: Count = Field(0, description="Events that were left out.")


class AnswerResponse(Contract):
    """A short grounded answer, or an honest refusal."""

    answer: str = Field(description="One line; exactly `i don't know` or `invalid question` for the other kinds.")
    kind: AnswerKind = Field(description="An answer, an abstention, or a question with a false premise.")
    query: str = Field("", description="The question that was answered, where turns before it led to another wording.")
    confidence: Score = Field(description="Probability that the answer is right, as far as it is known.")
    source: AnswerSource = Field(description="Where the answer came from.")
    citations: tuple[Citation, ...] = Field((), description="What it rests on, best first.")
    candidates: tuple[Candidate, ...] = Field(
        (),
        max_length=MAX_CANDIDATES,
        description="For `unknown` only: what the passages say that was not sure enough to be the answer, best first.",
    )
    classification: Classification | None = Field(None, description="What kind of question it was taken for.")
    kg: KgResponse | None = Field(None, description="What the knowledge graph was asked and said.")
    signals: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(
        default_factory=dict, description="What the confidence was computed from, by name; empty where it was not."
    )
    degraded: tuple[Degradation, ...] = Field((), description="What was missing; empty when all went well.")
    timings: dict[str, StageTiming] = Field(default_factory=dict, description="Stage to where its time went.")
    usage: Usage = Field(default_factory=Usage, description="Calls and tokens at the generator.")
    strategy: str = Field(description="The strategy that answered.")
    generator: str = Field(
        "", description="MODEL, or MODEL+ADAPTER, whose reply this is; empty where it is a rule's or the reader's."
    )
    request_id: str = Field("", description="To find the request in the logs.")
    interaction_id: str = Field("", description="As it was sent.")
    trace: Trace | None = Field(None, description="How the answer came about, when `trace` was asked for.")


class StageEvent(Contract):
    """Server-sent event `stage`: one stage has ended (or `started` only), with the time left."""

    stage: str = Field(description="The stage's name, as in `timings`.")
    status: Literal["started", "done", "degraded", "skipped"] = Field(description="What became of it.")
    timing: StageTiming = Field(default_factory=StageTiming, description="Where its time went, once it is over.")
    left_ms: Milliseconds = Field(description="Milliseconds left until the answer is due.")
    detail: str = Field("", description="Why, when degraded or skipped.")


class StrategyInfo(Contract):
    name: str = Field(description="The value for `strategy`.")
    summary: str = Field(description="What it runs, in a sentence.")
    default: bool = Field(False, description="Whether it is used when none is named.")
    options: tuple[str, ...] = Field((), description="The fields of `Options` that it heeds.")
    parts: dict[str, Options] = Field(
        default_factory=dict, description="Its parts, as an ablation names them: to the options that leave each out."
    )


class Strategies(Contract):
    strategies: tuple[StrategyInfo, ...] = Field((), description="All strategies of this gateway.")
