"""`electric-sheep` and `weknow` through the real mesh: what they ask in which case, and what becomes of it.

`test_doors.py` has every strategy beside each service that fails.
"""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from proto.classify import Classification, ClassifyResponse
from services.gateway.mesh import Mesh
from tests.mesh.conftest import BAKERY, LIGHTHOUSE, Services, answer_to

pytestmark = pytest.mark.anyio

STABLE = {"query": "Who designed the harbour lighthouse?", "search_results": [BAKERY, LIGHTHOUSE]}
FILM = {"query": "who directed the movie inception?", "query_time": "02/28/2024, 10:04:54 PT"}
FAST = {"query": "what is the stock price of apple right now?", "search_results": [LIGHTHOUSE]}
# What each prompt of ours is known by.
MARKS = {
    "reason": "by reasoning over references",
    "knowledge": "from your own knowledge. First write",
    "summarise": "You shorten.",
    "calls": "with function calls",
    "self_assess": "How sure are you",
    "facts": "facts that were looked up",
    "weknow": "You answer factual questions from documents.",
    "entities": "You find the names",
    "calculate": "expression",
}
FRAME = '{{"reasoning": "It is written.", "false_premise": {}, "answer": "{}"}}'
Replies = dict[str, str]


def text(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def kind(body: dict[str, Any]) -> str:
    if MARKS["self_assess"] in body["messages"][-1]["content"]:
        return "self_assess"
    return next((name for name, mark in MARKS.items() if mark in text(body)), "other")


def script(replies: Replies) -> Callable[[dict[str, Any]], str]:
    return lambda body: replies.get(kind(body), "i don't know")


def asked(services: Services) -> list[str]:
    return [kind(body) for body in services.generator.requests]


def prompt(services: Services, name: str) -> str:
    return next(text(body) for body in services.generator.requests if kind(body) == name)


SHEEP: Replies = {
    "reason": FRAME.format("false", "Marta Lindqvist"),
    "knowledge": "The harbour is old.\nAnswer: Jonas Berg",
    "calls": "[]",
}
SURE: Replies = {"weknow": "Marta Lindqvist", "self_assess": "high"}


async def ask(gateway: httpx.AsyncClient, strategy: str, question: dict[str, Any], **more: Any) -> dict[str, Any]:
    return await answer_to(gateway, question | {"strategy": strategy} | more)


def classified(monkeypatch: pytest.MonkeyPatch, **labels: Any) -> None:
    async def classify(_self: Mesh, _request: Any, *, allow_s: float) -> ClassifyResponse:
        assert allow_s > 0
        return ClassifyResponse(classification=Classification(**labels))

    monkeypatch.setattr(Mesh, "classify", classify)


async def test_electric_sheep_reasons_over_pages_memory_and_facts(
    services: Services, gateway: httpx.AsyncClient
) -> None:
    services.generator.reply = script(SHEEP)
    body = await ask(gateway, "electric-sheep", STABLE)
    assert (body["answer"], body["kind"], body["source"]) == ("Marta Lindqvist", "answer", "web")
    assert set(asked(services)) == {"knowledge", "calls", "reason"}
    assert asked(services)[-1] == "reason"
    shown = prompt(services, "reason")
    assert "Marta Lindqvist, who also drew" in shown
    assert '<document source="memory"' in shown
    assert "Jonas Berg" in shown
    assert {"model", "web"} <= {citation["source"] for citation in body["citations"]}
    assert {"knowledge", "kg", "retrieve", "reason"} <= set(body["timings"])
    assert body["usage"]["llm_calls"] == 3


async def test_what_is_independent_runs_side_by_side(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = script(SHEEP)
    services.generator.seconds = 0.5
    timings = (await ask(gateway, "electric-sheep", STABLE))["timings"]
    for one, other in (("knowledge", "kg"), ("kg", "retrieve"), ("knowledge", "retrieve")):
        assert timings[one]["start_ms"] < timings[other]["start_ms"] + timings[other]["elapsed_ms"]
        assert timings[other]["start_ms"] < timings[one]["start_ms"] + timings[one]["elapsed_ms"]


async def test_electric_sheep_shows_what_the_function_calls_found(
    services: Services, gateway: httpx.AsyncClient
) -> None:
    call = '[{"function_name": "get_movie", "args": ["inception", {}, "director"]}]'
    services.generator.reply = script(SHEEP | {"calls": call, "reason": FRAME.format("false", "Christopher Nolan")})
    body = await ask(gateway, "electric-sheep", FILM | {"search_results": [LIGHTHOUSE]})
    assert (body["answer"], body["source"]) == ("Christopher Nolan", "kg")
    assert body["kg"]["mode"] == "function-calling"
    assert '<document source="knowledge graph"' in prompt(services, "reason")


async def test_electric_sheep_does_not_answer_what_changes_fast_by_the_settings_threshold(
    services: Services, gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for dynamism in ("real-time", "fast-changing"):
        classified(monkeypatch, dynamism=dynamism, dynamic_probability=0.7)
        body = await ask(gateway, "electric-sheep", STABLE)
        assert (body["answer"], body["kind"], asked(services)) == ("i don't know", "unknown", [])
    services.generator.reply = script(SHEEP)
    async with services.usual(dynamic_threshold=0.8) as lenient:
        assert (await ask(lenient, "electric-sheep", STABLE))["answer"] == "Marta Lindqvist"


async def test_weknow_gives_only_what_the_model_is_sure_of(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = script(SURE)
    body = await ask(gateway, "weknow", STABLE)
    assert (body["answer"], body["source"]) == ("Marta Lindqvist", "web")
    assert asked(services) == ["weknow", "self_assess"]
    for level in ("medium", "low", "no idea"):
        services.generator.reply = script(SURE | {"self_assess": level})
        body = await ask(gateway, "weknow", STABLE)
        assert (body["answer"], body["kind"]) == ("i don't know", "unknown")
        assert body["citations"]
    services.generator.reply = script(SURE | {"self_assess": "medium"})
    async with services.usual(weknow_confidence="medium") as lenient:
        assert (await ask(lenient, "weknow", STABLE))["answer"] == "Marta Lindqvist"


async def test_weknow_answers_from_the_graph_first_where_things_are_stable(
    services: Services, gateway: httpx.AsyncClient
) -> None:
    services.generator.reply = script(SURE | {"weknow": "Christopher Nolan"})
    body = await ask(gateway, "weknow", FILM | {"search_results": [LIGHTHOUSE]})
    assert (body["answer"], body["source"]) == ("Christopher Nolan", "kg")
    assert [citation["source"] for citation in body["citations"]] == ["kg"]
    assert "Mind which film" in prompt(services, "weknow")


async def test_weknow_goes_on_to_the_web_where_the_graph_does_not_convince(
    services: Services, gateway: httpx.AsyncClient
) -> None:
    def reply(body: dict[str, Any]) -> str:
        if kind(body) == "self_assess":
            return "high" if "harbour" in text(body) else "low"
        return "Christopher Nolan"

    services.generator.reply = reply
    body = await ask(gateway, "weknow", FILM | {"search_results": [LIGHTHOUSE]})
    assert body["answer"] == "Christopher Nolan"
    assert {citation["source"] for citation in body["citations"]} == {"kg", "web"}


async def test_weknow_leans_on_the_web_for_what_changes_fast(
    services: Services, gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    classified(monkeypatch, domain="movie", dynamism="fast-changing", dynamic_probability=0.9)
    services.generator.reply = script(SURE)
    body = await ask(gateway, "weknow", FILM | {"search_results": [LIGHTHOUSE]})
    sources = [citation["source"] for citation in body["citations"]]
    assert sources[0] == "web"
    assert sources[-1] == "kg"
    assert asked(services) == ["weknow", "self_assess"]


async def test_a_domain_that_is_not_certain_enough_is_open(services: Services) -> None:
    services.generator.reply = script(SURE)
    async with services.usual(weknow_domain_certainty=1.0) as gateway:
        assert (await ask(gateway, "weknow", FILM))["classification"]["domain"] == "open"
    async with services.usual(weknow_domain_certainty=0.5) as gateway:
        assert (await ask(gateway, "weknow", FILM))["classification"]["domain"] == "movie"


@pytest.mark.parametrize("strategy", ["electric-sheep", "weknow"])
async def test_given_evidence_stands_in_for_retrieval_and_the_graph(
    services: Services, gateway: httpx.AsyncClient, strategy: str
) -> None:
    services.generator.reply = script(SHEEP | SURE)
    body = await ask(gateway, strategy, FILM | {"evidence": ["It was made by Marta Lindqvist."]})
    assert body["answer"] == "Marta Lindqvist"
    assert body["kg"] is None
    assert not {"kg", "retrieve"} & set(body["timings"])
    assert body["citations"][-1]["text"] == "It was made by Marta Lindqvist."


@pytest.mark.parametrize("strategy", ["electric-sheep", "weknow"])
async def test_a_short_budget_asks_less(services: Services, gateway: httpx.AsyncClient, strategy: str) -> None:
    services.generator.reply = script(SHEEP | SURE)
    short = await ask(gateway, strategy, STABLE, budget_s=5)
    assert short["answer"] == "Marta Lindqvist"
    if strategy == "electric-sheep":
        assert asked(services) == ["reason"]
        assert {"knowledge", "kg"} <= {item["stage"] for item in short["degraded"] if item["reason"] == "skipped"}


@pytest.mark.parametrize("strategy", ["electric-sheep", "weknow", "db3", "naive-rag", "closed-book", "adaptive"])
async def test_a_trace_has_every_prompt_and_its_reply(
    services: Services, gateway: httpx.AsyncClient, strategy: str
) -> None:
    services.generator.reply = script(SHEEP | SURE)
    with capture_logs() as logs:
        body = await ask(gateway, strategy, STABLE, trace=True)
    prompts = [event for event in body["trace"]["events"] if event["kind"] == "prompt"]
    # The prompts that the knowledge graph's own process sends are not the gateway's.
    sent = [request for request in services.generator.requests if kind(request) != "calls"]
    assert [event["messages"] for event in prompts] == [request["messages"] for request in sent]
    assert all(event["reply"] for event in prompts)
    planned = {event["step"] for event in body["trace"]["events"] if "tokens take" in event["detail"]}
    assert {event["step"] for event in prompts} <= planned
    assert {event["step"] for event in body["trace"]["events"] if event["kind"] == "stage"} == set(body["timings"])
    assert "lighthouse" not in str(logs).lower()


async def test_a_trace_tells_the_plan_and_why_something_was_left_out(
    services: Services, gateway: httpx.AsyncClient
) -> None:
    services.generator.reply = script(SHEEP)
    events = (await ask(gateway, "electric-sheep", STABLE, trace=True, budget_s=5))["trace"]["events"]
    plan = {event["step"]: event["detail"] for event in events if event["kind"] == "plan"}
    assert all("tokens take" in detail for detail in plan.values())
    assert "reason" in plan
    skipped = {event["step"]: event["detail"] for event in events if event["kind"] == "skipped"}
    assert "s left" in skipped["knowledge"]
    assert any(event["kind"] == "decision" and event["step"] == "dynamism" for event in events)


async def from_records(services: Services, query: str, named: str) -> dict[str, Any]:
    """The answer of `db3` with public data, where the model names these entities."""
    services.generator.reply = script({"entities": named, "other": "148"})
    async with services.usual(db3_public_data=True, classify_cap_s=5) as gateway:
        return await ask(gateway, "db3", {"query": query, "search_results": [LIGHTHOUSE]}, trace=True)


@pytest.mark.parametrize(
    ("query", "named", "shown"),
    [
        # Found by the graph itself, by a name that is part of another, by one that is spelt in another way.
        ("how long is the movie inception?", "inception", "The length is 148."),
        ("when was the godfather of released as a movie?", "the godfather of", "The release date is 1972-03-24."),
        ("which oscars did the movie schindlers lists win?", "schindlers lists", "The winner is yes."),
    ],
)
async def test_public_data_has_records_of_the_entities_in_question(
    services: Services, query: str, named: str, shown: str
) -> None:
    body = await from_records(services, query, named)
    records = [citation["text"] for citation in body["citations"] if citation["source"] == "public_data"]
    assert records, [event["detail"] for event in body["trace"]["events"] if event["step"] == "public_data"]
    assert shown in records[0]
    assert body["kg"] is None
    if "148" in records[0]:
        assert body["source"] == "public_data"


async def test_names_that_a_model_makes_up_are_not_looked_up(services: Services) -> None:
    for named in ("titanic", "the matrix", "none", "a | b | c | d | e"):
        body = await from_records(services, "how long is the movie inceptions?", named)
        assert [citation["source"] for citation in body["citations"]] == ["web"] * len(body["citations"])
        assert body["kind"] == "answer"


async def test_public_data_without_its_services_is_an_answer_from_the_web(services: Services) -> None:
    services.faults["kg"].fault = "killed"
    body = await from_records(services, "how long is the movie inception?", "inception")
    assert body["source"] == "web"
    assert "kg" in {item["stage"] for item in body["degraded"]}


async def test_a_name_cannot_write_a_program(services: Services) -> None:
    body = await from_records(services, "how long is the movie inception?", 'inception"]) get_person("leonardo')
    assert body["degraded"] == []
    details = [event["detail"] for event in body["trace"]["events"] if event["step"] == "public_data"]
    assert any("no record" in detail for detail in details)


async def test_an_answer_that_is_cut_says_so(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = lambda _: "It was designed by " + "a man of the harbour and " * 40
    reply = await gateway.post("/answer", json=STABLE | {"strategy": "naive-rag"})
    assert reply.json()["answer"].startswith("It was designed by a man of the harbour")
    assert ("generate", "skipped") in {(item["stage"], item["reason"]) for item in reply.json()["degraded"]}
