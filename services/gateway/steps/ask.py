"""Every prompt to the generator goes through here: what it may take, what it took, and what the trace keeps of it."""

import math
import time
from collections.abc import Sequence
from datetime import datetime

from services.gateway.mesh import Mesh
from services.gateway.run import Run
from services.kit.errors import ServiceFailure, ServiceTimeout
from services.kit.llm import Completion, Constraint, Message, Sample, estimate_tokens

# The engine's pace is an average: a prompt is planned as if it took this much longer.
PACE_MARGIN = 1.3
# Left between the generator's allowance and the run's end, so that its time-out is named and not just suffered.
NAMING_RESERVE_S = 0.05


async def ask(
    run: Run,
    mesh: Mesh,
    step: str,
    messages: Sequence[Message],
    *,
    max_tokens: int,
    min_tokens: int,
    optional: bool = True,
    cap_s: float = math.inf,
    reserve_s: float = NAMING_RESERVE_S,
    known_tokens: int = 0,
    adapter: str = "",
    constraint: Constraint | None = None,
    logprobs: bool = False,
    n: int = 1,
    temperature: float = 0.0,
    scored: bool = False,
) -> Completion | None:
    """A reply as long as the time allows; None when the generator gave none, which `degraded` names.

    Args:
        step: name of the stage.
        max_tokens: of the reply.
        min_tokens: a reply of fewer is of no use.
        optional: whether the step is skipped, and named, when the time allows no useful reply; else it is tried anyway.
        cap_s: seconds for it at most.
        reserve_s: seconds left to what comes after it.
        n: replies, side by side; more than one need a temperature.
        known_tokens: prompt tokens that the engine has read a moment ago, in the same order, and has cached.
        scored: whether the last message is to be scored as a reply, and none written; None where the server cannot.
    """
    allow_s = run.budget.allow(cap_s, reserve_s=max(reserve_s, NAMING_RESERVE_S))
    new_tokens = max(1, sum(estimate_tokens(message.content) for message in messages) - known_tokens)
    affordable = mesh.pace.affordable_completion(allow_s / PACE_MARGIN, new_tokens)
    if optional and affordable < min_tokens:
        run.skip(step, f"{allow_s:.1f} s are no time for {new_tokens} + {min_tokens} tokens")
        return None
    run.plan(step, f"{time_words(mesh, new_tokens, min(min_tokens, max_tokens))} of the {allow_s:.1f} s allowed")
    entry = run.recorder.prompt(run.budget.elapsed_ms(), step, messages, constraint) if run.recorder else None
    began = time.monotonic()
    try:
        async with run.stage(step) as stage:
            if scored:
                completion = await mesh.llm.score(messages, allow_s=allow_s, adapter=adapter)
            else:
                completion = await mesh.llm.chat(
                    messages,
                    max_tokens=min(max_tokens, max(min_tokens, affordable)),
                    allow_s=allow_s,
                    logprobs=logprobs,
                    n=n,
                    temperature=temperature,
                    adapter=adapter,
                    constraint=constraint,
                )
            if completion is None:
                if entry:
                    entry.failed("the server does not score it", (time.monotonic() - began) * 1000)
                return None
            seconds = time.monotonic() - began
            stage.inference_ms = seconds * 1000
            stage.detail = f"{completion.prompt_tokens} + {completion.completion_tokens} tokens"
    except ServiceFailure as failure:
        if isinstance(failure, ServiceTimeout):
            mesh.pace.observe(new_tokens, 0, time.monotonic() - began)
        if entry:
            entry.failed(f"{failure.reason}: {failure.detail}", (time.monotonic() - began) * 1000)
        return None
    run.spent(completion)
    if completion.missing_adapter:
        run.decide(step, f"the generator has no adapter {completion.missing_adapter!r}: the base model replied")
    # Samples are written side by side, each token in the time of one.
    written = completion.completion_tokens // n
    mesh.pace.observe(max(1, completion.prompt_tokens - known_tokens), written, seconds)
    if entry:
        entry.replied(completion, seconds * 1000)
    return completion


def planned_s(mesh: Mesh, prompt_tokens: int, completion_tokens: int) -> float:
    """Seconds that a call is planned to take."""
    return mesh.pace.seconds(prompt_tokens, completion_tokens) * PACE_MARGIN


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
