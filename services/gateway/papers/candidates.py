"""Results of the searches: documents, and their scores by each encoder for each form of the query."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from proto.collections import SearchRequest, SearchResponse
from services.gateway.context import Context
from services.gateway.papers.query_forms import Form
from services.kit.errors import BadReply

Role = Literal["retrieval", "rescore"]


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
    """One list: its source, and the form of the query.

    Attributes:
        scores: document id to score, best first; a document with several chunks has the score of its best.
    """

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
        """Add the results of one search.

        Args:
            response: of a search with `lists`.
            forms: of its queries, in order.

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
