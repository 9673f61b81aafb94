"""Fits how firmly a generator must lean to yes or no before it is believed (`services/gateway/steps/lean.py`)."""

from collections.abc import Sequence
from typing import Any

from lab.evaluator.calibrate import MIN_ANSWERS, fit_head, table
from lab.evaluator.store import Judgement, Prediction
from services.gateway.confidence import LEANING

Judged = Sequence[tuple[Prediction, Judgement]]


def split(judged: Judged) -> tuple[Judged, Judged]:
    """Answers that the generator leaned to, and all others."""
    both: tuple[list[tuple[Prediction, Judgement]], list[tuple[Prediction, Judgement]]] = ([], [])
    for line, judgement in judged:
        both[not line.signals.keys() >= LEANING].append((line, judgement))
    return both


def fit(leaning: Judged) -> dict[str, Any] | None:
    """The head of a yes or no; None on fewer than `MIN_ANSWERS`."""
    if len(leaning) < MIN_ANSWERS:
        return None
    data = table(leaning).of_signals(LEANING)
    return fit_head(data.names, data.signals, data.right, data.ids)[0]
