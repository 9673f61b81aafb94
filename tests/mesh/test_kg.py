"""The knowledge graph beside the web: its answer comes first, and its absence costs nothing but its answer."""

import json
from typing import Any

import httpx
import pytest

from proto.base import Degradation
from proto.kg import KgResponse
from services.gateway.mesh import Mesh
from tests.mesh.conftest import LIGHTHOUSE, Services, answer_to, missing

pytestmark = pytest.mark.anyio

FILM: dict[str, Any] = {"query": "who directed the movie inception?", "query_time": "02/28/2024, 10:04:54 PT"}
DIRECTED: dict[str, Any] = {"query": "who directed inception", "domain": "movie"}


def says(facts_answer: str, web_answer: str) -> Any:
    """A generator that tells a prompt with facts from one with pages."""

    def reply(body: dict[str, Any]) -> str:
        shown = "\n".join(message["content"] for message in body["messages"])
        return facts_answer if "knowledge graph" in shown else web_answer

    return reply


@pytest.mark.parametrize("public_data", [False, True])
async def test_what_the_graph_lacked_is_told(
    services: Services, monkeypatch: pytest.MonkeyPatch, public_data: bool
) -> None:
    lack = Degradation(stage="generator", reason="timeout", detail="rules alone wrote the program")

    async def late(_mesh: Mesh, _request: Any, *, allow_s: float) -> KgResponse:
        return KgResponse(status="timeout", degraded=(lack,))

    for route in ("query_kg", "execute_kg"):
        monkeypatch.setattr(Mesh, route, late)
    services.generator.reply = lambda _: "Inception"
    async with services.usual(db3_public_data=public_data) as gateway:
        body = await answer_to(gateway, FILM | {"strategy": "db3"})
    told = {(item["stage"], item["reason"], item["detail"]) for item in missing(body)}
    assert told >= {("generator", "timeout", lack.detail), ("kg", "timeout", "the program took too long")}


async def test_an_answer_from_facts_ends_the_request(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = says("Christopher Nolan", "Somebody Else")
    body = await answer_to(gateway, FILM | {"search_results": [LIGHTHOUSE]})
    assert (body["answer"], body["source"], body["kind"]) == ("Christopher Nolan", "kg", "answer")
    assert body["classification"]["domain"] == "movie"
    assert body["kg"]["status"] == "ok"
    assert "Christopher Nolan" in body["kg"]["text"]
    assert [citation["source"] for citation in body["citations"]] == ["kg"]
    assert missing(body) == []
    assert body["usage"]["llm_calls"] == 1


@pytest.mark.parametrize(
    ("query", "from_facts"),
    [(FILM["query"], "i don't know"), ("Who designed the harbour lighthouse?", "from facts")],
    ids=["the facts do not say", "the graph knows nothing"],
)
async def test_the_web_answers_where_the_graph_does_not(
    services: Services, gateway: httpx.AsyncClient, query: str, from_facts: str
) -> None:
    services.generator.reply = says(from_facts, "Marta Lindqvist")
    body = await answer_to(gateway, FILM | {"query": query, "search_results": [LIGHTHOUSE]})
    assert (body["answer"], body["source"]) == ("Marta Lindqvist", "web")
    assert {citation["source"] for citation in body["citations"]} == {"web"}
    assert (body["kg"]["status"] == "ok") is (query == FILM["query"])


async def test_a_frozen_graph_takes_no_more_than_its_cap(services: Services) -> None:
    services.faults["kg"].fault = "frozen"
    async with services.usual(kg_cap_s=0.3) as gateway:
        body = await answer_to(gateway, FILM | {"search_results": [LIGHTHOUSE]})
    assert ("kg", "timeout") in {(item["stage"], item["reason"]) for item in body["degraded"]}
    assert body["timings"]["kg"]["elapsed_ms"] < 5_000
    assert (body["answer"], body["source"]) == ("Paris", "web")


async def test_without_a_domain_all_are_tried(services: Services) -> None:
    for query, domain, status in (
        ("who directed titanic?", "movie", "ok"),
        ("how many games did old quay mariners win in 2023?", "sports", "ok"),
        ("how often did lilliput microsystems pay a dividend in 2023?", "finance", "ok"),
        ("how tall is the tower of my town?", "open", "no_entity"),
    ):
        body = (await services.kg("query", **FILM | {"query": query}, mode="rules")).json()
        assert (body["domain"], body["status"]) == (domain, status), body["program"]


async def test_errors_go_back_to_the_model_once(services: Services) -> None:
    replies = iter(['get_movie("inception")["favourite colour"]', 'get_movie("inception")["director"]'])
    services.generator.reply = lambda _: next(replies)
    body = (await services.kg("query", **DIRECTED, mode="program")).json()
    assert (body["status"], body["repaired"], body["llm_calls"]) == ("ok", True, 2)
    assert "favourite colour" in services.generator.requests[-1]["messages"][-1]["content"]


async def test_rules_write_where_the_generator_is_down(services: Services) -> None:
    services.faults["generator"].fault = "killed"
    body = (await services.kg("query", **DIRECTED)).json()
    refused = await services.kg("query", **DIRECTED, mode="program")
    assert (body["mode"], body["status"]) == ("rules", "ok")
    assert "Christopher Nolan" in body["text"]
    assert refused.status_code == 503
    assert refused.headers["content-type"] == "application/problem+json"


async def test_a_caller_without_time_is_told_of_that(services: Services) -> None:
    assert (await services.kg("query", {"x-deadline-ms": "1"}, **DIRECTED)).status_code == 504


async def test_a_program_is_executed_as_it_is(services: Services) -> None:
    program = 'get_movie("inception")["length"]\nget_movie("inception")["no such key"]'
    body = (await services.kg("execute", program=program, domain="movie")).json()
    assert body["status"] == "ok"
    assert [statement["status"] for statement in body["statements"]] == ["ok", "unknown_key"]
    assert json.loads(body["statements"][0]["rows_json"])[0]["length"] == 148


async def test_a_refused_program_says_the_limit(services: Services) -> None:
    refused = {"statements": 'get_movie("x")\n' * 100, "nested": "(" * 100, "characters": "x" * 10_000_000}
    for limit, program in refused.items():
        reply = await services.kg("execute", program=program)
        (error,) = reply.json()["errors"]
        assert (reply.status_code, error["field"], limit in error["message"]) == (422, "program", True), error


async def test_adaptive_settles_typed_facts_without_the_generator(
    services: Services, gateway: httpx.AsyncClient
) -> None:
    body = await answer_to(gateway, {"query": "which movie came out first, inception or avatar?"})
    assert "avatar" in body["answer"].lower()
    assert (body["source"], body["usage"]["llm_calls"]) == ("kg", 0)
    assert services.generator.requests == []


async def test_adaptive_weighs_what_it_reads(services: Services) -> None:
    services.generator.reply = lambda _: "Christopher Nolan"
    async with services.usual(abstain=False) as gateway:
        body = await answer_to(gateway, FILM)
    assert (body["answer"], body["source"]) == ("Christopher Nolan", "kg")
    assert body["signals"]["support"] == 1
    assert body["usage"]["llm_calls"] == 1
