"""Step `lean`: yes or no, by which of the two the generator's reply would rather begin with.

No passage has the words of a yes, so that little speaks for one, and a generator that was taught to be silent where the
documents do not say mostly is. How likely it finds each of the two all the same tells them apart, and both from
neither: of few passages, since the leaning fades behind many.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from proto.answer import AnswerSource
from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.question import asks_whether, plain
from services.gateway.run import Draft
from services.gateway.steps.ask import Request, ask
from services.gateway.steps.generate import TAUGHT_PROMPT, chat, fit, serves_adapter
from services.kit.llm import Message

# A generator that finds both less likely does not lean to either.
LEAST = 0.05
# Likeliest tokens that servers tell.
ALTERNATIVES = 20
# Tokens of the passages.
CONTEXT_TOKENS = 600
PROMPT = prompts.load(TAUGHT_PROMPT)


@dataclass(frozen=True, slots=True)
class Leaning:
    """Probabilities that a reply begins with yes, and with no."""

    yes: float
    no: float

    @property
    def answer(self) -> Literal["yes", "no"]:
        return "yes" if self.yes > self.no else "no"

    @property
    def signals(self) -> Mapping[str, float]:
        """See `data/signals.yaml`."""
        odds = max(self.yes, self.no) / max(min(self.yes, self.no), 1e-3)
        return {"leans": self.yes + self.no, "leans_one_way": math.log(max(odds, 1.0))}


async def yes_or_no(context: Context, passages: Sequence[Evidence], source: AnswerSource) -> Draft | None:
    """Yes or no, where the question wants it and the generator leans to one of them firmly enough; else None.

    Args:
        source: of the passages.
    """
    mesh, question, adapter = context.mesh, context.question, context.settings.web_answer_adapter
    query = plain(question.query)
    if not asks_whether(query) or not await serves_adapter(context, adapter):
        return None
    model = mesh.calibration.own(mesh.llm.model, adapter)
    head = model.whether if model is not None else None
    # How firmly is known of this very generator, or does not matter.
    best = (
        await fit(context, passages, max_tokens=context.within_context(CONTEXT_TOKENS))
        if head or context.gives_all
        else []
    )
    leaning = await lean(context, chat(PROMPT, query, question.query_time, best), adapter) if best else None
    if leaning is None:
        return None
    chance = head.probability(leaning.signals) if head else max(leaning.yes, leaning.no)
    threshold = head.thresholds[context.settings.caution] if head and not context.gives_all else 0.0
    context.run.decide("lean", f"{leaning.answer} with {chance:.2f}, given from {threshold:.2f} on")
    if chance < threshold:
        return None
    context.run.signals = dict(leaning.signals)
    return Draft(leaning.answer, "answer", round(chance, 4), source, tuple(best))


async def lean(context: Context, messages: Sequence[Message], adapter: str) -> Leaning | None:
    """The generator's leaning in reply to messages that ask for yes or no; None where it leans to neither."""
    request = Request("lean", messages, 1, 1, adapter=adapter, logprobs=True, alternatives=ALTERNATIVES)
    completion = await ask(context, request)
    first = completion.samples[0].first if completion is not None else {}
    leaning = Leaning(first.get("yes", 0.0), first.get("no", 0.0))
    return leaning if leaning.yes + leaning.no >= LEAST else None
