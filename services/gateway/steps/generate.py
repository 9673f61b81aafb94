"""Step `generate`: the answer, from the passages that the time left can pay for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.gateway.context import Context
from services.gateway.evidence import Evidence, cut, cut_by_estimate, render
from services.gateway.normalize import normalize
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import NAMING_RESERVE_S, SPEED_MARGIN, Allowance, Request, ask, asked_on, probability
from services.kit.errors import ServiceFailure
from services.kit.llm import Message, log_missing
from services.kit.prompts import Prompt
from services.kit.untrusted import one_line

# Asking the tokenizer is a look-up, not inference: one that takes longer is in trouble.
TOKENIZE_CAP_S = 3.0
# Shorter contexts than this answer nothing that the model could not say without them.
MIN_CONTEXT_TOKENS = 64
# Most answers are shorter; one that is not is cut where the time for it ends.
PLANNED_ANSWER_TOKENS = 25
MIN_ANSWER_TOKENS = 8
# What adapters of the answer are trained under (`cragmesh train synthesise`): short, since what the others ask for was
# learnt, and every token is read again with each question.
TAUGHT_PROMPT = "answer_adapter"
# The generator's list of adapters is remembered: asking for it is rare, and never worth a wait.
ADAPTERS_CAP_S = 0.5
NAMED_BY_DEFAULT = frozenset(
    GatewaySettings.model_fields[name].default for name in ("web_answer_adapter", "kg_answer_adapter")
)
# Cited by an abstention that had no time to read them.
UNREAD_CITATIONS = 5


@dataclass(frozen=True, slots=True)
class Generation:
    """How an answer is generated.

    Args:
        max_context_tokens: of the passages.
        max_tokens: of the answer.
        hint: what to mind in questions of this kind, where the prompt has a place for it.
    """

    prompt: Prompt
    max_context_tokens: int
    max_tokens: int
    adapter: str = ""
    hint: str = ""


def unread(evidence: Sequence[Evidence]) -> Draft:
    """An abstention that shows what was found."""
    return Draft(evidence=tuple(evidence[:UNREAD_CITATIONS]))


async def fit(
    context: Context,
    evidence: Sequence[Evidence],
    *,
    max_tokens: int,
    answer_tokens: int = PLANNED_ANSWER_TOKENS,
    reserve_s: float = 0.0,
) -> list[Evidence]:
    """The best passages within `max_tokens` and within what the generator can read in the time left.

    None of them when there is no time to read any: an answer without them would be a guess that looks grounded.

    Args:
        answer_tokens: how long the answer is planned to be.
        reserve_s: seconds left to what comes after the answer.
    """
    if not evidence:
        return []
    run, mesh = context.run, context.mesh
    affordable = mesh.speed.affordable_prompt(run.budget.allow(reserve_s=reserve_s) / SPEED_MARGIN, answer_tokens)
    if affordable < min(max_tokens, MIN_CONTEXT_TOKENS):
        mesh.speed.regress()
        run.skip("context", f"time for {affordable} prompt tokens only")
        return []
    limit = min(max_tokens, affordable)
    try:
        async with run.stage("tokenize"):
            # A generator that hangs leaves time to those who do without it.
            allow_s = run.budget.allow(min(TOKENIZE_CAP_S, run.budget.left() / 2), reserve_s=NAMING_RESERVE_S)
            shown = await cut(evidence, limit, mesh.llm, allow_s=allow_s)
    except ServiceFailure:
        shown = cut_by_estimate(evidence, limit)
    if limit < max_tokens and [item.text for item in shown] != [item.text for item in evidence]:
        run.degrade("context", "skipped", f"cut at {limit} of {max_tokens} tokens for want of time")
    return shown


async def taught(context: Context, adapter: str) -> bool:
    """Whether the generator serves an adapter; without it the base model answers, under a prompt that says more.

    A generator that cannot say is named in `degraded`: what follows may find no time to ask it anything else. So is an
    adapter that should be there: one that somebody chose, or that is made for this very model. The adapter that is
    named by default no other generator has, and the log says so, once.
    """
    if not adapter:
        return False
    run, mesh = context.run, context.mesh
    try:
        served = await mesh.llm.serves(adapter, allow_s=run.budget.allow(ADAPTERS_CAP_S, reserve_s=NAMING_RESERVE_S))
    except ServiceFailure as failure:
        run.degrade(failure.service, failure.reason, failure.detail)
        return False
    if not served:
        if adapter not in NAMED_BY_DEFAULT or mesh.calibration.own(mesh.llm.model, adapter):
            # A confidence that was fitted on an adapter's answers tells whose adapter it is.
            run.degrade(f"adapter:{adapter}", "unavailable", "the base model replied")
        else:
            log_missing(adapter, mesh.llm.model)
    return served


def chat(
    prompt: Prompt, query: str, query_time: datetime, evidence: Sequence[Evidence], *, hint: str = ""
) -> list[Message]:
    """The messages that ask for an answer."""
    return prompt.fill(documents=render(evidence), query=one_line(query), query_time=asked_on(query_time), hint=hint)


async def generate(
    context: Context, generation: Generation, evidence: Sequence[Evidence], *, reserve_s: float = 0.0
) -> Draft:
    """Ask for the answer, and read it strictly. Without one the draft says "i don't know" and keeps its evidence.

    Args:
        reserve_s: seconds left to what comes after the answer.
    """
    question = context.question
    silent = context.run.hold(Draft(evidence=tuple(evidence)))
    request = Request(
        "generate",
        chat(generation.prompt, question.query, question.query_time, evidence, hint=generation.hint),
        max_tokens=generation.max_tokens,
        min_tokens=MIN_ANSWER_TOKENS,
        optional=False,
        adapter=generation.adapter,
        logprobs=True,
    )
    completion = await ask(context, request, Allowance(reserve_s=reserve_s))
    if completion is None:
        return silent
    sample = completion.samples[0]
    normalized = normalize(sample.text, finished=sample.finish_reason != "length")
    if normalized.kind == "unknown":
        return silent
    return replace(
        silent,
        answer=normalized.answer,
        kind=normalized.kind,
        confidence=probability(sample),
        source="web" if evidence else "model",
    )


async def read_and_answer(
    context: Context, generation: Generation, evidence: Sequence[Evidence], *, reserve_s: float = 0.0
) -> Draft:
    """`fit`, then `generate`; evidence that there is no time to read makes an abstention, no evidence does not."""
    held = context.run.hold(unread(evidence))
    shown = await fit(context, evidence, max_tokens=generation.max_context_tokens, reserve_s=reserve_s)
    if evidence and not shown:
        return held
    return await generate(context, generation, shown, reserve_s=reserve_s)
