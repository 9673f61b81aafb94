"""The worth of each signal: scores of held-out folds without it, and with it alone."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lab.evaluator.calibrate import Fitted, Floats, Table, earned, fit, outcomes
from lab.evaluator.report import tables
from lab.evaluator.score import Estimate, difference

# Signals that are told apart only together; one that is in none is a group of its own.
GROUPS: dict[str, tuple[str, ...]] = {
    "log-probabilities": ("logprob_mean", "logprob_min", "logprob_first"),
    "their ranks": ("logprob_mean_rank", "logprob_min_rank", "logprob_first_rank"),
    "support": ("support", "numbers_supported"),
    "echo": ("echo",),
    "coverage": ("question_covered", "question_covered_best", "rare_covered"),
    "size of the evidence": ("evidence_log_words", "passages"),
    "emptiness": ("empty", "no_record"),
    "form of the answer": ("answer_words", "yes_no"),
    "kind of question": ("dynamic", "false_premise"),
    "reader": ("reader_same", "reader_span", "reader_says"),
    "what it said": ("said_unknown", "said_invalid"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One group of signals.

    Attributes:
        lost: score of all signals less that without these, on held-out folds, with its interval.
        nats: log loss of an answer without these less that of all signals; what they tell, positive when they tell.
        alone: score with these signals only.
    """

    group: str
    signals: tuple[str, ...]
    lost: Estimate
    nats: float
    alone: float


def groups(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The signals of a table, by group."""
    names = tuple(names)
    members_of = {group: tuple(name for name in members if name in names) for group, members in GROUPS.items()}
    grouped = {name for members in members_of.values() for name in members}
    return {group: members for group, members in members_of.items() if members} | {
        name: (name,) for name in names if name not in grouped
    }


def ablate(data: Table) -> tuple[float, list[Row]]:
    """The score with all signals, and a row for each group, the one that is missed most first."""
    whole = fit(data)
    score = earned(whole, data, whole.right, whole.false).score
    reached = outcomes(whole, data, whole.right, whole.false)
    rows = []
    for group, names in groups(data.names).items():
        less, only = fit(data.without(names)), fit(data.of_signals(names))
        lost = difference(outcomes(less, data, less.right, less.false), reached).score
        alone = earned(only, data, only.right, only.false).score
        rows.append(Row(group, names, lost, _loss(less, data) - _loss(whole, data), alone))
    return score, sorted(rows, key=lambda row: -row.nats)


def _loss(fitted: Fitted, data: Table) -> float:
    answered = data.answered == 1
    probability: Floats = np.clip(fitted.right[answered], 1e-6, 1 - 1e-6)
    right = data.right[answered]
    return float(-np.mean(np.where(right == 1, np.log(probability), np.log(1 - probability))))


def table(score: float, rows: list[Row]) -> tables.Table:
    """The rows as a report and the terminal have them."""
    cells = (
        (f"{row.group}: {', '.join(row.signals)}", tables.signed(row.lost), f"{row.nats:+.4f}", f"{row.alone:+.3f}")
        for row in rows
    )
    head = ("signals", "lost without them, 95 %", "nats an answer", "alone")
    return tables.Table("Signals", head, tuple(cells), f"Scores of held-out folds; {score:+.3f} with all signals.")
