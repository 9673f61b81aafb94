"""`POST /read`: spans as they stand, probabilities that add up, limits, time, and a service without a reader."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from proto.base import MAX_PASSAGE_CHARS
from proto.read import MAX_READ_PASSAGES, MAX_SPANS, ReadResponse
from services.kit.reader import Reader
from services.reranker.app import load_reader
from services.reranker.settings import RerankerSettings
from tests.unit.reranker.conftest import served

pytestmark = pytest.mark.anyio

TOWER = {
    "title": "Harbour tower",
    "text": "The tower was built by Marta Lindqvist. It opened in 1864 and stands 43 m tall.",
}
BREAD = {"text": "The old bakery sells rye bread and plum cake."}
REQUEST: dict[str, Any] = {"query": "who built the harbour tower?", "passages": [BREAD, TOWER]}


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with served() as client:
        yield client


async def read(client: httpx.AsyncClient, **change: Any) -> ReadResponse:
    reply = await client.post("/read", json=REQUEST | change)
    assert reply.status_code == 200, reply.text
    return ReadResponse.model_validate_json(reply.content)


async def test_spans_stand_where_they_are_said_to(client: httpx.AsyncClient) -> None:
    response = await read(client)
    texts = [passage["text"] for passage in REQUEST["passages"]]
    assert len(response.passages) == len(texts)
    for text, passage in zip(texts, response.passages, strict=True):
        for span in passage.spans:
            assert text[span.start : span.end] == span.text
    for candidate in response.candidates:
        assert texts[candidate.passage][candidate.start : candidate.end] == candidate.text
    assert response.degraded == ()
    assert response.timing.inference_ms > 0


async def test_the_shipped_reader_finds_a_plain_answer(client: httpx.AsyncClient) -> None:
    response = await read(client, spans=MAX_SPANS)
    best = response.candidates[0]
    assert (best.passage, best.text) == (1, "Marta Lindqvist")
    assert response.passages[1].nothing < response.passages[0].nothing
    alone = await read(client, passages=[BREAD])
    assert alone.nothing > response.nothing
    for passage in response.passages:
        assert sum(span.probability for span in passage.spans) + passage.nothing <= 1 + 1e-6
    assert sum(one.probability for one in response.candidates) + response.nothing <= 1 + 1e-6
    ranked = [one.probability for one in response.candidates]
    assert ranked == sorted(ranked, reverse=True)
    assert len(response.candidates) <= MAX_SPANS


async def test_fewer_spans_are_the_best_of_more(client: httpx.AsyncClient) -> None:
    many, one = await read(client, spans=5), await read(client, spans=1)
    assert one.candidates == many.candidates[:1]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"query": "q" * 2_001}, "query"),
        ({"passages": [BREAD] * (MAX_READ_PASSAGES + 1)}, "passages"),
        ({"passages": [{"text": "x" * (MAX_PASSAGE_CHARS + 1)}]}, "passages.0.text"),
        ({"spans": MAX_SPANS + 1}, "spans"),
    ],
)
async def test_what_is_too_much_is_a_problem_that_names_the_field(
    client: httpx.AsyncClient, change: dict[str, Any], field: str
) -> None:
    reply = await client.post("/read", json=REQUEST | change)
    assert reply.status_code == 422
    assert reply.headers["content-type"].startswith("application/problem+json")
    assert [error["field"] for error in reply.json()["errors"]] == [field]


async def test_a_caller_in_a_hurry_gets_what_was_read(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.reranker.app.RESERVE_S", 600.0)
    response = await read(client)
    assert not any(passage.complete for passage in response.passages)
    assert response.nothing == 1
    assert [(item.stage, item.reason) for item in response.degraded] == [("read", "timeout")]


async def test_without_weights_the_reranker_ranks_and_says_so() -> None:
    async with served(reader_weights=Path("none")) as client:
        ready = (await client.get("/readyz")).json()
        reply = await client.post("/read", json=REQUEST)
        ranked = await client.post("/rerank", json={"query": "who?", "documents": ["Marta", "bread"]})
    assert ready["ready"]
    assert "no reader" in ready["detail"]
    assert (reply.status_code, ranked.status_code) == (503, 200)
    assert reply.headers["content-type"].startswith("application/problem+json")
    assert load_reader(RerankerSettings(reader=False)) == (None, "CRAGMESH_READER is off")


async def test_a_reader_that_fails_leaves_the_ranking_alone(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as failing:
        failing.setattr(Reader, "read", fail)
        statuses = [(await client.post("/read", json=REQUEST)).status_code for _ in range(4)]
        ready = (await client.get("/readyz")).json()
        ranked = await client.post("/rerank", json={"query": "who?", "documents": ["Marta", "bread"]})
    assert statuses[0] == 500
    assert ready["ready"]
    assert "no reader: the last 3 runs" in ready["detail"]
    assert ranked.status_code == 200
    await read(client)
    assert "no reader" not in (await client.get("/readyz")).json()["detail"]


# More of the question's words, and nothing that it asks for.
NEAR = "The harbour tower was built to guard the ships."
SAYS = "It was Marta Lindqvist who built the tower at the harbour."


@pytest.mark.parametrize(
    ("reserve_s", "reading", "first"), [(0.3, False, NEAR), (0.3, True, SAYS), (600.0, True, NEAR)]
)
async def test_the_reader_has_a_say_in_the_ranking_where_it_is_asked_and_has_time(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, reserve_s: float, reading: bool, first: str
) -> None:
    monkeypatch.setattr("services.reranker.scorers.READ_RESERVE_S", reserve_s)
    body = {"query": REQUEST["query"], "documents": [NEAR, SAYS], "reading": reading}
    response = (await client.post("/rerank", json=body)).json()
    assert body["documents"][response["results"][0]["index"]] == first
    late = ["there was no time to read 2 of 2 passages"] * (reserve_s > 1)
    assert [item["detail"] for item in response["degraded"]] == late
