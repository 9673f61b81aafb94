"""Every prompt to the generator goes through here: what it may take, what it took, and what the trace keeps of it."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.gateway.context import Context
from services.gateway.mesh import Mesh
from services.kit.errors import ServiceFailure, ServiceTimeout
from services.kit.llm import Completion, Constraint, Message, Sample, estimate_tokens

# The engine's speed is an average: a prompt is planned as if it took this much longer.
SPEED_MARGIN = 1.3
# Left between the generator's allowance and the run's end, so that its time-out is named and not just suffered.
NAMING_RESERVE_S = 0.05


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the generator.

    Args:
        step: name of the stage.
        max_tokens: of the reply.
        min_tokens: a reply of fewer is of no use.
        optional: whether the step is skipped, and named, when the time allows no useful reply; else it is tried anyway.
        known_tokens: prompt tokens that the engine has read a moment ago, in the same order, and has cached.
        n: replies, side by side; more than one need a temperature.
    """

    step: str
    messages: Sequence[Message]
    max_tokens: int
    min_tokens: int
    optional: bool = True
    known_tokens: int = 0
    adapter: str = ""
    constraint: Constraint | None = None
    logprobs: bool = False
    n: int = 1
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """Seconds of a budget for one step.

    Args:
        cap_s: for the step at most.
        reserve_s: left to what comes after it.
    """

    cap_s: float = math.inf
    reserve_s: float = 0.0


ALL_OF_IT = Allowance()


async def ask(context: Context, request: Request, allowance: Allowance = ALL_OF_IT) -> Completion | None:
    """A reply as long as the time allows; None when the generator gave none, which `degraded` names."""
    run, mesh = context.run, context.mesh
    allow_s = run.budget.allow(allowance.cap_s, reserve_s=max(allowance.reserve_s, NAMING_RESERVE_S))
    step, messages, min_tokens = request.step, request.messages, request.min_tokens
    new_tokens = max(1, estimate(messages) - request.known_tokens)
    most = mesh.speed.affordable_completion(allow_s / SPEED_MARGIN, new_tokens)
    if request.optional and most < min_tokens:
        run.skip(step, f"{allow_s:.1f} s are no time for {new_tokens} + {min_tokens} tokens")
        return None
    least = min(min_tokens, request.max_tokens)
    run.plan(step, f"{time_words(mesh, new_tokens, least)} of the {allow_s:.1f} s allowed")
    entry = run.recorder.prompt(run.budget.elapsed_ms(), step, messages, request.constraint) if run.recorder else None
    began = time.monotonic()
    try:
        async with run.stage(step) as stage:
            with run.generating():
                completion = await mesh.llm.chat(
                    messages,
                    max_tokens=min(request.max_tokens, max(min_tokens, most)),
                    allow_s=allow_s,
                    logprobs=request.logprobs,
                    n=request.n,
                    temperature=request.temperature,
                    adapter=request.adapter,
                    constraint=request.constraint,
                )
            seconds = time.monotonic() - began
            stage.inference_ms = seconds * 1000
            stage.detail = f"{completion.prompt_tokens} + {completion.completion_tokens} tokens"
    except ServiceFailure as failure:
        if isinstance(failure, ServiceTimeout):
            mesh.speed.observe(new_tokens, 0, time.monotonic() - began)
        if entry:
            entry.failed(f"{failure.reason}: {failure.detail}", (time.monotonic() - began) * 1000)
        return None
    run.spent(step, completion)
    if completion.missing_adapter:
        run.decide(step, f"the generator has no adapter {completion.missing_adapter!r}: the base model replied")
    # Samples are written side by side, each token in the time of one.
    written = completion.completion_tokens // request.n
    mesh.speed.observe(max(1, completion.prompt_tokens - request.known_tokens), written, seconds)
    if entry:
        entry.replied(completion, seconds * 1000)
    return completion


def estimate(messages: Sequence[Message]) -> int:
    """Tokens of a chat, from above."""
    return sum(estimate_tokens(message.content) for message in messages)


def planned_s(mesh: Mesh, prompt_tokens: int, completion_tokens: int) -> float:
    """Seconds that a call is planned to take."""
    return mesh.speed.seconds(prompt_tokens, completion_tokens) * SPEED_MARGIN


def time_words(mesh: Mesh, prompt_tokens: int, completion_tokens: int) -> str:
    """The same in words, for plans."""
    seconds = planned_s(mesh, prompt_tokens, completion_tokens)
    return f"{prompt_tokens} + {completion_tokens} tokens take {seconds:.1f} s"


def probability(sample: Sample) -> float:
    """The mean probability of a reply's tokens; not yet calibrated against how often such answers are right."""
    if sample.logprob is None:
        return 0.0
    return round(min(1.0, max(0.0, math.exp(sample.logprob))), 4)


def asked_on(query_time: datetime) -> str:
    """The time of a question, as prompts say it."""
    return query_time.strftime("%A, %d %B %Y, %H:%M %Z")


def affordable(context: Context, calls: Mapping[str, tuple[int, int]]) -> set[str]:
    """The calls to the generator that fit into the time left, one after the other; the others are named.

    Args:
        calls: step -> tokens read and written, the most useful first.
    """
    run, mesh = context.run, context.mesh
    left = run.budget.left()
    chosen: set[str] = set()
    for step, (prompt_tokens, completion_tokens) in calls.items():
        seconds = planned_s(mesh, prompt_tokens, completion_tokens)
        words = f"{time_words(mesh, prompt_tokens, completion_tokens)} of the {left:.1f} s left"
        # The first is what all others are for: it is cut to the time that there is.
        if chosen and seconds > left:
            run.skip(step, words)
            continue
        run.plan(step, words)
        chosen.add(step)
        left = max(0.0, left - seconds)
    return chosen
