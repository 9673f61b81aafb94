"""Measures of a classifier: accuracy, macro-F1, calibration and coverage, as numbers, tables and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix, f1_score

from lab.evaluator.score import Bin, calibration_error, reliability

SURE = 0.9

Probabilities = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one head.

    Attributes:
        ece: expected calibration error of the certainty, ten bins of equal width (Guo et al. 2017).
        coverage: share of questions with a certainty of at least 0.9, and `sure_accuracy` of those.
        majority: accuracy of always saying the most frequent label.
        f1: by label.
        matrix: rows are true labels, columns predicted ones, in the order of `labels`.
        bins: of the certainty, ten of equal width.
    """

    questions: int
    accuracy: float
    macro_f1: float
    ece: float
    coverage: float
    sure_accuracy: float
    majority: float
    labels: tuple[str, ...]
    f1: dict[str, float] = field(default_factory=dict)
    matrix: tuple[tuple[int, ...], ...] = ()
    bins: tuple[Bin, ...] = ()

    def summary(self) -> dict[str, Any]:
        """As JSON, rounded."""
        return {
            "questions": self.questions,
            "accuracy": round(self.accuracy, 4),
            "majority": round(self.majority, 4),
            "macro_f1": round(self.macro_f1, 4),
            "ece": round(self.ece, 4),
            "coverage_at_90": round(self.coverage, 4),
            "accuracy_at_90": round(self.sure_accuracy, 4),
            "f1": {label: round(value, 4) for label, value in self.f1.items()},
            "confusion": {"labels": list(self.labels), "matrix": [list(row) for row in self.matrix]},
            "reliability": [[one.answers, round(one.confidence, 4), round(one.accuracy.value, 4)] for one in self.bins],
        }


def score(truth: Sequence[str], probabilities: Probabilities, names: Sequence[str]) -> Scores:
    """Measure one head.

    Args:
        truth: true labels, at least one; a label that is not in `names` counts as missed.
        probabilities: shape (questions, names).
    """
    certainty = probabilities.max(axis=1)
    predicted = [names[index] for index in probabilities.argmax(axis=1)]
    right = np.array([a == b for a, b in zip(truth, predicted, strict=True)])
    labels = tuple(sorted(set(truth) | set(predicted)))
    true_labels = sorted(set(truth))
    by_label = f1_score(truth, predicted, labels=true_labels, average=None, zero_division=0)
    sure = certainty >= SURE
    bins = reliability(certainty, right)
    return Scores(
        questions=len(truth),
        accuracy=float(right.mean()),
        macro_f1=float(np.mean(by_label)),
        ece=calibration_error(bins),
        coverage=float(sure.mean()),
        sure_accuracy=float(right[sure].mean()) if sure.any() else float("nan"),
        majority=max(list(truth).count(label) for label in true_labels) / len(truth),
        labels=labels,
        f1={label: float(value) for label, value in zip(true_labels, by_label, strict=True)},
        matrix=tuple(tuple(map(int, row)) for row in confusion_matrix(truth, predicted, labels=labels)),
        bins=tuple(bins),
    )


def picture(scores: Scores, path: Path, title: str) -> None:
    """A PNG with the confusion matrix and the reliability of a head."""
    # The Agg canvas needs no display, and `Figure` leaves no global state behind as pyplot does.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    confusion, curve = figure.subplots(1, 2, width_ratios=(1.4, 1))
    matrix = np.array(scores.matrix)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    display = ConfusionMatrixDisplay(shares, display_labels=scores.labels)
    display.plot(ax=confusion, cmap="Blues", colorbar=False, xticks_rotation="vertical", im_kw={"vmin": 0, "vmax": 1})
    confusion.tick_params(labelsize=8)
    for text, count in zip(display.text_.flat, matrix.flat, strict=True):
        text.set_text(str(count))
    confusion.set_title(f"{title}: accuracy {scores.accuracy:.3f} of {scores.questions}", fontsize=10)
    curve.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    curve.plot([one.confidence for one in scores.bins], [one.accuracy.value for one in scores.bins], marker="o")
    curve.set_xlim(0, 1)
    curve.set_ylim(0, 1)
    curve.set_xlabel("certainty")
    curve.set_ylabel("accuracy")
    curve.set_title(f"reliability: ECE {scores.ece:.3f}", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90, metadata={"Software": ""})
