"""Answers from a collection: alone, beside pages, and when there is none."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from services.gateway.strategies import STRATEGIES
from tests.mesh.conftest import BAKERY, Services, fill

pytestmark = pytest.mark.anyio

QUESTION = "who designed the windmill on the hill?"
WINDMILL = {
    "id": "windmill",
    "title": "Windmill on the hill",
    "url": "https://example.org/windmill",
    "text": "The windmill on the hill was designed by Pieter Aalbers and ground its last corn in 1931. It has been a "
    "museum since then, and its sails turn on Sundays.",
}


@pytest.fixture(scope="module")
async def village(running: dict[str, Any]) -> None:
    await fill(running["retriever"], "village", WINDMILL)


@pytest.fixture
async def gateway(services: Services, village: None) -> AsyncIterator[httpx.AsyncClient]:
    services.generator.reply = lambda _: "Pieter Aalbers"
    async with services.usual(abstain=False) as client:
        yield client


async def answered(gateway: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    reply = await gateway.post("/answer", json={"query": QUESTION, "collection": "village", **body})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "closed-book"])
async def test_every_strategy_answers_from_a_collection(
    gateway: httpx.AsyncClient, services: Services, strategy: str
) -> None:
    found = await answered(gateway, strategy=strategy)
    shown = [message["content"] for body in services.generator.requests for message in body["messages"]]
    assert any("ground its last corn in 1931" in text for text in shown), found["degraded"]
    assert found["timings"]["search"]["elapsed_ms"] > 0


async def test_a_citation_names_the_document(gateway: httpx.AsyncClient) -> None:
    found = await answered(gateway, strategy="naive-rag")
    citation = found["citations"][0]
    assert citation["document"] == "windmill"
    assert (citation["page"], citation["page_name"], citation["page_url"]) == (0, WINDMILL["title"], WINDMILL["url"])
    assert citation["text"] == WINDMILL["text"][citation["start"] : citation["end"]]
    assert found["degraded"] == []


async def test_pages_and_collection_are_read_together(gateway: httpx.AsyncClient) -> None:
    found = await answered(gateway, strategy="naive-rag", search_results=[BAKERY])
    assert {citation["document"]: citation["page"] for citation in found["citations"]} == {"": 0, "windmill": 1}


async def test_given_evidence_stands_for_both(gateway: httpx.AsyncClient) -> None:
    found = await answered(gateway, strategy="naive-rag", evidence=["The windmill was designed by Jan Modaal."])
    assert [citation["document"] for citation in found["citations"]] == [""]
    assert "search" not in found["timings"]


async def test_what_a_collection_cannot_be_built_with_is_named(gateway: httpx.AsyncClient) -> None:
    for field, value in {"encoders": ["word2vec"], "shards": 2, "replicas": 2}.items():
        reply = await gateway.put("/collections/town", json={field: value})
        assert (reply.status_code, [error["field"] for error in reply.json()["errors"]]) == (422, [field])
