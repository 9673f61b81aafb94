"""Fits the gateway's confidence on judged runs, and says what it earns on questions that it was not fitted on.

A logistic regression over the signals of `services/gateway/confidence.py`, written as the JSON that it reads.
Thresholds maximise the CRAG score, share right less share wrong, on predictions for held-out folds, never on the fit.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold

from services.evaluator.store import Judgement, Prediction

matplotlib.use("Agg")

FOLDS = 5
SEED = 0
# Fewer answers than these say nothing about a head.
MIN_ANSWERS = 30
BINS = 8

Floats = NDArray[np.float64]


class TooLittle(ValueError):
    """A run has too few answers with signals to fit anything on."""


@dataclass(frozen=True, slots=True)
class Table:
    """Signals of answers, shape (answers, signals), with whether each was right; `asked` counts all questions."""

    names: tuple[str, ...]
    signals: Floats
    right: NDArray[np.int64]
    ids: tuple[str, ...]
    asked: int


def table(predictions: Sequence[Prediction], judgements: dict[str, Judgement], *, invalid: bool) -> Table:
    """The answers of runs that came with signals.

    Args:
        invalid: take the answers "invalid question" instead of the others.

    Raises:
        TooLittle: there are hardly any.
    """
    kind = "invalid_question" if invalid else "answer"
    lines = [line for line in predictions if line.signals and line.id in judgements]
    chosen = [line for line in lines if line.kind == kind]
    if len(chosen) < MIN_ANSWERS:
        raise TooLittle(f"{len(chosen)} answers with signals; {MIN_ANSWERS} are needed")
    names = tuple(sorted(set().union(*(line.signals for line in chosen))))
    signals = np.array([[line.signals.get(name, 0.0) for name in names] for line in chosen])
    right = np.array([int(judgements[line.id].outcome == "right") for line in chosen])
    return Table(names, signals, right, tuple(line.id for line in chosen), len(predictions))


def fit(data: Table) -> tuple[dict[str, Any], Floats]:
    """A head as JSON, and the probabilities of held-out folds that its threshold was chosen on."""
    held_out = np.zeros(len(data.right))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(data.signals, data.right):
        head = _regress(data.names, data.signals[train], data.right[train])
        held_out[test] = probabilities(head, data.signals[test], data.names)
    head = _regress(data.names, data.signals, data.right)
    head["threshold"] = best_threshold(held_out, data.right)
    return head, held_out


def _regress(names: Sequence[str], signals: Floats, right: NDArray[np.int64]) -> dict[str, Any]:
    means, scales = signals.mean(axis=0), signals.std(axis=0)
    kept = scales > 1e-9
    scaled = (signals[:, kept] - means[kept]) / scales[kept]
    model = LogisticRegressionCV(
        Cs=np.logspace(-3, 1, 9),
        cv=FOLDS,
        scoring="neg_log_loss",
        max_iter=2_000,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    ).fit(scaled, right)
    return {
        "names": [name for name, keep in zip(names, kept, strict=True) if keep],
        "means": [round(float(value), 6) for value in means[kept]],
        "scales": [round(float(value), 6) for value in scales[kept]],
        "weights": [round(float(value), 6) for value in np.ravel(model.coef_)],
        "intercept": round(float(np.ravel(model.intercept_)[0]), 6),
        "threshold": 0.5,
    }


def probabilities(head: dict[str, Any], signals: Floats, names: Sequence[str]) -> Floats:
    """What a head gives for signals whose columns have these names."""
    chosen = signals[:, [list(names).index(name) for name in head["names"]]]
    scaled = (chosen - np.array(head["means"])) / np.array(head["scales"])
    result: Floats = 1 / (1 + np.exp(-(scaled @ np.array(head["weights"]) + head["intercept"])))
    return result


def best_threshold(probability: Floats, right: NDArray[np.int64]) -> float:
    """The least probability whose answers together earn most: right ones count 1, wrong ones -1."""
    order = np.argsort(-probability)
    earned = np.cumsum(2 * right[order] - 1)
    best = int(np.argmax(earned))
    if earned[best] <= 0:
        return 1.0
    following = probability[order[best + 1]] if best + 1 < len(order) else 0.0
    return round(float((probability[order[best]] + following) / 2), 4)


def score_at(probability: Floats, right: NDArray[np.int64], threshold: float, asked: int) -> tuple[float, float, float]:
    """CRAG score, share right, share wrong of all questions when only answers from the threshold on are given."""
    given = probability >= threshold
    good, bad = int(right[given].sum()), int((1 - right[given]).sum())
    return (good - bad) / asked, good / asked, bad / asked


def halves(data: Table) -> list[dict[str, float]]:
    """Fitted on one half of the questions, reported on the other, both ways; halves by a hash of the question's id."""
    import zlib

    side = np.array([zlib.crc32(one.encode()) % 2 for one in data.ids])
    reports = []
    for fitted in (0, 1):
        head, _ = fit(Table(data.names, data.signals[side == fitted], data.right[side == fitted], (), data.asked))
        there = side != fitted
        probability = probabilities(head, data.signals[there], data.names)
        asked = data.asked / 2
        score, good, bad = score_at(probability, data.right[there], head["threshold"], max(1, round(asked)))
        ungated, _, _ = score_at(probability, data.right[there], 0.0, max(1, round(asked)))
        reports.append(
            {"score": score, "right": good, "wrong": bad, "without": ungated, "threshold": head["threshold"]}
        )
    return reports


def draw(probability: Floats, right: NDArray[np.int64], asked: int, folder: Path) -> None:
    """`calibration.png`: how often answers of a probability are right; `risk_coverage.png`: what abstaining earns."""
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    edges = np.quantile(probability, np.linspace(0, 1, BINS + 1))
    places = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, BINS - 1)
    figure, axis = pyplot.subplots(figsize=(5, 5))
    axis.plot([0, 1], [0, 1], color="grey", linewidth=1)
    filled = [place for place in range(BINS) if (places == place).any()]
    axis.plot(
        [probability[places == place].mean() for place in filled],
        [right[places == place].mean() for place in filled],
        "o-",
    )
    axis.set(xlabel="probability, held-out folds", ylabel="share right", xlim=(0, 1), ylim=(0, 1))
    figure.savefig(folder / "calibration.png", dpi=110, bbox_inches="tight")
    order = np.argsort(-probability)
    earned = np.cumsum(2 * right[order] - 1) / asked
    figure, axis = pyplot.subplots(figsize=(6, 4))
    axis.plot(np.arange(1, len(order) + 1) / asked, earned)
    axis.axhline(0, color="grey", linewidth=1)
    axis.set(xlabel="share of questions answered, surest first", ylabel="CRAG score")
    figure.savefig(folder / "risk_coverage.png", dpi=110, bbox_inches="tight")
    pyplot.close("all")


def write(heads: dict[str, Any], path: Path) -> None:
    """The gateway's `confidence.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(heads, indent=1) + "\n", encoding="utf-8")
