"""The trace as a tree."""

import io
from typing import Any

import httpx
import pytest
from rich.console import Console

from proto.answer import AnswerResponse, Trace, TraceEvent, TraceMessage
from services.cli.ask import ask
from services.cli.ending import ANSWERED
from services.cli.explain import show_trace
from services.cli.questions import Question

pytestmark = pytest.mark.anyio

TRACE = Trace(
    events=(
        TraceEvent(at_ms=1, step="reason", kind="plan", detail="900 + 120 tokens take 4.2 s of the 29.0 s left"),
        TraceEvent(at_ms=2, step="knowledge", kind="skipped", detail="no time"),
        TraceEvent(
            at_ms=900,
            step="reason",
            kind="prompt",
            detail="lab",
            messages=(
                TraceMessage(role="system", content="You answer."),
                TraceMessage(role="user", content="[bold]\x1b[31mwho?[/bold]"),
            ),
            constraint='{"regex": "a"}',
            reply="Marta",
            elapsed_ms=1_500,
            prompt_tokens=900,
            completion_tokens=3,
        ),
        TraceEvent(at_ms=901, step="reason", kind="stage", detail="900 + 3 tokens", elapsed_ms=1_501),
        TraceEvent(at_ms=2_500, step="reason", kind="decision", detail="premise not false"),
    ),
    omitted_chars=1_200,
)
RESPONSE = AnswerResponse(
    answer="Marta", kind="answer", confidence=0.5, source="web", strategy="electric-sheep", trace=TRACE
)


def printed(response: AnswerResponse) -> str:
    console = Console(width=100, record=True, file=io.StringIO(), highlight=False)
    show_trace(console, "who?", response)
    return console.export_text()


def test_the_tree_has_all_that_happened_by_step() -> None:
    text = printed(RESPONSE)
    lines = text.splitlines()
    assert lines[0] == "who?"
    steps = ("plan", "knowledge", "reason", "answer")
    order = [next(n for n, line in enumerate(lines) if line[4:].startswith(step)) for step in steps]
    assert order == sorted(order)
    for expected in (
        "take 4.2 s of the 29.0 s left",
        "skipped at 0.00 s  no time",
        "prompt at 0.90 s, 1.50 s  lab  900 + 3 tokens",
        "You answer.",
        '{"regex": "a"}',
        "Marta",
        "premise not false",
        "1,200 characters were left out",
        "confidence 50%",
    ):
        assert expected in text

    # What pages say cannot steer the terminal.
    assert "[bold]" in text
    assert "\x1b" not in text
    assert "Marta" in printed(RESPONSE.model_copy(update={"trace": None}))


@pytest.mark.parametrize("traced", [True, False])
async def test_the_trace_is_asked_for(capsys: pytest.CaptureFixture[str], traced: bool) -> None:
    bodies: list[bytes] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(200, json=RESPONSE.model_dump(mode="json"))

    question = Question({"query": "who?"}, budget_s=5)
    code: Any = await ask(question, "http://gateway", traced=traced, transport=httpx.MockTransport(handle))
    assert code == ANSWERED
    assert (b'"trace": true' in bodies[0]) is traced
    assert ("premise not false" in capsys.readouterr().out) is traced
