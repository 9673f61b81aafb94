"""A confidence for any generator: fitted on several, reported on one that is not among them.

Log-probabilities enter as ranks within each generator's own run, as the gateway ranks them among its latest answers.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from lab.evaluator.calibrate import Earned, Floats, Table, TooLittle, earned, fit, sides, table, unseen
from lab.evaluator.store import Judgement, Prediction
from services.kit.caution import Caution

LEAST_GENERATORS = 2
LOGPROBS = ("logprob_mean", "logprob_min", "logprob_first")

Judged = Sequence[tuple[Prediction, Judgement]]


def ranked(judged: Judged) -> list[tuple[Prediction, Judgement]]:
    """A run of one generator, its log-probabilities ranked among those of its own answers."""
    answers = [line.signals for line, _ in judged if line.kind == "answer"]
    orders = {name: np.sort([signals[name] for signals in answers if name in signals]) for name in LOGPROBS}
    return [
        (line.model_copy(update={"signals": line.signals | _ranks(line.signals, orders)}), judgement)
        for line, judgement in judged
    ]


def _ranks(signals: Mapping[str, float], orders: Mapping[str, Floats]) -> dict[str, float]:
    return {
        f"{name}_rank": float(np.searchsorted(order, signals[name]) + np.searchsorted(order, signals[name], "right"))
        / (2 * len(order))
        for name, order in orders.items()
        if name in signals and len(order)
    }


def pool(runs: Mapping[str, Judged], names: Collection[str]) -> Table:
    """The answers of several generators in one table.

    Args:
        runs: judged runs by generator.
        names: the signals that mean the same for all.

    Raises:
        TooLittle: there are too few generators, or too few answers.
    """
    if len(runs) < LEAST_GENERATORS:
        raise TooLittle(f"runs of {len(runs)} generator; {LEAST_GENERATORS} are needed, and better one more")
    return table([pair for judged in runs.values() for pair in ranked(judged)]).of_signals(names)


def transfer(runs: Mapping[str, Judged], names: Collection[str], caution: Caution = "balanced") -> dict[str, Earned]:
    """For each generator what a confidence earns on it that was fitted on the others, by halves of the questions.

    Raises:
        TooLittle: there are too few answers.
    """
    tables = {name: table(ranked(judged)).of_signals(names) for name, judged in runs.items()}
    transferred = {}
    for name, own in tables.items():
        others = table([pair for other, judged in runs.items() if other != name for pair in ranked(judged)])
        transferred[name] = _transferred(others.of_signals(names), own, caution)
    return transferred


def _transferred(others: Table, own: Table, caution: Caution) -> Earned:
    parts = []
    for side in (0, 1):
        fitted = fit(others.only(sides(others) == side))
        target = own.only(sides(own) != side)
        parts.append((len(target.ids), earned(fitted, target, *unseen(fitted, target), caution)))
    total = sum(count for count, _ in parts)

    def mean(name: str) -> float:
        return float(sum(count * getattr(part, name) for count, part in parts) / total)

    return Earned(mean("score"), mean("right"), mean("wrong"), mean("ungated"))
