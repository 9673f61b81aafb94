# Generated from proto/rerank.py by `make contracts`: edits are lost.
"""Contract of the reranker, in the request shape of Cohere's and Jina's rerank endpoints."""

from pydantic import Field

from cragmesh_client.contracts.base import Contract, Count, Degradation, Passage, Query, Score, StageTiming

MAX_DOCUMENTS = 200


class RerankRequest(Contract):
    query: Query = Field(description="The query that passages are scored against.")
    documents: tuple[Passage, ...] = Field(min_length=1, max_length=MAX_DOCUMENTS, description="The passages.")
    top_n: int = Field(MAX_DOCUMENTS, ge=1, le=MAX_DOCUMENTS, description="How many of the best to return.")
    reading: bool = Field(
        False, description="Whether the extractive reader's odds that a passage answers the query count as well."
    )
    return_documents: bool = Field(False, description="Whether to repeat each passage's text in its result.")


class RerankResult(Contract):
    index: Count = Field(description="Position of the passage in the request.")
    relevance_score: Score = Field(description="Relevance, comparable within one model.")
    document: str = Field("", description="The passage, when asked for.")


class RerankResponse(Contract):
    model: str = Field(description="The scorer and its model.")
    results: tuple[RerankResult, ...] = Field((), description="Best first.")
    timing: StageTiming = Field(default_factory=StageTiming, description="Where the time went.")
    degraded: tuple[Degradation, ...] = Field((), description="What the scores lack, and why.")
