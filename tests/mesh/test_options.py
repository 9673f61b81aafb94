"""Options of a request: each knob that a strategy heeds reaches what it turns, and another is refused in words."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from proto.kg import KgRequest
from proto.options import Options
from proto.rerank import RerankRequest
from proto.retrieve import RetrieveRequest
from services.gateway.mesh import Mesh
from services.gateway.strategies import STRATEGIES
from tests.mesh import fakes
from tests.mesh.conftest import BAKERY, LIGHTHOUSE, Services
from tests.mesh.test_strategies import FAST, FILM, SHEEP, STABLE, SURE, ask, asked, prompt, script

pytestmark = pytest.mark.anyio

TURNS_RETRIEVAL: dict[str, tuple[Any, Callable[[RetrieveRequest], Any]]] = {
    "extractor": ("trafilatura", lambda request: request.extractor),
    "chunker": ("passages", lambda request: request.chunker),
    "chunk_chars": (333, lambda request: request.parent_chars),
    "ranking": ("hybrid", lambda request: request.ranking),
    "prefilter": (77, lambda request: request.prefilter),
    "recall_k": (7, lambda request: request.recall_k),
    "tables": (False, lambda request: request.tables),
}


class Calls:
    """What the gateway sent to the retriever, the reranker and the graph."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.retrieve: list[RetrieveRequest] = []
        self.rerank: list[RerankRequest] = []
        self.query_kg: list[KgRequest] = []
        for name in ("retrieve", "rerank", "query_kg"):
            monkeypatch.setattr(Mesh, name, self._recording(name, getattr(Mesh, name)))

    def _recording(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        async def call(mesh: Mesh, request: Any, *, allow_s: float) -> Any:
            getattr(self, name).append(request)
            return await original(mesh, request, allow_s=allow_s)

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.mark.parametrize("strategy", [name for name, one in STRATEGIES.items() if "chunker" in one.options])
async def test_retrieval_is_turned_by_each_strategy(gateway: httpx.AsyncClient, calls: Calls, strategy: str) -> None:
    given = {option: value for option, (value, _) in TURNS_RETRIEVAL.items()}
    await ask(gateway, strategy, STABLE, options=given)
    (request,) = calls.retrieve
    assert {option: read(request) for option, (_, read) in TURNS_RETRIEVAL.items()} == given


@pytest.mark.parametrize("strategy", [name for name, one in STRATEGIES.items() if "rerank_k" in one.options])
async def test_reranking_is_bounded_and_switched_off(gateway: httpx.AsyncClient, calls: Calls, strategy: str) -> None:
    await ask(gateway, strategy, STABLE, options={"rerank_k": 1})
    assert [request.top_n for request in calls.rerank] == [1]
    await ask(gateway, strategy, STABLE, options={"rerank": False, "rerank_k": 1})
    assert len(calls.rerank) == 1


@pytest.mark.parametrize(("strategy", "top_n"), [("adaptive", 20), ("db3", 5)])
async def test_a_larger_context_takes_more_passages_but_where_a_paper_says_how_many(
    gateway: httpx.AsyncClient, calls: Calls, strategy: str, top_n: int
) -> None:
    await ask(gateway, strategy, STABLE)
    await ask(gateway, strategy, STABLE, options={"context_tokens": 4_000})
    assert [request.top_n for request in calls.rerank] == [5, top_n]


async def test_without_snippets_reranked_the_first_pages_are_read(gateway: httpx.AsyncClient, calls: Calls) -> None:
    pages = [BAKERY | {"page_name": f"Bakery {number}"} for number in range(6)] + [LIGHTHOUSE]
    await ask(gateway, "electric-sheep", STABLE | {"search_results": pages}, options={"rerank": False})
    assert calls.rerank == []
    assert [page.name for page in calls.retrieve[0].pages] == [f"Bakery {number}" for number in range(5)]


@pytest.mark.parametrize("strategy", [name for name, one in STRATEGIES.items() if "kg" in one.options])
async def test_the_graph_is_asked_as_told_or_not_at_all(
    gateway: httpx.AsyncClient, calls: Calls, strategy: str
) -> None:
    for mode in ("rules", "function-calling"):
        await ask(gateway, strategy, FILM | {"search_results": [LIGHTHOUSE]}, options={"kg": mode})
        assert calls.query_kg[-1].mode == mode
    before = len(calls.query_kg)
    body = await ask(gateway, strategy, FILM | {"search_results": [LIGHTHOUSE]}, options={"kg": "off"})
    assert len(calls.query_kg) == before
    assert body["kg"] is None


@pytest.mark.parametrize("strategy", ["naive-rag", "db3", "weknow", "electric-sheep", "adaptive"])
async def test_the_context_is_as_long_as_told(services: Services, gateway: httpx.AsyncClient, strategy: str) -> None:
    services.generator.reply = script(SHEEP | SURE)
    long = LIGHTHOUSE | {"page_result": f"<html><body><p>{'The lighthouse stands by the harbour wall. ' * 120}</p>"}
    lengths = {}
    for tokens in (100, 700):
        services.generator.requests.clear()
        await ask(gateway, strategy, STABLE | {"search_results": [long]}, options={"context_tokens": tokens})
        lengths[tokens] = max(len(body["messages"][-1]["content"]) for body in services.generator.requests)
    assert lengths[100] < lengths[700]


async def test_the_premise_is_not_judged(services: Services, gateway: httpx.AsyncClient) -> None:
    reply = '{"reasoning": "It never opened.", "false_premise": true, "answer": "no such lighthouse"}'
    services.generator.reply = script(SHEEP | {"reason": reply})
    assert (await ask(gateway, "electric-sheep", STABLE))["kind"] == "invalid_question"
    body = await ask(gateway, "electric-sheep", STABLE, options={"false_premise": False})
    assert (body["kind"], body["answer"]) == ("answer", "no such lighthouse")


@pytest.mark.parametrize("strategy", ["adaptive", "db3", "electric-sheep"])
async def test_no_question_is_called_invalid_where_none_is_to_be(
    services: Services, gateway: httpx.AsyncClient, strategy: str
) -> None:
    services.generator.reply = lambda body: "invalid question" if "regex" not in str(body) else "no frame"
    assert (await ask(gateway, strategy, STABLE))["kind"] == "invalid_question"
    body = await ask(gateway, strategy, STABLE, options={"false_premise": False})
    assert (body["kind"], body["answer"], body["source"]) == ("unknown", "i don't know", "none")
    assert body["citations"]


@pytest.mark.parametrize("strategy", ["adaptive", "db3"])
async def test_records_are_of_the_graph_that_is_off(
    services: Services, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    async def execute_kg(_mesh: Mesh, _request: Any, *, allow_s: float) -> Any:
        raise AssertionError

    monkeypatch.setattr(Mesh, "execute_kg", execute_kg)
    services.generator.reply = lambda _: "Inception"
    async with services.usual(db3_public_data=True) as gateway:
        body = await ask(gateway, strategy, FILM | {"search_results": [LIGHTHOUSE]}, options={"kg": "off"})
    assert {citation["source"] for citation in body["citations"]} == {"web"}


async def test_facts_and_figures_are_as_short_as_told(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = script(SHEEP)
    figures = "In 1901 it had 1,240 visitors and in 1902 it had 1,815 visitors at the gate. " * 60
    visitors = {"query": "how many more visitors were there in 1902 than in 1901?", "evidence": [figures]}
    films = {"query": "which films did christopher nolan direct?", "query_time": FILM["query_time"]}
    for strategy, question, of in (("electric-sheep", visitors, "calculate"), ("db3", films, "facts")):
        services.generator.requests.clear()
        await ask(gateway, strategy, question, options={"context_tokens": 100})
        shown = re.findall(r"<document title[^>]*>.*?</document>", prompt(services, of), re.DOTALL)[-1]
        assert 60 <= len(fakes.tokens(shown)) <= 100


async def test_no_function_call_is_planned_where_rules_write(gateway: httpx.AsyncClient) -> None:
    body = await ask(gateway, "electric-sheep", STABLE, options={"kg": "rules"}, trace=True)
    planned = {event["step"] for event in body["trace"]["events"] if event["kind"] == "plan"}
    assert "reason" in planned
    assert "kg" not in planned


async def test_memory_and_calculator_are_left_out(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = script(SHEEP)
    question = STABLE | {"query": "how many years are there between 1900 and 1950 in total?"}
    await ask(gateway, "electric-sheep", question)
    assert {"knowledge", "calculate"} <= set(asked(services))
    services.generator.requests.clear()
    await ask(gateway, "electric-sheep", question, options={"closed_book": False, "calculator": False})
    assert asked(services) == ["calls", "reason"]


async def test_a_fast_question_is_answered_where_dynamism_is_off(
    services: Services, gateway: httpx.AsyncClient
) -> None:
    services.generator.reply = script(SHEEP)
    assert (await ask(gateway, "electric-sheep", FAST))["kind"] == "unknown"
    assert (await ask(gateway, "electric-sheep", FAST, options={"dynamism": False}))["kind"] == "answer"


async def test_weknow_is_as_sure_as_told(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = script(SURE | {"self_assess": "medium"})
    assert (await ask(gateway, "weknow", STABLE))["kind"] == "unknown"
    assert (await ask(gateway, "weknow", STABLE, options={"self_assessment": "medium"}))["kind"] == "answer"
    services.generator.requests.clear()
    assert (await ask(gateway, "weknow", STABLE, options={"self_assessment": "off"}))["kind"] == "answer"
    assert "self_assess" not in asked(services)


async def test_what_a_strategy_does_not_heed_is_refused(gateway: httpx.AsyncClient) -> None:
    values = {"closed_book": False, "self_assessment": "low", "dynamism": False}
    listed = (await gateway.get("/strategies")).json()["strategies"]
    assert {one["name"] for one in listed} == STRATEGIES.keys()
    assert [one["name"] for one in listed if one["default"]] == ["adaptive"]
    for one in listed:
        assert set(one["options"]) == STRATEGIES[one["name"]].options <= set(Options.model_fields)
        unheeded = {name: value for name, value in values.items() if name not in one["options"]}
        reply = await gateway.post("/answer", json=STABLE | {"strategy": one["name"], "options": unheeded})
        assert reply.status_code == 422
        assert {error["field"] for error in reply.json()["errors"]} == {f"options.{name}" for name in unheeded}


def test_a_part_is_left_out_by_options_that_the_strategy_heeds() -> None:
    for strategy in STRATEGIES.values():
        for options in strategy.parts.values():
            assert options.given
            assert options.given <= strategy.options
