"""`POST /answer` as server-sent events, where the gateway itself fails; no service is needed for that."""

import asyncio
import json
from typing import Any

import pytest

from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings
from services.kit.errors import Unavailable
from tests.unit.conftest import Nowhere, asking

pytestmark = pytest.mark.anyio

BUDGET_S = 30


async def streamed() -> list[tuple[str, dict[str, Any]]]:
    """The events of a question, as names and data."""
    headers = {"accept": "text/event-stream", "x-request-id": "mine"}
    question = {"query": "Who designed the lighthouse?", "strategy": "closed-book", "budget_s": BUDGET_S}
    async with asking(create_app(GatewaySettings(), transport=Nowhere())) as client:
        reply = await client.post("/answer", json=question, headers=headers)
    lines = [block.split("\n", 1) for block in reply.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in lines]


@pytest.mark.parametrize(
    ("broken", "error", "status", "title"),
    [
        ("asking.answer", ZeroDivisionError("secret detail"), 500, "Internal error"),
        ("answering.observe", ZeroDivisionError("secret detail"), 500, "Internal error"),
        ("asking.answer", Unavailable("no place for it"), 503, "Unavailable"),
    ],
)
async def test_a_stream_that_fails_ends_with_a_problem(
    monkeypatch: pytest.MonkeyPatch, broken: str, error: Exception, status: int, title: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(f"services.gateway.{broken}", fail)
    # At once: one that hangs does so until the deadline.
    async with asyncio.timeout(BUDGET_S - 5):
        events = await streamed()
    assert [name for name, _ in events[:-1]] == ["stage"] * (len(events) - 1)
    name, problem = events[-1]
    assert name == "problem"
    assert (problem["status"], problem["title"], problem["request_id"]) == (status, title, "mine")
    assert "secret" not in str(events)
