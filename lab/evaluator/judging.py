"""Judges all predictions of a run, and compares two judges."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass

from lab.evaluator.drive import case_of
from lab.evaluator.judge import rules
from lab.evaluator.judge.verdict import Case, Verdict
from lab.evaluator.store import Judgement, Prediction
from services.kit.concurrency import all_of

Judge = Callable[[Case], Awaitable[Verdict]]
JUDGES = ("rules", "llm")


def by_rules(predictions: Iterable[Prediction]) -> dict[str, Judgement]:
    """Verdicts of the judge `rules`, by question id."""
    return {line.id: _judgement(line, rules.judge(case_of(line))) for line in predictions}


async def by_model(
    predictions: Iterable[Prediction], judge: Judge, *, concurrency: int, on_done: Callable[[], None] = lambda: None
) -> dict[str, Judgement]:
    """Verdicts of a judge that must be waited for, a few at a time, by question id.

    Raises:
        EvaluatorError: the judge is gone.
    """
    rest: Iterator[Prediction] = iter(predictions)
    judgements: dict[str, Judgement] = {}

    async def work() -> None:
        for line in rest:
            judgements[line.id] = _judgement(line, await judge(case_of(line)))
            on_done()

    await all_of(work() for _ in range(concurrency))
    return judgements


def _judgement(line: Prediction, verdict: Verdict) -> Judgement:
    return Judgement(id=line.id, outcome=verdict.outcome, by=verdict.by, reason=verdict.reason, of=digest_of(line))


def digest_of(line: Prediction) -> str:
    """A digest of what a judge sees of a prediction."""
    return hashlib.sha256(json.dumps([line.query, line.gold, line.prediction]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two judges on the answers that the protocol does not decide: shares, and Cohen's kappa."""

    pairs: int
    agree: int
    both_right: int
    only_first: int
    only_second: int

    @property
    def share(self) -> float:
        return self.agree / self.pairs if self.pairs else 0.0

    @property
    def kappa(self) -> float:
        """Agreement beyond what chance would bring; 0 when one of them always says the same."""
        if not self.pairs:
            return 0.0
        first = (self.both_right + self.only_first) / self.pairs
        second = (self.both_right + self.only_second) / self.pairs
        chance = first * second + (1 - first) * (1 - second)
        return (self.share - chance) / (1 - chance) if chance < 1 else 0.0


def agreement(first: dict[str, Judgement], second: dict[str, Judgement]) -> Agreement:
    """How often two judges give the same verdict on the answers that the protocol does not decide."""
    ids = [name for name, line in first.items() if line.by != "protocol" and name in second]
    right = [(first[name].outcome == "right", second[name].outcome == "right") for name in ids]
    return Agreement(
        pairs=len(right),
        agree=sum(one == two for one, two in right),
        both_right=sum(one and two for one, two in right),
        only_first=sum(one and not two for one, two in right),
        only_second=sum(two and not one for one, two in right),
    )
