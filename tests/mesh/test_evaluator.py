"""The evaluator drives the real gateway, retriever and reranker: whole mesh, and contexts given."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.evaluator import runs
from lab.evaluator.errors import BadRun, Unreachable
from lab.evaluator.report.summary import Summary, summarize
from lab.evaluator.store import Prediction, RunFolder
from tests.mesh.conftest import BAKERY, LIGHTHOUSE, Services

pytestmark = pytest.mark.anyio

RECORDS: tuple[Mapping[str, Any], ...] = (
    {
        "interaction_id": "whole-1",
        "query": "who designed the harbour lighthouse?",
        "query_time": "02/28/2024, 10:04:54 PT",
        "answer": "marta lindqvist",
        "alternative_answers": "[]",
        "domain": "open",
        "question_type": "simple",
        "static_or_dynamic": "static",
        "search_results": [BAKERY, LIGHTHOUSE],
    },
    {
        "interaction_id": "whole-2",
        "query": "in which year did the old bakery open?",
        "answer": "1923",
        "domain": "open",
        "question_type": "simple_w_condition",
        "search_results": [BAKERY, LIGHTHOUSE],
    },
    {
        "id": "given-1",
        "query": "who drew the mill?",
        "label": "jonas berg",
        "contexts": ["The mill was drawn by Jonas Berg."],
    },
    {
        "id": "given-2",
        "query": "who drew the quay?",
        "label": "i don't know",
        "label_kind": "idk",
        "contexts": ["The quay was extended twice."],
    },
    {
        "id": "given-3",
        "query": "when did the sea open?",
        "label": "invalid question",
        "label_kind": "invalid",
        "contexts": ["The sea is to the north."],
    },
)


class Through(httpx.AsyncBaseTransport):
    """Sends requests on through another client."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        reply = await self._client.request(
            request.method, request.url.path, content=await request.aread(), headers=headers
        )
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


def reply(body: dict[str, Any]) -> str:
    prompt = body["messages"][-1]["content"]
    question = prompt[prompt.rindex("Question:") :]
    if "lighthouse" in question:
        return "Answer: Marta Lindqvist" if "Marta Lindqvist" in prompt else "i don't know"
    if "bakery" in question:
        return "It opened in 1932."
    if "mill" in question:
        return "Jonas Berg" if "drawn by Jonas Berg" in prompt else "i don't know"
    return "Jonas Berg" if "quay" in question else "invalid question"


def order(tmp_path: Path, **changes: Any) -> runs.Order:
    source = tmp_path / "records.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    values: dict[str, Any] = {
        "sources": (source,),
        "folder": RunFolder(tmp_path / "run"),
        "gateway_url": "http://gateway",
        "strategy": "db3",
        "concurrency": 3,
    }
    return runs.Order(**(values | changes))


def judged(folder: RunFolder) -> tuple[Summary, dict[str, Prediction]]:
    found = runs.read(folder)
    verdicts = runs.verdicts(folder, found.predictions, "rules")
    summary = summarize(folder.name, found.info, found.predictions, verdicts, judge="rules")
    return summary, {line.id: line for line in found.predictions}


async def test_a_mesh_is_asked_and_judged(services: Services, gateway: httpx.AsyncClient, tmp_path: Path) -> None:
    services.generator.reply = reply
    ordered = order(tmp_path)
    progress = await runs.run(ordered, None, transport=Through(gateway))
    assert (progress.asked, progress.failed) == (5, 0)
    summary, lines = await asyncio.to_thread(judged, ordered.folder)
    outcomes = {name: line.outcome for name, line in ordered.folder.judgements("rules").items()}
    assert outcomes == {
        "whole-1": "right",
        "whole-2": "wrong",
        "given-1": "right",
        "given-2": "wrong",
        "given-3": "right",
    }
    assert summary.overall.score.value == pytest.approx(1 / 5)
    assert summary.slices["label_kind"]["idk"].hallucination.value == 1
    assert summary.latency.inside_limit == 1
    first = lines["whole-1"]
    assert (first.prediction, first.strategy, first.source) == ("Marta Lindqvist", "db3", "web")
    assert first.support == 1
    assert first.citations == len(first.citation_scores) > 0
    assert "retrieve" in first.timings
    assert "retrieve" not in lines["given-1"].timings
    assert summary.usage["llm_calls"] == 1


async def test_a_service_that_is_down_is_seen_in_the_report(
    services: Services, gateway: httpx.AsyncClient, tmp_path: Path
) -> None:
    services.faults["reranker"].fault = "killed"
    services.generator.reply = reply
    ordered = order(tmp_path)
    await runs.run(ordered, None, transport=Through(gateway))
    summary, _ = await asyncio.to_thread(judged, ordered.folder)
    assert summary.degraded == pytest.approx(2 / 5)
    assert any(name.startswith("reranker=") for name in summary.reasons)


async def test_what_cannot_be_asked_is_named(services: Services, gateway: httpx.AsyncClient, tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="no strategy 'none': there are "):
        await runs.run(order(tmp_path, strategy="none"), None, transport=Through(gateway))
    async with services.usual(api_key="secret") as locked:
        with pytest.raises(BadRun, match="HTTP 401"):
            await runs.run(order(tmp_path), None, transport=Through(locked))
        progress = await runs.run(order(tmp_path, api_key="secret"), None, transport=Through(locked))
        assert progress.asked == 5
    with pytest.raises(Unreachable, match="is not up"):
        await runs.run(order(tmp_path, gateway_url="http://127.0.0.1:9"), None)
