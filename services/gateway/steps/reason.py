"""Step `reason`: one answer out of all references, after a check of the premise (ElectricSheep, section 4.6, D.5).

Chunks, tables, facts, calculations and the model's own answer stand side by side, each with its source. The reply has a
frame: a little reasoning, whether the premise is false, the answer. The frame is a regular expression of JSON, so that
a server without constraints can keep to it too. Reasoning is bounded by its words, since a CPU decodes slowly, and left
out where there is no time for it. A reply without the frame goes to the backup summariser (section 4.7).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proto.answer import AnswerSource
from services.gateway import prompts
from services.gateway.confidence import name_of
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.normalize import INVALID, UNKNOWN, Normalized, normalize, normalize_sample
from services.gateway.question import Question
from services.gateway.run import Draft
from services.gateway.steps.ask import Allowance, Request, ask, estimate, fill, probability
from services.gateway.steps.generate import Hint, fit, unread
from services.kit.llm import Message
from services.kit.tokens import estimate_tokens
from services.kit.untrusted import fence, one_line

PROMPT, SUMMARISE = prompts.load("reason"), prompts.load("summarise")
# The answer's are CRAG's 75 tokens. Words and not characters: a count of those takes the engine 17 s to compile
# (xgrammar, 280 and 200 of them, two busy cores), a count of words 0.05 s.
REASONING_WORDS = 45
ANSWER_WORDS = 40
# For servers without constraints.
MAX_CHARS = 2_000
# Of the frame with a usual answer; of the reasoning in it.
FRAMED_TOKENS = 40
REASONING_TOKENS = 80
MAX_TOKENS = 190
# Reasoning is left out where it would cost context below this.
ENOUGH_CONTEXT_TOKENS = 1_000
# For the summariser, when there is time to reason.
SUMMARISE_RESERVE_S = 1.0
SUMMARISE_TOKENS, MIN_SUMMARY_TOKENS = 40, 6
# The last of the notes, which conclude them.
MAX_NOTES_CHARS = 1_500
# Answers that deny that there is one.
_NOTHING = re.compile(
    r"\W*(?:none|nobody|no one|nothing|never|no such|n/?a|not applicable|there (?:is|was) no)\b", re.I
)
# Of words that have ends: a Chinese one stands among others.
_LETTER = "[0-9a-z\u00df-\u024f]"


class Reasoned(BaseModel):
    """The content of the frame."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    reasoning: str = Field(max_length=MAX_CHARS)
    false_premise: bool
    answer: str = Field(min_length=1, max_length=MAX_CHARS)


def frame(*, wordy: bool) -> Hint:
    """One line of JSON without escapes, with reasoning where it is `wordy`; `parse` reads it."""
    reasoning = _words(REASONING_WORDS) if wordy else ""
    return Hint(
        regex=rf'\{{"reasoning": "{reasoning}", "false_premise": (true|false), "answer": "{_words(ANSWER_WORDS)}"\}}'
    )


def _words(limit: int) -> str:
    word = r'[^" \\\n\r\t]+'
    return rf"{word}( {word}){{0,{limit - 1}}}"


def parse(text: str) -> Reasoned | None:
    """The content of a reply that is the frame and nothing else; None for all others."""
    try:
        return Reasoned.model_validate_json(text.strip())
    except ValidationError:
        return None


def read(reasoned: Reasoned, *, checks_premise: bool = True) -> Normalized:
    """The normalised answer: a false premise makes the question invalid, any doubt makes the answer unknown.

    A reply that calls the premise false and answers all the same is a doubt: small models reply so to most questions.

    Args:
        checks_premise: whether the reply's judgement of the premise counts (the paper's ablation leaves it out).
    """
    normalized = normalize(reasoned.answer)
    if not (reasoned.false_premise and checks_premise):
        return normalized
    if normalized.kind == "invalid_question" or _NOTHING.match(reasoned.answer):
        return Normalized(INVALID, "invalid_question")
    return Normalized(UNKNOWN, "unknown")


