"""The trace: complete, in order, bounded."""

import asyncio
import itertools
from dataclasses import replace

import pytest

from proto.answer import MAX_TRACE_CHARS, MAX_TRACE_EVENTS, MAX_TRACE_TEXT_CHARS
from services.gateway.context import Context
from services.gateway.run import Run
from services.gateway.steps.ask import Request, ask
from services.gateway.trace import Recorder
from services.kit.budget import Budget
from services.kit.llm import Constraint, Message
from tests.mesh.fakes import FakeGenerator

pytestmark = pytest.mark.anyio

MESSAGES = [Message("system", "be brief"), Message("user", "which?")]


def recorder_of(run: Run) -> Recorder:
    assert run.recorder is not None
    return run.recorder


async def test_a_prompt_is_kept_with_its_reply_and_its_constraint(
    run: Run, context: Context, generator: FakeGenerator
) -> None:
    generator.reply = lambda _: "this"
    constraint = Constraint(choice=("this", "that"))
    await ask(context, Request("choose", MESSAGES, 4, 1, constraint=constraint))
    (prompt,) = [event for event in recorder_of(run).trace().events if event.kind == "prompt"]
    assert [(one.role, one.content) for one in prompt.messages] == [("system", "be brief"), ("user", "which?")]
    assert (prompt.step, prompt.reply, prompt.detail) == ("choose", "this", "fake")
    assert '"choice": ["this", "that"]' in prompt.constraint
    assert (prompt.prompt_tokens, prompt.completion_tokens) == (5, 1)


async def test_a_prompt_that_failed_says_why(run: Run, context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "neither"
    await ask(context, Request("choose", MESSAGES, 4, 1, constraint=Constraint(choice=("this",))))
    (prompt,) = [event for event in recorder_of(run).trace().events if event.kind == "prompt"]
    assert prompt.reply == ""
    assert prompt.detail.startswith("bad_reply")


async def test_plans_decisions_stages_and_what_was_skipped_stand_in_order_of_time() -> None:
    # A clock finer than the tenths of milliseconds that a stage's timing is rounded to.
    ticks = itertools.count()
    run = Run(Budget(30, clock=lambda: next(ticks) * 1e-5), recorder=Recorder())
    run.plan("kg", "1.0 s")
    async with run.stage("kg") as stage:
        await asyncio.sleep(0.001)
        stage.detail = "ok"
    run.decide("kg", "taken")
    run.skip("knowledge", "no time")
    events = recorder_of(run).trace().events
    assert [(event.kind, event.step, event.detail) for event in events] == [
        ("plan", "kg", "1.0 s"),
        ("stage", "kg", "ok"),
        ("decision", "kg", "taken"),
        ("skipped", "knowledge", "no time"),
    ]
    assert [event.at_ms for event in events] == sorted(event.at_ms for event in events)


def test_texts_are_cut_and_the_cut_is_counted() -> None:
    recorder = Recorder()
    recorder.prompt(1, "read", [Message("user", "x" * (MAX_TRACE_TEXT_CHARS + 100))], None)
    trace = recorder.trace()
    content = trace.events[0].messages[0].content
    assert len(content) == MAX_TRACE_TEXT_CHARS
    assert content.endswith("[cut]")
    assert trace.omitted_chars == 100 + len(" [cut]")


def test_the_whole_is_bounded_in_characters_and_in_events() -> None:
    recorder = Recorder()
    for number in range(MAX_TRACE_EVENTS + 30):
        recorder.prompt(number, "read", [Message("user", "x" * 5_000)], None)
    trace = recorder.trace()
    assert (len(trace.events), trace.omitted_events) == (MAX_TRACE_EVENTS, 30)
    sizes = [len(event.detail) + sum(len(one.content) for one in event.messages) for event in trace.events]
    assert sum(sizes) <= MAX_TRACE_CHARS
    written = MAX_TRACE_EVENTS * (5_000 + len("no reply"))
    assert trace.omitted_chars >= written - MAX_TRACE_CHARS


async def test_nothing_is_kept_when_no_trace_was_asked_for(context: Context) -> None:
    run = Run(Budget(30))
    run.plan("a", "b")
    run.decide("a", "b")
    assert await ask(replace(context, run=run), Request("generate", MESSAGES, 4, 1)) is not None
    assert run.recorder is None
