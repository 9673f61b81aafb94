"""Pictures of a fit: the reliability of its probabilities, and the score by coverage."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from lab.evaluator.calibrate import MIN_ANSWERS, Fitted, Floats, Ints, Table

matplotlib.use("Agg")

BINS = 8


def draw(fitted: Fitted, data: Table, folder: Path) -> None:
    """Pictures of the held-out folds.

    `calibration.png`: how often answers of a probability are right, in all and by domain; `risk_coverage.png`: what
    abstaining earns, and what a confidence that knew all would.
    """
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    answered = data.answered == 1
    probability, right = fitted.right[answered], data.right[answered]
    domains = data.domains[answered]
    named = [name for name in sorted(set(domains)) if (domains == name).sum() >= MIN_ANSWERS]
    figure, axes = pyplot.subplots(1, 1 + len(named), figsize=(3.2 * (1 + len(named)), 3.4), squeeze=False)
    for axis, name in zip(axes[0], ["all", *named], strict=True):
        chosen = np.ones(len(right), bool) if name == "all" else domains == name
        _reliability(axis, probability[chosen], right[chosen])
        axis.set_title(f"{name}, n = {int(chosen.sum())}")
    axes[0][0].set(ylabel="share right")
    figure.savefig(folder / "calibration.png", dpi=110, bbox_inches="tight")
    figure, axis = pyplot.subplots(figsize=(6, 4))
    questions = len(data.ids)
    for label, order in (("fitted", np.argsort(-probability)), ("oracle", np.argsort(-right))):
        axis.plot(np.arange(1, len(order) + 1) / questions, np.cumsum(2 * right[order] - 1) / questions, label=label)
    axis.axhline(0, color="grey", linewidth=1)
    axis.legend()
    axis.set(xlabel="share of questions answered, surest first", ylabel="CRAG score")
    figure.savefig(folder / "risk_coverage.png", dpi=110, bbox_inches="tight")
    pyplot.close("all")


def _reliability(axis: Any, probability: Floats, right: Ints) -> None:
    edges = np.quantile(probability, np.linspace(0, 1, BINS + 1))
    places = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, BINS - 1)
    filled = [place for place in range(BINS) if (places == place).any()]
    axis.plot([0, 1], [0, 1], color="grey", linewidth=1)
    axis.plot(
        [probability[places == place].mean() for place in filled],
        [right[places == place].mean() for place in filled],
        "o-",
    )
    axis.set(xlabel="probability, held-out folds", xlim=(0, 1), ylim=(0, 1))
