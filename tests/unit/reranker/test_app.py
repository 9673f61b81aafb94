"""The reranker's HTTP: what a part of a scorer had no time for is said."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from services.reranker.scorers import LIKELY_POOL, QueryLikelihood
from tests.unit.reranker.conftest import served

pytestmark = pytest.mark.anyio


PASSAGES = [f"The tower has {number} steps." for number in range(LIKELY_POOL)]
REQUEST = {"query": "how many steps?", "documents": PASSAGES}


@pytest.fixture(scope="module")
async def client(language_model: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with served(
        reranker_scorer="query-likelihood", reranker_model=str(language_model), precision="fp32", reader=False
    ) as client:
        yield client


@pytest.mark.parametrize(("allow_s", "complete"), [(60.0, True), (0.0, False)])
async def test_passages_that_the_language_model_did_not_reach_are_counted(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, allow_s: float, complete: bool
) -> None:
    monkeypatch.setattr(QueryLikelihood, "allow_s", allow_s)
    response = (await client.post("/rerank", json=REQUEST)).json()
    metrics = (await client.get("/metrics")).text
    assert len(response["results"]) == LIKELY_POOL
    counted = 'cragmesh_degraded_total{reason="timeout",service="reranker",stage="rerank"}' in metrics
    assert counted is not complete
    if complete:
        assert response["degraded"] == []
    else:
        assert [(item["stage"], item["reason"]) for item in response["degraded"]] == [("rerank", "timeout")]
        assert f"of {LIKELY_POOL} passages" in response["degraded"][0]["detail"]


async def test_while_others_wait_the_language_model_is_not_asked(client: httpx.AsyncClient) -> None:
    replies = await asyncio.gather(*(client.post("/rerank", json=REQUEST) for _ in range(6)))
    complete = [reply.json()["degraded"] == [] for reply in replies]
    # The last one has nobody behind it.
    assert any(complete)
    assert complete.count(False) >= 2
