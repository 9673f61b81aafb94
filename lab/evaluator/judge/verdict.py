"""A judge's case and its verdict."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["right", "missing", "wrong"]
# CRAG's names: accuracy, missing, hallucination; its score is their sum under these weights.
WEIGHTS: dict[Outcome, int] = {"right": 1, "missing": 0, "wrong": -1}


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its gold answers and a prediction, whose strategy no judge learns.

    `label_kind` is answer, idk (no evidence holds the answer, so only an abstention is no hallucination) or invalid.
    """

    question: str
    gold: tuple[str, ...]
    prediction: str
    label_kind: str = "answer"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, who decided it (`protocol` or a judge's name) and why, in a few words."""

    outcome: Outcome
    by: str
    reason: str
