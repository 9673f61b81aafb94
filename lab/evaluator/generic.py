"""A confidence for any generator: fitted on several, reported on one that is not among them.

Log-probabilities enter as ranks within each generator's own run, as the gateway ranks them among its latest answers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple

import numpy as np

from lab.evaluator.calibrate import Earned, Table, TooLittle, apply, fit, sides, table
from lab.evaluator.store import Judgement, Prediction

LEAST_GENERATORS = 2
LOGPROBS = ("logprob_mean", "logprob_min", "logprob_first")

Judged = Sequence[tuple[Prediction, Judgement]]


def ranked(judged: Judged) -> list[tuple[Prediction, Judgement]]:
    """A run of one generator, its log-probabilities ranked among those of its own answers."""
    answers = [line.signals for line, _ in judged if line.kind == "answer"]
    orders = {name: np.sort([signals[name] for signals in answers if name in signals]) for name in LOGPROBS}

    def ranks(signals: Mapping[str, float]) -> dict[str, float]:
        return {
            f"{name}_rank": float(np.mean([np.searchsorted(order, signals[name], side) for side in ("left", "right")]))
            / len(order)
            for name, order in orders.items()
            if name in signals and len(order)
        }

    return [
        (line.model_copy(update={"signals": line.signals | ranks(line.signals)}), judgement)
        for line, judgement in judged
    ]


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


def transfer(runs: Mapping[str, Judged], names: Collection[str]) -> dict[str, Earned]:
    """For each generator what a confidence earns on it that was fitted on the others, by halves of the questions.

    Raises:
        TooLittle: there are too few answers.
    """
    tables = {name: table(ranked(judged)).of_signals(names) for name, judged in runs.items()}
    transferred = {}
    for name, own in tables.items():
        others = table([pair for other, judged in runs.items() if other != name for pair in ranked(judged)])
        transferred[name] = _transferred(others.of_signals(names), own)
    return transferred


def _transferred(others: Table, own: Table) -> Earned:
    parts = []
    for side in (0, 1):
        fitted = fit(others.only(sides(others) == side))
        target = own.only(sides(own) != side)
        parts.append((len(target.ids), apply(fitted, target)))
    counts, halves = zip(*parts, strict=True)
    return Earned(*np.average([astuple(half) for half in halves], axis=0, weights=counts).tolist())
