"""Step `reason`: one answer out of all references, after a look for a false premise (ElectricSheep, section 4.6, D.5).

Chunks, tables, facts, calculations and the model's own answer stand side by side, each with its source. The reply has a
frame: a little reasoning, whether the premise is false, the answer. The frame is a regular expression and at the same
time JSON, so that a server that knows no constraints may keep to it as well; reasoning is bounded by its words, since
decoding is what a CPU is slow at, and left out where there is no time for it. A reply without the frame goes to the
backup summariser (section 4.7).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proto.answer import AnswerSource
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.normalize import INVALID, UNKNOWN, Normalized, normalize
from services.gateway.question import Question
from services.gateway.run import Draft
from services.gateway.steps.ask import SPEED_MARGIN, Allowance, Request, ask, asked_on, estimate, planned_s, probability
from services.gateway.steps.generate import fit, unread
from services.gateway.steps.summarise import summarise
from services.kit.llm import Constraint, Message, estimate_tokens
from services.kit.prompts import Prompt
from services.kit.untrusted import fence, one_line

# Words of reasoning, and of the answer: CRAG reads 75 tokens. Not characters, because a count of those takes the engine
# 17 s to compile (xgrammar, 280 and 200 of them, two busy cores), a count of words 0.05 s.
REASONING_WORDS = 45
ANSWER_WORDS = 40
# What is read of a server that knows no constraints.
MAX_CHARS = 2_000
# The frame's own tokens and a usual answer's; with reasoning, and without.
FRAMED_TOKENS = 40
REASONING_TOKENS = 80
MAX_TOKENS = 190
# Where there is not even time to read this much, what there is goes into reading more rather than into reasoning.
ENOUGH_CONTEXT_TOKENS = 1_000
# Kept for the summariser when there is time to reason.
SUMMARISE_RESERVE_S = 1.0
# How an answer says that there is none.
_NOTHING = re.compile(
    r"\W*(?:none|nobody|no one|nothing|never|no such|n/?a|not applicable|there (?:is|was) no)\b", re.I
)


class Reasoned(BaseModel):
    """What the frame holds."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    reasoning: str = Field(max_length=MAX_CHARS)
    false_premise: bool
    answer: str = Field(min_length=1, max_length=MAX_CHARS)


@dataclass(frozen=True, slots=True)
class Frame(Constraint):
    """A constraint whose reply is left to `parse`, since what breaks it still serves the summariser."""

    def holds(self, text: str) -> bool:
        return True


def frame(*, wordy: bool) -> Frame:
    """One line of JSON without escapes.

    Args:
        wordy: with reasoning.
    """
    reasoning = _words(REASONING_WORDS) if wordy else ""
    return Frame(
        regex=rf'\{{"reasoning": "{reasoning}", "false_premise": (true|false), "answer": "{_words(ANSWER_WORDS)}"\}}'
    )


def _words(most: int) -> str:
    word = r'[^" \\\n\r\t]+'
    return rf"{word}( {word}){{0,{most - 1}}}"


def parse(text: str) -> Reasoned | None:
    """A reply that is the frame and nothing else; None for all others."""
    try:
        return Reasoned.model_validate_json(text.strip())
    except ValidationError:
        return None


def read(reasoned: Reasoned, *, checks_premise: bool = True) -> Normalized:
    """The answer as CRAG has it: a false premise makes the question invalid, any doubt makes the answer unknown.

    A reply that calls the premise false and answers all the same contradicts itself, which is a doubt: small models do
    so to most questions.

    Args:
        checks_premise: whether the reply's judgement of the premise counts (the paper's ablation leaves it out).
    """
    normalized = normalize(reasoned.answer)
    if not checks_premise and normalized.kind == "invalid_question":
        return Normalized(UNKNOWN, "unknown")
    if not (reasoned.false_premise and checks_premise):
        return normalized
    if normalized.kind == "invalid_question" or _NOTHING.match(reasoned.answer):
        return Normalized(INVALID, "invalid_question")
    return Normalized(UNKNOWN, "unknown")


def references(evidence: Sequence[Evidence]) -> str:
    """All references, each in its fence with its source."""
    return "\n".join(fence(item.text, source=_source(item), title=item.title) for item in evidence)


def _source(item: Evidence) -> str:
    match item.source:
        case "web":
            return "table" if item.kind == "table" else "web page"
        case "kg" | "public_data":
            return "knowledge graph"
        case "calculator":
            return "calculator"
        case "model":
            return "memory"


def chat(prompt: Prompt, question: Question, evidence: Sequence[Evidence]) -> list[Message]:
    """The messages of the step."""
    return prompt.fill(
        documents=references(evidence), query=one_line(question.query), query_time=asked_on(question.query_time)
    )


async def reason(context: Context, prompt: Prompt, backup: Prompt, evidence: Sequence[Evidence]) -> Draft:
    """Answer from all references. Without a reply the draft says "i don't know" and keeps its evidence.

    Args:
        prompt: of this step.
        backup: of the summariser.
        evidence: the most reliable first, since what does not fit into the context is lost from the end.
    """
    run, mesh = context.run, context.mesh
    most = context.context_tokens
    frame_tokens = estimate(chat(prompt, context.question, ()))
    usual = min(estimate_tokens(references(evidence)), most, ENOUGH_CONTEXT_TOKENS)
    seconds = run.budget.allow(reserve_s=SUMMARISE_RESERVE_S) / SPEED_MARGIN
    wordy = mesh.speed.affordable_prompt(seconds, FRAMED_TOKENS + REASONING_TOKENS) >= frame_tokens + usual
    if not wordy:
        run.decide("reason", "time for the answer alone, not for reasoning")
    held = run.hold(unread(evidence))
    shown = await fit(
        context,
        evidence,
        max_tokens=most,
        answer_tokens=FRAMED_TOKENS + (REASONING_TOKENS if wordy else 0),
        reserve_s=planned_s(mesh, frame_tokens, 0) + (SUMMARISE_RESERVE_S if wordy else 0.0),
    )
    if evidence and not shown:
        return held
    silent = run.hold(Draft(evidence=tuple(shown)))
    request = Request(
        "reason",
        chat(prompt, context.question, shown),
        max_tokens=MAX_TOKENS,
        min_tokens=FRAMED_TOKENS,
        optional=False,
        constraint=frame(wordy=wordy),
        logprobs=True,
    )
    completion = await ask(context, request, Allowance(reserve_s=SUMMARISE_RESERVE_S if wordy else 0.0))
    if completion is None:
        return silent
    sample = completion.samples[0]
    reasoned = parse(sample.text)
    if reasoned:
        found: Normalized | None = read(reasoned, checks_premise=context.options.false_premise is not False)
        run.decide("reason", f"premise {'false' if reasoned.false_premise else 'not false'}: {reasoned.answer}")
    else:
        run.decide("reason", "the reply has not the frame that was asked for: the summariser reads it")
        found = await summarise(context, backup, sample.text)
    if found is None or found.kind == "unknown":
        return silent
    return replace(
        silent,
        answer=found.answer,
        kind=found.kind,
        confidence=probability(sample),
        source=origin(found.answer, shown),
    )


def origin(answer: str, evidence: Sequence[Evidence]) -> AnswerSource:
    """Where an answer came from: the first reference that holds it, else the most reliable, else the model itself."""
    holders = [item for item in evidence if answer.casefold() in item.text.casefold()]
    for item in (*holders, *evidence):
        if item.source != "calculator":
            return item.source
    return "model"
