# Generated from proto/papers.py by `make contracts`: edits are lost.
"""Contract of the gateway's `POST /papers`: a question in, the documents of a collection that answer it out."""

from pydantic import Field

from cragmesh_client.contracts.answer import MAX_BUDGET_S, MIN_BUDGET_S, Usage
from cragmesh_client.contracts.base import Contract, Count, Degradation, Milliseconds, Query, StageTiming
from cragmesh_client.contracts.collections import MAX_FILTERS, CollectionName, Filter


class PapersRequest(Contract):
    query: Query = Field(description="The question, or its title.")
    body: str = Field("", max_length=20_000, description="The question's text, HTML allowed.")
    collection: CollectionName = Field(description="The collection to search.")
    filters: tuple[Filter, ...] = Field(
        (), max_length=MAX_FILTERS, description="What documents must be; all must hold."
    )
    top_n: int = Field(20, ge=1, le=200, description="Documents to return.")
    enhance: bool = Field(True, description="Whether the generator writes keywords and an answer to search with.")
    rescore: bool = Field(True, description="Whether candidates are scored again by the re-scoring model.")
    budget_s: float = Field(
        MAX_BUDGET_S,
        ge=MIN_BUDGET_S,
        le=MAX_BUDGET_S,
        allow_inf_nan=False,
        description="Seconds until the ranking is due.",
    )


class PaperScore(Contract):
    """One score that made the rank."""

    source: str = Field(description="An encoder's name, `bm25`, or the re-scoring model's.")
    form: str = Field(description="The query form that it scored: `question`, `keywords`, `answer` ...")
    rank: Count = Field(description="Place in that list, from 1; 0 when the list does not have it.")
    score: float = Field(allow_inf_nan=False, description="As that list gave it.")
    weight: float = Field(allow_inf_nan=False, description="Its weight in the ensemble.")


class Paper(Contract):
    id: str = Field(description="The document's id.")
    title: str = Field("", description="Its title.")
    url: str = Field("", description="Its address.")
    text: str = Field("", description="The passage that matched best, or the whole document.")
    score: float = Field(allow_inf_nan=False, description="Ensemble score; comparable within one response only.")
    scores: tuple[PaperScore, ...] = Field((), description="What made it.")


class PapersResponse(Contract):
    papers: tuple[Paper, ...] = Field((), description="Best first.")
    forms: dict[str, str] = Field(default_factory=dict, description="The query's forms by name.")
    degraded: tuple[Degradation, ...] = Field((), description="What was missing; empty when all went well.")
    timings: dict[str, StageTiming] = Field(default_factory=dict, description="Stage to where its time went.")
    usage: Usage = Field(default_factory=Usage, description="Calls and tokens at the generator.")
    elapsed_ms: Milliseconds = Field(0, description="From the request's arrival to its answer.")
    request_id: str = Field("", description="To find the request in the logs.")
