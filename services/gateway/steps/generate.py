"""Step `generate`: the answer, from the passages that the time left can pay for."""

import math
import time
from collections.abc import Sequence
from datetime import datetime

from services.gateway.evidence import Evidence, cut, cut_by_estimate, harmless, render
from services.gateway.mesh import Mesh
from services.gateway.normalize import normalize
from services.gateway.prompts import Prompt
from services.gateway.run import Draft, Run
from services.kit.errors import ServiceFailure, ServiceTimeout
from services.kit.llm import estimate_tokens

# Asking the tokenizer is a look-up, not inference: one that takes longer is in trouble.
TOKENIZE_CAP_S = 3.0
# Shorter contexts than this answer nothing that the model could not say without them.
MIN_CONTEXT_TOKENS = 64
# Most answers are shorter; one that is not is cut where the time for it ends.
PLANNED_ANSWER_TOKENS = 25
MIN_ANSWER_TOKENS = 8
# Cited by an abstention that had no time to read them.
UNREAD_CITATIONS = 5
# The engine's pace is an average: a prompt is planned as if it took this much longer.
PACE_MARGIN = 1.3
# Left between the generator's allowance and the run's end, so that its time-out is named and not just suffered.
NAMING_RESERVE_S = 0.05


async def fit(run: Run, mesh: Mesh, evidence: Sequence[Evidence], *, max_tokens: int) -> list[Evidence]:
    """The best passages within `max_tokens` and within what the generator can read in the time left.

    None of them when there is no time to read any: an answer without them would be a guess that looks grounded, so the
    run's best stays an abstention that shows what was found.
    """
    run.best = Draft(evidence=tuple(evidence[:UNREAD_CITATIONS]))
    if not evidence:
        return []
    affordable = mesh.pace.affordable_prompt(run.budget.left() / PACE_MARGIN, PLANNED_ANSWER_TOKENS)
    if affordable < max_tokens:
        if affordable < MIN_CONTEXT_TOKENS:
            run.skip("context", f"time for {affordable} prompt tokens only")
            return []
        run.degrade("context", "skipped", f"cut at {affordable} of {max_tokens} tokens for want of time")
    limit = min(max_tokens, affordable)
    try:
        async with run.stage("tokenize"):
            allow_s = run.budget.allow(TOKENIZE_CAP_S, reserve_s=NAMING_RESERVE_S)
            return await cut(evidence, limit, mesh.llm, allow_s=allow_s)
    except ServiceFailure:
        return cut_by_estimate(evidence, limit)


async def generate(
    run: Run,
    mesh: Mesh,
    prompt: Prompt,
    query: str,
    query_time: datetime,
    evidence: Sequence[Evidence],
    *,
    max_tokens: int,
    adapter: str = "",
) -> Draft:
    """Ask for the answer, and read it strictly. Without one the draft says "i don't know" and keeps its evidence."""
    shown = tuple(evidence)
    run.best = Draft(evidence=shown)
    messages = prompt.fill(
        documents=render(shown), query=harmless(query), query_time=query_time.strftime("%A, %d %B %Y, %H:%M %Z")
    )
    spare_s = run.budget.left() / PACE_MARGIN
    prompt_tokens = sum(estimate_tokens(message.content) for message in messages)
    affordable = max(MIN_ANSWER_TOKENS, mesh.pace.affordable_completion(spare_s, prompt_tokens))
    began = time.monotonic()
    try:
        async with run.stage("generate") as stage:
            completion = await mesh.llm.chat(
                messages,
                max_tokens=min(max_tokens, affordable),
                allow_s=run.budget.allow(reserve_s=NAMING_RESERVE_S),
                logprobs=True,
                adapter=adapter,
            )
            seconds = time.monotonic() - began
            stage.inference_ms = seconds * 1000
            stage.detail = f"{completion.prompt_tokens} + {completion.completion_tokens} tokens"
    except ServiceTimeout:
        mesh.pace.observe(prompt_tokens, 0, time.monotonic() - began)
        return run.best
    except ServiceFailure:
        return run.best
    run.spent(completion)
    mesh.pace.observe(completion.prompt_tokens, completion.completion_tokens, seconds)
    sample = completion.samples[0]
    normalized = normalize(sample.text, finished=sample.finish_reason != "length")
    if normalized.kind == "unknown":
        return run.best
    # The mean probability of a token; not yet calibrated against how often such answers are right.
    confidence = math.exp(sample.logprob) if sample.logprob is not None else 0.0
    return Draft(
        answer=normalized.answer,
        kind=normalized.kind,
        confidence=round(min(1.0, max(0.0, confidence)), 4),
        source="web" if shown else "model",
        evidence=shown,
    )


async def read_and_answer(
    run: Run,
    mesh: Mesh,
    prompt: Prompt,
    query: str,
    query_time: datetime,
    evidence: Sequence[Evidence],
    *,
    max_context_tokens: int,
    max_tokens: int,
    adapter: str = "",
) -> Draft:
    """`fit`, then `generate`; evidence that there is no time to read makes an abstention, no evidence does not."""
    shown = await fit(run, mesh, evidence, max_tokens=max_context_tokens)
    if evidence and not shown:
        return run.best
    return await generate(run, mesh, prompt, query, query_time, shown, max_tokens=max_tokens, adapter=adapter)
