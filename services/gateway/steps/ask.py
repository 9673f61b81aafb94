"""Calls to the generator: each gets its time from the budget, and is counted, measured and traced."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.gateway.context import Context
from services.gateway.mesh import Mesh
from services.kit.errors import ServiceFailure, ServiceTimeout
from services.kit.llm import Completion, Constraint, Message, Sample
from services.kit.prompts import Prompt
from services.kit.tokens import estimate_tokens
from services.kit.untrusted import one_line

# Seconds between the generator's time-out and the end of the run, in which `degraded` can name it.
NAMING_RESERVE_S = 0.05


@dataclass(frozen=True, slots=True)
class Request:
    """A call to the generator.

    Args:
        step: name of the stage.
        max_tokens: of the completion.
        min_tokens: of a useful completion.
        optional: whether the call is skipped, and named, when the time allows no useful completion; else it is tried.
        cached_tokens: prompt tokens that the engine has cached from the call before.
    """

    step: str
    messages: Sequence[Message]
    max_tokens: int
    min_tokens: int
    optional: bool = True
    cached_tokens: int = 0
    adapter: str = ""
    constraint: Constraint | None = None
    logprobs: bool = False


@dataclass(frozen=True, slots=True)
class Allowance:
    """Seconds of a budget for one step.

    Args:
        cap_s: the most for the step.
        reserve_s: for the steps after it.
    """

    cap_s: float = math.inf
    reserve_s: float = 0.0


WHOLE_BUDGET = Allowance()


async def ask(context: Context, request: Request, allowance: Allowance = WHOLE_BUDGET) -> Completion | None:
    """A completion as long as the time allows; None when the generator gave none, which `degraded` names."""
    run, mesh = context.run, context.mesh
    allow_s = run.budget.allow(allowance.cap_s, reserve_s=max(allowance.reserve_s, NAMING_RESERVE_S))
    step, messages, min_tokens = request.step, request.messages, request.min_tokens
    new_tokens = max(1, estimate(messages) - request.cached_tokens)
    affordable = mesh.speed.affordable_completion(allow_s, new_tokens)
    if request.optional and affordable < min_tokens:
        run.skip(step, f"{allow_s:.1f} s are no time for {new_tokens} + {min_tokens} tokens")
        return None
    shortest = min(min_tokens, request.max_tokens)
    run.plan(step, f"{planned_time(mesh, new_tokens, shortest)} of the {allow_s:.1f} s allowed")
    entry = run.recorder.prompt(run.budget.elapsed_ms(), step, messages, request.constraint) if run.recorder else None
    began = time.monotonic()
    try:
        async with run.stage(step) as stage:
            with run.generating():
                completion = await mesh.llm.chat(
                    messages,
                    max_tokens=min(request.max_tokens, max(min_tokens, affordable)),
                    allow_s=allow_s,
                    logprobs=request.logprobs,
                    adapter=request.adapter,
                    constraint=request.constraint,
                )
            seconds = time.monotonic() - began
            stage.inference_ms = seconds * 1000
            stage.detail = f"{completion.prompt_tokens} + {completion.completion_tokens} tokens"
    except ServiceFailure as failure:
        seconds = time.monotonic() - began
        # A call that ended sooner than its prompt is read by the estimate tells nothing of the speed.
        if isinstance(failure, ServiceTimeout) and seconds > mesh.speed.seconds(new_tokens, 0):
            mesh.speed.observe(new_tokens, 0, seconds)
        if entry:
            entry.failed(f"{failure.reason}: {failure.detail}", seconds * 1000)
        return None
    run.completions.setdefault(step, []).append(completion)
    if completion.missing_adapter:
        run.decide(step, f"the generator has no adapter {completion.missing_adapter!r}: the base model replied")
    read = max(1, completion.prompt_tokens - request.cached_tokens) if completion.prompt_tokens else new_tokens
    mesh.speed.observe(read, completion.completion_tokens, seconds)
    if entry:
        entry.replied(completion, seconds * 1000)
    return completion


def estimate(messages: Sequence[Message]) -> int:
    """An upper estimate of a chat's tokens."""
    return sum(estimate_tokens(message.content) for message in messages)


def planned_time(mesh: Mesh, prompt_tokens: int, completion_tokens: int) -> str:
    """The seconds to plan for a call, in words for the trace."""
    seconds = mesh.speed.planned_s(prompt_tokens, completion_tokens)
    return f"{prompt_tokens} + {completion_tokens} tokens take {seconds:.1f} s"


def probability(sample: Sample) -> float:
    """The mean probability of a sample's tokens, which is not calibrated."""
    if sample.logprob is None:
        return 0.0
    return round(min(1.0, max(0.0, math.exp(sample.logprob))), 4)


def asked_on(query_time: datetime) -> str:
    """The time of a question, for prompts."""
    return query_time.strftime("%A, %d %B %Y, %H:%M %Z")


def fill(prompt: Prompt, query: str, query_time: datetime, **values: str) -> list[Message]:
    """The messages of a prompt about a question."""
    return prompt.fill(query=one_line(query), query_time=asked_on(query_time), **values)


def affordable(context: Context, calls: Mapping[str, tuple[int, int]]) -> set[str]:
    """Steps whose calls to the generator fit into the time left, one after the other; the others are named.

    Args:
        calls: step -> tokens of prompt and completion, the most useful first.
    """
    run, mesh = context.run, context.mesh
    left = run.budget.left()
    steps: set[str] = set()
    for step, (prompt_tokens, completion_tokens) in calls.items():
        seconds = mesh.speed.planned_s(prompt_tokens, completion_tokens)
        beside = f" beside {' and '.join(sorted(steps))}" if steps else ""
        detail = f"{planned_time(mesh, prompt_tokens, completion_tokens)} of the {left:.1f} s left{beside}"
        # The others serve the first, which is made in whatever time there is.
        if steps and seconds > left:
            run.skip(step, detail)
            continue
        run.plan(step, detail)
        steps.add(step)
        left = max(0.0, left - seconds)
    return steps
