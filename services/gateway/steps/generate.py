"""Step `generate`: the answer, from as many passages as the generator can read in the time left."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.gateway.confidence import name_of
from services.gateway.context import Context
from services.gateway.evidence import Evidence, cut, cut_by_estimate, render
from services.gateway.normalize import normalize_sample
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import NAMING_RESERVE_S, Allowance, Request, ask, fill, probability
from services.kit.errors import ServiceFailure
from services.kit.llm import Completion, Constraint, Message, log_missing
from services.kit.prompts import Prompt

# Before the name of an adapter that the generator lacks, in `degraded`.
ADAPTER_STAGE = "adapter:"

# A tokenizer does no inference: one that takes longer is in trouble.
TOKENIZE_CAP_S = 3.0
# Shorter contexts add nothing to what the model knows.
MIN_CONTEXT_TOKENS = 64
# Most answers are shorter; a longer one is cut where its time ends.
PLANNED_ANSWER_TOKENS = 25
MIN_ANSWER_TOKENS = 8
# The prompt that adapters of the answer are trained with (`cragmesh train synthesise`): short, since the adapter has
# learnt what other prompts spell out, and each question pays for every token.
TAUGHT_PROMPT = "answer_adapter"
# The list of adapters is cached; a slow reply is not worth the wait.
ADAPTERS_CAP_S = 0.5
NAMED_BY_DEFAULT = frozenset(
    GatewaySettings.model_fields[name].default for name in ("web_answer_adapter", "kg_answer_adapter", "yes_no_adapter")
)
# Passages that an abstention cites where there was no time to read them.
UNREAD_CITATIONS = 5


@dataclass(frozen=True, slots=True)
class Generation:
    """How an answer is generated.

    Args:
        max_context_tokens: of the passages; 0 takes the context's.
        max_tokens: of the answer; 0 takes the settings'.
        hint: advice for questions of this kind, where the prompt has a place for it.
    """

    prompt: Prompt
    max_context_tokens: int = 0
    max_tokens: int = 0
    adapter: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Hint(Constraint):
    """A constraint for the server's decoding alone: any reply is accepted, and read by a parser of the step's own."""

    def holds(self, text: str) -> bool:
        return True


def unread(evidence: Sequence[Evidence]) -> Draft:
    """An abstention that cites the best passages."""
    return Draft(evidence=tuple(evidence[:UNREAD_CITATIONS]))


async def fit(
    context: Context,
    evidence: Sequence[Evidence],
    *,
    max_tokens: int,
    answer_tokens: int = PLANNED_ANSWER_TOKENS,
    reserve_s: float = 0.0,
) -> list[Evidence]:
    """The best passages within `max_tokens` that the generator can read in the time left.

    Empty when there is no time to read any: an answer without them would be a guess that looks grounded.

    Args:
        answer_tokens: planned length of the answer.
        reserve_s: for the steps after the answer.
    """
    if not evidence:
        return []
    run, mesh = context.run, context.mesh
    affordable = mesh.speed.affordable_prompt(run.budget.allow(reserve_s=reserve_s), answer_tokens)
    if affordable < min(max_tokens, MIN_CONTEXT_TOKENS):
        mesh.speed.regress()
        run.skip("generate", f"time for {affordable} prompt tokens only")
        return []
    limit = min(max_tokens, affordable)
    passages = await shorten(context, evidence, limit)
    if not passages:
        run.degrade("context", "skipped", f"no passage fits into {limit} tokens")
    elif limit < max_tokens and [item.text for item in passages] != [item.text for item in evidence]:
        run.degrade("context", "skipped", f"cut at {limit} of {max_tokens} tokens for want of time")
    return passages


async def shorten(
    context: Context, evidence: Sequence[Evidence], limit: int, *, reserve_s: float = NAMING_RESERVE_S
) -> list[Evidence]:
    """The best passages within `limit` tokens: by the generator's tokenizer, or by an estimate where it fails."""
    run = context.run
    try:
        async with run.stage("tokenize"):
            # A generator that hangs leaves time to the steps that do without it.
            allow_s = run.budget.allow(min(TOKENIZE_CAP_S, run.budget.left() / 2), reserve_s=reserve_s)
            return await cut(evidence, limit, context.mesh.llm, allow_s=allow_s)
    except ServiceFailure:
        return cut_by_estimate(evidence, limit)


async def serves_adapter(context: Context, adapter: str, *, otherwise: str = "") -> bool:
    """Whether the generator serves an adapter; without it another answers, or the base model by a more detailed prompt.

    `degraded` names a generator that fails to tell, and a missing adapter that somebody chose or that was made for this
    very model. Other generators cannot have the default adapter: the log says so, once.

    Args:
        otherwise: the adapter that answers in its place.
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
            # A confidence fitted on an adapter's answers shows that the adapter is this model's.
            run.degrade(f"{ADAPTER_STAGE}{adapter}", "unavailable", f"{otherwise or 'the base model'} replied")
        else:
            log_missing(adapter, otherwise or mesh.llm.model)
    return served


def chat(
    prompt: Prompt, query: str, query_time: datetime, evidence: Sequence[Evidence], *, hint: str = ""
) -> list[Message]:
    """The messages that ask for an answer."""
    return fill(prompt, query, query_time, documents=render(evidence), hint=hint)


async def complete(
    context: Context,
    messages: Sequence[Message],
    *,
    max_tokens: int,
    adapter: str = "",
    reserve_s: float = 0.0,
    cached_tokens: int = 0,
) -> Completion | None:
    """The generator's reply to messages that ask for an answer; tried even where the time allows hardly any."""
    request = Request(
        "generate",
        messages,
        max_tokens,
        MIN_ANSWER_TOKENS,
        optional=False,
        cached_tokens=cached_tokens,
        adapter=adapter,
        logprobs=True,
    )
    completion = await ask(context, request, Allowance(reserve_s=reserve_s))
    if completion and normalize_sample(completion.samples[0]).cut:
        context.run.degrade("generate", "skipped", "the end of the answer, which reached its limit of tokens")
    return completion


async def generate(
    context: Context, generation: Generation, evidence: Sequence[Evidence], *, reserve_s: float = 0.0
) -> Draft:
    """The generator's answer, read strictly; an abstention with the evidence where it gives none."""
    question = context.question
    abstention = context.run.hold(Draft(evidence=tuple(evidence)))
    messages = chat(generation.prompt, question.query, question.query_time, evidence, hint=generation.hint)
    max_tokens = generation.max_tokens or context.settings.max_answer_tokens
    completion = await complete(
        context, messages, max_tokens=max_tokens, adapter=generation.adapter, reserve_s=reserve_s
    )
    if completion is None:
        return abstention
    sample = completion.samples[0]
    normalized = normalize_sample(sample)
    replied = replace(abstention, generator=name_of(context.mesh.llm.model, completion.adapter))
    if normalized.kind == "unknown":
        return replied
    return replace(
        replied,
        answer=normalized.answer,
        kind=normalized.kind,
        confidence=probability(sample),
        source="web" if evidence else "model",
    )


async def read_and_answer(
    context: Context, generation: Generation, evidence: Sequence[Evidence], *, reserve_s: float = 0.0
) -> Draft:
    """`fit`, then `generate`; an abstention where there is no time to read the evidence."""
    abstention = context.run.hold(unread(evidence))
    max_tokens = generation.max_context_tokens or context.context_tokens
    passages = await fit(context, evidence, max_tokens=max_tokens, reserve_s=reserve_s)
    if evidence and not passages:
        return abstention
    return await generate(context, generation, passages, reserve_s=reserve_s)
