"""`POST /answer` through the real gateway, retriever and reranker."""

import asyncio
from typing import Any

import httpx
import pytest

from services.gateway.context import Context
from services.gateway.run import Draft
from tests.mesh.conftest import BAKERY, LIGHTHOUSE, Services, answer_to, events, missing

pytestmark = pytest.mark.anyio

QUESTION = {"query": "Who designed the harbour lighthouse?", "search_results": [BAKERY, LIGHTHOUSE]}


def prompt(services: Services) -> str:
    return "\n".join(message["content"] for message in services.generator.requests[-1]["messages"])


@pytest.mark.parametrize("strategy", ["db3", "naive-rag"])
async def test_an_answer_rests_on_the_page_that_has_it(
    services: Services, gateway: httpx.AsyncClient, strategy: str
) -> None:
    services.generator.reply = lambda _: "Answer: Marta Lindqvist\nShe was an architect."
    reply = await gateway.post("/answer", json=QUESTION | {"strategy": strategy, "interaction_id": "i-1"})
    body = reply.json()
    assert reply.status_code == 200
    assert (body["answer"], body["kind"], body["source"]) == ("Marta Lindqvist", "answer", "web")
    assert (body["strategy"], body["interaction_id"]) == (strategy, "i-1")
    assert body["request_id"] == reply.headers["x-request-id"]
    assert 0.9 < body["confidence"] <= 1
    first = body["citations"][0]
    assert first["page"] == 1
    assert first["page_name"] == "Harbour lighthouse"
    assert "Marta Lindqvist" in first["text"]
    assert body["degraded"] == []
    assert body["usage"]["llm_calls"] == 1
    assert {"retrieve", "generate"} <= set(body["timings"])
    assert "Marta Lindqvist" in prompt(services)
    assert "ignore me" not in prompt(services)


async def test_closed_book_reads_no_page(services: Services, gateway: httpx.AsyncClient) -> None:
    body = await answer_to(gateway, QUESTION | {"strategy": "closed-book"})
    assert (body["answer"], body["source"], body["citations"]) == ("Paris", "model", [])
    assert "Lindqvist" not in prompt(services)


async def test_given_evidence_stands_in_for_retrieval(services: Services, gateway: httpx.AsyncClient) -> None:
    request = QUESTION | {"evidence": ["The lighthouse was drawn by Jonas Berg."]}
    body = await answer_to(gateway, request)
    assert [citation["text"] for citation in body["citations"]] == request["evidence"]
    assert "Jonas Berg" in prompt(services)
    assert "Marta" not in prompt(services)
    assert "retrieve" not in body["timings"]


async def test_the_question_comes_last_and_the_time_is_told(services: Services, gateway: httpx.AsyncClient) -> None:
    await gateway.post("/answer", json=QUESTION | {"query_time": "02/28/2024, 10:04:54 PT"})
    messages = services.generator.requests[-1]["messages"]
    assert messages[-1]["content"].endswith(f"Question: {QUESTION['query']}")
    assert "Wednesday, 28 February 2024, 10:04 PST" in messages[-1]["content"]


async def test_of_many_pages_the_five_best_by_snippet_are_read(services: Services, gateway: httpx.AsyncClient) -> None:
    others = [dict(BAKERY, page_snippet=f"Bread and cake number {number}.") for number in range(9)]
    lighthouse = dict(LIGHTHOUSE, page_snippet="The harbour lighthouse and who designed it.")
    body = await answer_to(gateway, QUESTION | {"search_results": [*others, lighthouse]})
    assert "rerank_snippets" in body["timings"]
    assert body["citations"][0]["page"] == 9


async def test_duplicate_and_empty_pages_are_named_and_dropped(gateway: httpx.AsyncClient) -> None:
    pages = [LIGHTHOUSE, LIGHTHOUSE, dict(BAKERY, page_result="")]
    body = await answer_to(gateway, QUESTION | {"search_results": pages})
    dropped = {(item["stage"], item["reason"]) for item in missing(body)}
    assert dropped == {("page:1", "duplicate"), ("page:2", "empty")}
    assert body["kind"] == "answer"


