"""The ablation's report: tables in the shape of Onewo's tables 2 and 3, a picture, and the numbers as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from lab.evaluator.report import files, markdown
from lab.evaluator.report.pictures import Theme, in_themes, intervals, new_figure
from lab.evaluator.report.tables import Table, signed
from lab.evaluator.score import Estimate
from lab.papers.measures import MAP, MEASURES, Floats, difference, mean, relative

HEAD = ("", *MEASURES, "step by step", "over the best single list")


@dataclass(frozen=True, slots=True)
class Step:
    """A way to rank, with each question's value by each measure.

    Attributes:
        values: measure to values, shape (questions,), in one order for all steps.
    """

    name: str
    values: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Ablation:
    """All measurements.

    Attributes:
        singles: each list of the question alone.
        steps: cumulative, from a single list to the full strategy.
        forms: the fusion, with one more form of the query at a time.
        others: each list of the further forms alone.
        halves: the measures of each half, with weights tuned on the other.
        weights: the tuned weights.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    singles: tuple[Step, ...]
    steps: tuple[Step, ...]
    forms: tuple[Step, ...]
    others: tuple[Step, ...]
    halves: Table
    weights: Table

    @property
    def best_single(self) -> Step:
        """The best list of the question by MAP@20."""
        return max(self.singles, key=lambda step: float(step.values[MAP].mean()))

    @property
    def gain(self) -> Estimate:
        """The relative gain of the full strategy over the best single list, in MAP@20."""
        return relative(self.steps[-1].values[MAP], self.best_single.values[MAP])


def tables(ablation: Ablation) -> list[Table]:
    """All tables, the cumulative one first."""
    best = ablation.best_single
    note = (
        f"Each row adds to the one above; lists count alike until the last. The gain step by step is in {MAP}, over "
        f"the row above; the last column is relative to {best.name}. Intervals of 95 %, paired over the questions."
    )
    return [
        Table("Cumulative, by model", HEAD, _rows(ablation.steps, best), note),
        Table("Cumulative, by query form, before re-scoring", HEAD, _rows(ablation.forms, best)),
        Table("Single lists, question as asked", HEAD, _rows(ablation.singles, best, cumulative=False)),
        Table("Single lists, further forms and re-scoring", HEAD, _rows(ablation.others, best, cumulative=False)),
        ablation.halves,
        ablation.weights,
    ]


def write(ablation: Ablation, folder: Path) -> list[Path]:
    """Write `report.md`, `summary.json` and the pictures, none of which holds a question or a document.

    Raises:
        WriteFailed: the disk is full.
    """
    pictures = in_themes("ablation", partial(draw, ablation))
    contents = {
        "report.md": markdown.write(ablation.title, ablation.facts, tables(ablation), list(pictures)).encode(),
        "summary.json": (json.dumps(as_json(ablation), indent=1) + "\n").encode(),
    }
    return files.write(folder, contents | pictures)


def as_json(ablation: Ablation) -> dict[str, object]:
    """The numbers, for programs."""

    def numbers(steps: Sequence[Step]) -> dict[str, dict[str, float]]:
        return {step.name: {name: round(float(step.values[name].mean()), 5) for name in MEASURES} for step in steps}

    gain = ablation.gain
    return {
        "facts": dict(ablation.facts),
        "steps": numbers(ablation.steps),
        "forms": numbers(ablation.forms),
        "single_lists": numbers([*ablation.singles, *ablation.others]),
        "best_single": ablation.best_single.name,
        "relative_gain": {"value": round(gain.value, 5), "low": round(gain.low, 5), "high": round(gain.high, 5)},
    }


def draw(ablation: Ablation, theme: Theme) -> Figure:
    """MAP@20 of each cumulative step with its interval."""
    steps = ablation.steps
    figure, axes = new_figure(theme, height=1.1 + 0.42 * len(steps))
    estimates = [mean(step.values[MAP]) for step in steps]
    intervals(axes, [step.name for step in steps], estimates, theme)
    for place, item in enumerate(estimates):
        axes.annotate(
            f"{item.value:.3f}", (item.value, place), (0, 6), textcoords="offset points", ha="center", fontsize=8,
            color=theme.ink,
        )  # fmt: skip
    single = float(ablation.best_single.values[MAP].mean())
    axes.axvline(single, color=theme.wrong, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_ylim(len(steps) - 0.5, -0.7)
    axes.set_title(f"{MAP} step by step; dashed: the best single list", loc="left", fontsize=10.5, color=theme.ink)
    return figure


def _rows(steps: Sequence[Step], best: Step, *, cumulative: bool = True) -> tuple[tuple[str, ...], ...]:
    rows = []
    for index, step in enumerate(steps):
        values = step.values[MAP]
        gain = signed(difference(values, steps[index - 1].values[MAP]), 4) if cumulative and index else ""
        numbers = (f"{float(step.values[name].mean()):.4f}" for name in MEASURES if name != MAP)
        over = "" if step is best else f"{relative(values, best.values[MAP]).value:+.1%}"
        own = mean(values)
        rows.append((step.name, f"{values.mean():.4f} [{own.low:.3f}, {own.high:.3f}]", *numbers, gain, over))
    return tuple(rows)