def references(evidence: Sequence[Evidence]) -> str:
    """All references, each in its fence with its source."""
    return "\n".join(fence(item.shown, source=_source(item), title=item.title) for item in evidence)


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


def chat(question: Question, evidence: Sequence[Evidence]) -> list[Message]:
    return fill(PROMPT, question.query, question.query_time, documents=references(evidence))


async def reason(context: Context, evidence: Sequence[Evidence]) -> Draft:
    """The answer from all references; an abstention with the evidence where the generator gives none.

    Args:
        evidence: the most reliable first, since the context is cut at its end.
    """
    run, mesh = context.run, context.mesh
    frame_tokens = estimate(chat(context.question, ()))
    usual_tokens = min(estimate_tokens(references(evidence)), context.context_tokens, ENOUGH_CONTEXT_TOKENS)
    seconds = run.budget.allow(reserve_s=SUMMARISE_RESERVE_S)
    wordy = mesh.speed.affordable_prompt(seconds, FRAMED_TOKENS + REASONING_TOKENS) >= frame_tokens + usual_tokens
    if not wordy:
        run.decide("reason", "time for the answer alone, not for reasoning")
    abstention = run.hold(unread(evidence))
    reserve_s = SUMMARISE_RESERVE_S if wordy else 0.0
    passages = await fit(
        context,
        evidence,
        max_tokens=context.context_tokens,
        answer_tokens=FRAMED_TOKENS + (REASONING_TOKENS if wordy else 0),
        reserve_s=mesh.speed.planned_s(frame_tokens, 0) + reserve_s,
    )
    if evidence and not passages:
        return abstention
    abstention = run.hold(Draft(evidence=tuple(passages)))
    request = Request(
        "reason",
        chat(context.question, passages),
        max_tokens=MAX_TOKENS,
        min_tokens=FRAMED_TOKENS,
        optional=False,
        constraint=frame(wordy=wordy),
        logprobs=True,
    )
    completion = await ask(context, request, Allowance(reserve_s=reserve_s))
    if completion is None:
        return abstention
    abstention = replace(abstention, generator=name_of(mesh.llm.model))
    sample = completion.samples[0]
    reasoned = parse(sample.text)
    if reasoned:
        normalized: Normalized | None = read(reasoned, checks_premise=context.options.false_premise is not False)
        run.decide("reason", f"premise {'false' if reasoned.false_premise else 'not false'}: {reasoned.answer}")
    else:
        run.decide("reason", "the reply has not the frame that was asked for: the summariser reads it")
        normalized = await summarise(context, sample.text)
    if normalized is None or normalized.kind == "unknown":
        return abstention
    return replace(
        abstention,
        answer=normalized.answer,
        kind=normalized.kind,
        confidence=probability(sample),
        source=origin(normalized.answer, passages),
    )


async def summarise(context: Context, notes: str) -> Normalized | None:
    """The answer that the notes arrive at; None when the generator gave no reply (section 4.7)."""
    messages = SUMMARISE.fill(
        documents=fence(notes[-MAX_NOTES_CHARS:], title="notes"), query=one_line(context.question.query)
    )
    completion = await ask(context, Request("summarise", messages, SUMMARISE_TOKENS, MIN_SUMMARY_TOKENS))
    return None if completion is None else normalize_sample(completion.samples[0])


def origin(answer: str, evidence: Sequence[Evidence]) -> AnswerSource:
    """The source of an answer: the first reference that holds it in whole words, else the most reliable.

    What the model remembers counts where nothing else does.
    """
    words = re.compile(rf"(?<!{_LETTER}){re.escape(answer.casefold())}(?!{_LETTER})")
    references = sorted(evidence, key=lambda item: item.source == "model")
    holders = [item for item in references if words.search(item.text.casefold())]
    for item in (*holders, *references):
        if item.source != "calculator":
            return item.source
    return "model"
