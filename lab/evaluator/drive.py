"""Asks a running mesh all questions of a source, a few at a time, and writes each answer as it comes."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from lab.evaluator.data import Item
from lab.evaluator.judge import rules
from lab.evaluator.judge.verdict import WEIGHTS, Case, Outcome
from lab.evaluator.mesh import MeshClient, NoAnswer
from lab.evaluator.store import AppendLog, Passage, Prediction
from lab.evaluator.tokens import TokenCutter
from proto.answer import AnswerResponse
from proto.options import Options
from services.kit.concurrency import all_of

_WORD = re.compile(r"\w+")
# Fields that a prediction takes over from its question.
_OF_ITEM = tuple(Item.__dataclass_fields__.keys() & Prediction.model_fields.keys())


@dataclass(slots=True)
class Progress:
    """How far a run is; outcomes are those of the judge `rules`, which takes no time."""

    earlier: int = 0
    asked: int = 0
    failed: int = 0
    out_of_time: bool = False
    outcomes: dict[Outcome, int] = field(default_factory=lambda: {"right": 0, "missing": 0, "wrong": 0})

    @property
    def done(self) -> int:
        return self.earlier + self.asked

    @property
    def score(self) -> float:
        """CRAG's score so far, of all questions that are done."""
        judged = sum(self.outcomes.values())
        return sum(WEIGHTS[outcome] * count for outcome, count in self.outcomes.items()) / judged if judged else 0.0

    def count(self, prediction: Prediction) -> None:
        self.outcomes[rules.judge(case_of(prediction)).outcome] += 1


OnProgress = Callable[[Progress], None]


def case_of(prediction: Prediction) -> Case:
    """The judge's view of a prediction."""
    return Case(prediction.query, prediction.gold, prediction.prediction, prediction.label_kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the questions are asked.

    Args:
        strategy: a name from `GET /strategies`; the gateway's default when empty.
        budget_s: seconds that each answer may take.
        concurrency: questions in flight at once.
        every_answer: whether answers are given whatever their probability, with all their signals.
        options: knobs of the strategy.
        keep_contexts: whether the generator's passages are kept, for labels.
    """

    strategy: str = ""
    budget_s: float = 30.0
    concurrency: int = 2
    every_answer: bool = False
    options: Options = field(default_factory=Options)
    keep_contexts: bool = False


async def drive(
    items: Iterator[Item],
    log: AppendLog,
    predict: Callable[[Item], Awaitable[Prediction]],
    progress: Progress,
    on_progress: OnProgress,
    *,
    concurrency: int,
    until: float,
) -> None:
    """Ask every item and write its line.

    Args:
        predict: asks one, as `ask` does.
        until: the monotonic time after which no further question is asked.

    Raises:
        EvaluatorError: why it ended before the last question; all that was answered is written.
    """
    reading = asyncio.Lock()

    async def work() -> None:
        while True:
            if time.monotonic() >= until:
                progress.out_of_time = True
                return
            async with reading:
                item = await asyncio.to_thread(next, items, None)
            if item is None:
                return
            prediction = await predict(item)
            await asyncio.to_thread(keep, prediction)
            progress.asked += 1
            progress.failed += bool(prediction.error)
            on_progress(progress)

    def keep(prediction: Prediction) -> None:
        log.append(prediction)
        progress.count(prediction)

    # One reason is enough: the others are the same one, met by other workers.
    await all_of(work() for _ in range(concurrency))


async def ask(item: Item, mesh: MeshClient, cutter: TokenCutter, asking: Asking) -> Prediction:
    """One question's line, with or without an answer.

    Raises:
        EvaluatorError: there is no mesh to ask any more.
    """
    body = await asyncio.to_thread(_encode, item, asking)
    began = time.monotonic()
    try:
        response, attempts = await mesh.ask(body, budget_s=asking.budget_s)
    except NoAnswer as failure:
        seconds = _since(began)
        return _line(item, strategy=asking.strategy, error=str(failure), attempts=failure.attempts, seconds=seconds)
    seconds = _since(began)
    prediction = await cutter.cut(response.answer)
    return _line(
        item,
        prediction=prediction,
        answer=response.answer if prediction != response.answer else None,
        kind=response.kind,
        confidence=response.confidence,
        source=response.source,
        strategy=response.strategy,
        generator=response.generator,
        citations=len(response.citations),
        citation_scores=tuple(round(citation.score, 5) for citation in response.citations),
        shown=_passages(response) if asking.keep_contexts else (),
        support=round(support(response), 4),
        signals={name: round(value, 5) for name, value in response.signals.items()},
        classification=response.classification,
        degraded=tuple(f"{entry.stage}={entry.reason}" for entry in response.degraded),
        timings={name: timing.elapsed_ms for name, timing in response.timings.items()},
        llm_calls=response.usage.llm_calls,
        prompt_tokens=response.usage.prompt_tokens,
        completion_tokens=response.usage.completion_tokens,
        seconds=seconds,
        attempts=attempts,
    )


def _passages(response: AnswerResponse) -> tuple[Passage, ...]:
    return tuple(Passage(text=one.text, page_name=one.page_name, source=one.source) for one in response.citations)


def _encode(item: Item, asking: Asking) -> bytes:
    body = item.body | {"strategy": asking.strategy, "budget_s": asking.budget_s, "interaction_id": item.id[:200]}
    if asking.every_answer:
        body["every_answer"] = True
    if asking.options.given:
        body["options"] = asking.options.model_dump(exclude_none=True)
    return json.dumps(body).encode()


def _line(item: Item, **outcome: object) -> Prediction:
    return Prediction.model_validate({name: getattr(item, name) for name in _OF_ITEM} | outcome)


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)


def support(response: AnswerResponse) -> float:
    """The largest share of the answer's words that one cited passage holds, 0 without citations."""
    words = set(_WORD.findall(response.answer.lower()))
    if not words or response.kind != "answer":
        return 0.0
    shares = (len(words & set(_WORD.findall(item.text.lower()))) / len(words) for item in response.citations)
    return max(shares, default=0.0)
