"""Passages of pages and of a collection: taken in turns, numbered apart, reranked with their titles."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from proto.answer import SearchResult
from proto.collections import SearchHit, SearchRequest, SearchResponse
from proto.rerank import RerankRequest, RerankResponse, RerankResult
from proto.retrieve import RetrievedPassage, RetrieveRequest, RetrieveResponse
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.mesh import NoCollection
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.settings import GatewaySettings
from services.gateway.speed import GeneratorSpeed
from services.gateway.steps.rerank import rerank
from services.gateway.steps.retrieve import POOL, Retrieval, retrieve
from services.kit.errors import ServiceRejected, ServiceTimeout

pytestmark = pytest.mark.anyio

RESULTS = (SearchResult(page_name="A page", page_snippet="Its snippet."), SearchResult(page_name="Another"))


class Services:
    """A mesh of scripted services."""

    def __init__(self) -> None:
        self.hits = [SearchHit(id=name, title=name.upper(), text=f"chunk {i}", score=1) for i, name in enumerate("aba")]
        self.failure: Exception | None = None
        self.speed = GeneratorSpeed(1e-3, 1e-2)
        self.searched: list[tuple[str, SearchRequest]] = []
        self.reranked: list[RerankRequest] = []

    async def retrieve(self, request: RetrieveRequest, *, allow_s: float) -> RetrieveResponse:
        assert allow_s > 0
        passages = (RetrievedPassage(text=f"passage {n}", score=1, page=n) for n in range(len(request.pages)))
        return RetrieveResponse(passages=tuple(passages))

    async def search(self, collection: str, request: SearchRequest, *, allow_s: float) -> SearchResponse:
        assert allow_s > 0
        self.searched.append((collection, request))
        if self.failure:
            raise self.failure
        return SearchResponse(hits=tuple(self.hits), fused=len(self.hits))

    async def rerank(self, request: RerankRequest, *, allow_s: float) -> RerankResponse:
        assert allow_s > 0
        self.reranked.append(request)
        return RerankResponse(model="fake", results=(RerankResult(index=0, relevance_score=0.5),))


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
def context(run: Run, services: Services) -> Context:
    question = Question("who?", datetime.now(UTC), RESULTS, collections=("village",))
    return Context(question, run, services, GatewaySettings())  # type: ignore[arg-type]


async def retrieved(context: Context, recall_k: int = 5) -> list[Evidence]:
    return await retrieve(context, [0, 1], Retrieval(recall_k))


async def test_they_take_turns_and_documents_count_as_further_pages(context: Context, services: Services) -> None:
    passages = await retrieved(context)
    assert [item.text for item in passages] == ["passage 0", "chunk 0", "passage 1", "chunk 1", "chunk 2"]
    assert [(item.page, item.document) for item in passages] == [(0, ""), (2, "a"), (1, ""), (3, "b"), (2, "a")]
    assert {"retrieve", "search"} <= context.run.timings.keys()


async def test_no_collection_is_not_searched(context: Context, services: Services) -> None:
    alone = replace(context, question=replace(context.question, collections=()))
    assert [item.text for item in await retrieved(alone)] == ["passage 0", "passage 1"]
    assert services.searched == []


async def test_of_a_collection_no_more_is_taken_than_reranking_pays_for(context: Context, services: Services) -> None:
    for recall_k, top_n in ((5, 5), (50, POOL)):
        await retrieved(context, recall_k)
        assert services.searched[-1][1].top_n == top_n
    assert services.searched[-1][0] == "village"


@pytest.mark.parametrize(
    ("failure", "detail"),
    [
        (NoCollection("village"), "there is no collection 'village'"),
        (ServiceRejected("retriever", "HTTP 409", status=409), "HTTP 409"),
        (ServiceTimeout("retriever", "late"), "late"),
    ],
)
async def test_a_failed_search_is_named_and_costs_the_collection_alone(
    context: Context, services: Services, failure: Exception, detail: str
) -> None:
    services.failure = failure
    assert [item.text for item in await retrieved(context)] == ["passage 0", "passage 1"]
    assert [(item.stage, item.detail) for item in context.run.degraded] == [("retriever", detail)]


async def test_a_collections_passages_are_reranked_with_their_titles(context: Context, services: Services) -> None:
    evidence = [
        Evidence("It opened in 1923.", 0, page_name="The old bakery"),
        Evidence("It opened in 1923.", 1, page_name="The old bakery", document="b"),
        Evidence("The old bakery opened in 1923.", 2, page_name="The old bakery", document="c"),
        Evidence("It opened in 1923.", 3, document="d"),
    ]
    await rerank(context, evidence, top_n=1)
    assert services.reranked[0].documents == (
        "It opened in 1923.",
        "The old bakery\nIt opened in 1923.",
        "The old bakery opened in 1923.",
        "It opened in 1923.",
    )
