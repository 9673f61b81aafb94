"""Results of the searches and of the re-scoring: documents, and their scores by each list."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from proto.collections import SearchRequest, SearchResponse
from proto.rerank import MAX_DOCUMENTS, RerankRequest
from services.gateway.context import Context
from services.gateway.papers.query_forms import QUESTION, Form
from services.kit.errors import BadReply

Role = Literal["retrieval", "rescore"]
# Three pieces of the late-interaction scorer: an abstract is shorter, and the rest of a page is not worth its time.
READ_CHARS = 2_400


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document, by its first passage among the results."""

    id: str
    title: str = ""
    url: str = ""
    text: str = ""

    @property
    def passage(self) -> str:
        """Title and text, which for a paper are its title and abstract (Onewo)."""
        return self.text if self.text.startswith(self.title) else f"{self.title}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Listing:
    """One list: its source, the query's form, and each document id's score, that of its best chunk; best first."""

    source: str
    form: Form
    scores: Mapping[str, float]
    role: Role = "retrieval"


@dataclass(slots=True)
class Pool:
    """All results so far; it only grows, so that it can be ranked at any moment."""

    candidates: dict[str, Candidate] = field(default_factory=dict)
    lists: list[Listing] = field(default_factory=list)

    def add(self, response: SearchResponse, forms: Sequence[Form]) -> None:
        """Add the results of one search with `lists`, whose queries have these forms.

        Raises:
            BadReply: a list points outside of the response, or has a score that is no number.
        """
        listings = [_listing(response, index, forms) for index in range(len(response.lists))]
        for hit in response.hits:
            self.candidates.setdefault(hit.id, Candidate(hit.id, hit.title, hit.url, hit.text))
        self.lists += listings


async def search(
    context: Context, stage_name: str, pool: Pool, collection: str, forms: Mapping[Form, str], *, allow_s: float
) -> None:
    """Search a collection by all of its encoders and BM25, for each form, in one call, and add to the pool.

    Raises:
        ServiceFailure: the retriever gave no usable reply; `degraded` names it.
    """
    if not forms:
        return
    # Onewo: 150.
    length = context.settings.papers_candidates
    async with context.run.stage(stage_name) as stage:
        # Papers are ranked by their ids: two with the same text are two.
        request = SearchRequest(
            queries=tuple(forms.values()),
            candidates=length,
            top_n=length,
            filters=context.question.filters,
            lists=True,
            distinct=False,
        )
        response = await context.mesh.search(collection, request, allow_s=allow_s)
        stage.add(response.timing)
        pool.add(response, tuple(forms))
        stage.detail = f"{len(response.lists)} lists, {len(pool.candidates)} documents"


async def rescore(context: Context, pool: Pool, candidates: Sequence[Candidate], *, allow_s: float) -> None:
    """Add the list of the model that reads question and document together (Onewo, re-ranking) to the pool.

    Raises:
        ServiceFailure: the reranker gave no usable reply; `degraded` names it.
    """
    candidates = candidates[:MAX_DOCUMENTS]
    if not candidates:
        return
    async with context.run.stage("rescore") as stage:
        request = RerankRequest(
            query=context.question.query, documents=tuple(item.passage[:READ_CHARS] for item in candidates)
        )
        response = await context.mesh.rerank(request, allow_s=allow_s)
        stage.add(response.timing)
        if sorted(result.index for result in response.results) != list(range(len(candidates))):
            raise BadReply("reranker", "not each document once")
        order = sorted(response.results, key=lambda result: -result.relevance_score)
        scores = {candidates[result.index].id: result.relevance_score for result in order}
        pool.lists.append(Listing(response.model, QUESTION, scores, role="rescore"))
        stage.detail = f"{len(scores)} of {len(pool.candidates)}"


def _listing(response: SearchResponse, index: int, forms: Sequence[Form]) -> Listing:
    ranked = response.lists[index]
    if (
        ranked.query >= len(forms)
        or len(ranked.hits) != len(ranked.scores)
        or any(hit >= len(response.hits) for hit in ranked.hits)
        or not all(map(math.isfinite, ranked.scores))
    ):
        raise BadReply("retriever", "a list does not fit what it came with")
    scores: dict[str, float] = {}
    for hit, score in zip(ranked.hits, ranked.scores, strict=True):
        name = response.hits[hit].id
        scores[name] = max(score, scores.get(name, score))
    return Listing(ranked.encoder, forms[ranked.query], dict(sorted(scores.items(), key=lambda item: -item[1])))