@pytest.mark.parametrize(
    ("change", "lacks", "quoted"),
    [
        ({"page_result": ""}, [("empty", "")], ""),
        ({"page_result": "<html><body></body></html>"}, [("empty", "")], ""),
        ({"page_result": "<html><body><script>open('Bread.')"}, [("empty", "")], ""),
        ({"page_result": "", "page_snippet": "Rye bread."}, [], "Rye bread."),
        ({"page_result": "<html></html>", "page_snippet": "Rye bread."}, [], "Rye bread."),
        (
            {"page_result": f"<main>{'<p>' + 'Oskar bakes bread. ' * 53_000}</main>"},
            [("skipped", "cut at 1,000,000 characters of text, before the last 6,999")],
            "Oskar bakes bread.",
        ),
    ],
)
async def test_what_is_not_read_of_a_page_is_said_and_nothing_else(
    gateway: httpx.AsyncClient, change: dict[str, str], lacks: list[Any], quoted: str
) -> None:
    others: list[dict[str, str]]
    for others in ([], [LIGHTHOUSE]):  # the second time from the cache
        question = QUESTION | {"search_results": [*others, BAKERY | change], "strategy": "naive-rag", "budget_s": 20}
        body = await answer_to(gateway, question)
        assert [(item["reason"], item["detail"]) for item in missing(body)] == lacks
        assert {item["stage"] for item in missing(body)} <= {f"page:{len(others)}"}
        cited = [citation["text"] for citation in body["citations"] if citation["page"] == len(others)]
        assert any(quoted in text for text in cited) == bool(quoted)


async def test_without_pages_the_model_is_asked_alone(gateway: httpx.AsyncClient) -> None:
    body = await answer_to(gateway, {"query": "Which colour has the harbour master's door?"})
    assert (body["answer"], body["source"], body["citations"]) == ("Paris", "model", [])


async def test_events_tell_each_stage_and_end_with_the_answer(gateway: httpx.AsyncClient) -> None:
    reply = await gateway.post("/answer", json=QUESTION, headers={"accept": "text/event-stream"})
    assert reply.headers["content-type"].startswith("text/event-stream")
    stream = events(reply.text)
    assert [name for name, _ in stream[:-1]] == ["stage"] * (len(stream) - 1)
    assert stream[-1][0] == "answer"
    assert stream[-1][1]["answer"] == "Paris"
    stages = [(data["stage"], data["status"]) for _, data in stream[:-1]]
    for stage in ("retrieve", "rerank", "generate"):
        assert stages.index((stage, "started")) < stages.index((stage, "done"))
    left = [data["left_ms"] for _, data in stream[:-1]]
    assert left == sorted(left, reverse=True)


async def test_ten_at_once_are_all_answered(gateway: httpx.AsyncClient) -> None:
    replies = await asyncio.gather(*(gateway.post("/answer", json=QUESTION) for _ in range(10)))
    assert [reply.json()["answer"] for reply in replies] == ["Paris"] * 10


async def test_every_answer_says_what_kind_of_question_it_was(gateway: httpx.AsyncClient) -> None:
    request = QUESTION | {"query": "who directed the movie jaws?", "strategy": "closed-book"}
    body = await answer_to(gateway, request)
    label = body["classification"]
    assert (label["domain"], label["dynamism"], label["question_type"]) == ("movie", "static", "simple")
    assert label["domain_certainty"] > 0.9
    assert label["dynamic_probability"] < 0.5
    assert body["timings"]["classify"]["inference_ms"] > 0
    assert "classifier" not in {item["stage"] for item in body["degraded"]}


async def test_a_strategy_can_wait_for_the_classification(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_self: Any, context: Context) -> Draft:
        return Draft(answer=(await context.classification()).domain, kind="answer")

    monkeypatch.setattr("services.gateway.strategies.closed_book.ClosedBook.answer", answer)
    async with services.usual() as gateway:
        request = {"query": "who directed the movie jaws?", "strategy": "closed-book"}
        assert (await gateway.post("/answer", json=request)).json()["answer"] == "movie"
        services.faults["classifier"].fault = "killed"
        assert (await gateway.post("/answer", json=request)).json()["answer"] == "open"
