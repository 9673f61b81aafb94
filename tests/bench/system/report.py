"""The report of `make eval-system`: scores, seconds, paired differences and lost questions, as tables and a picture."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.evaluator.report import files, markdown, pictures
from lab.evaluator.report.pictures import Theme
from lab.evaluator.report.tables import Table, signed
from lab.evaluator.score import Difference, Scores, difference, scores
from tests.bench.system.stages import STAGES

OURS = "adaptive"
COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Outcomes:
    """A system's results on a set.

    Args:
        outcomes: right, missing or wrong, by question.
        seconds: of each answered question.
        lost: stages, one for each question that was lost.
        kinds: of each question's label: answer, idk or invalid.
    """

    outcomes: Mapping[str, str]
    seconds: Sequence[float]
    lost: Sequence[str]
    kinds: Mapping[str, str]

    @property
    def scores(self) -> Scores:
        return scores([self.outcomes[name] for name in sorted(self.outcomes)])

    def percentile(self, level: float) -> float:
        return float(np.percentile(self.seconds, level)) if self.seconds else 0.0


# Set to system to its results.
Results = Mapping[str, Mapping[str, Outcomes]]


def ahead(one: Outcomes, other: Outcomes) -> Difference | None:
    """The first less the second over the questions that both have; None where there are none."""
    common = sorted(set(one.outcomes) & set(other.outcomes))
    if not common:
        return None
    return difference([other.outcomes[name] for name in common], [one.outcomes[name] for name in common])


def tables(results: Results) -> list[Table]:
    """A table a set, then where its questions were lost, and all sets beside each other."""
    content = [_overview(results)]
    for name, systems in results.items():
        rows = tuple(_row(system, systems) for system in systems)
        head = ("", "questions", "score", "right", "wrong", "missing", "s, median", "s, p95", f"{OURS} less this")
        content.append(Table(name, head, rows, _kinds(systems)))
        content.append(_lost(name, systems))
    return content


def _overview(results: Results) -> Table:
    names = dict.fromkeys(name for systems in results.values() for name in systems)
    rows = tuple(
        (name, *(f"{one[name].scores.score.value:+.3f}" if name in one else "-" for one in results.values()))
        for name in names
    )
    return Table("CRAG score by set", ("", *results), rows)


def _row(system: str, systems: Mapping[str, Outcomes]) -> tuple[str, ...]:
    item, less = systems[system], _less(systems, system)
    scores = item.scores
    return (
        system,
        str(scores.questions),
        signed(scores.score),
        *(f"{estimate.value:.1%}" for estimate in (scores.accuracy, scores.hallucination, scores.missing_rate)),
        f"{item.percentile(50):.2f}",
        f"{item.percentile(95):.2f}",
        signed(less.score) if less else "",
    )


def _kinds(systems: Mapping[str, Outcomes]) -> str:
    kinds = Counter(kind for item in list(systems.values())[:1] for kind in item.kinds.values())
    words = {"answer": "with an answer", "idk": "without one in the sources", "invalid": "with a false premise"}
    return ", ".join(f"{kinds[kind]} {phrase}" for kind, phrase in words.items() if kinds[kind]) + "."


def _lost(name: str, systems: Mapping[str, Outcomes]) -> Table:
    used = [stage for stage in STAGES if any(stage in item.lost for item in systems.values())]
    rows = tuple((system, *(str(item.lost.count(stage)) for stage in used)) for system, item in systems.items())
    return Table(f"{name}: where questions were lost", ("", *used), rows)


def write(results: Results, folder: Path, *, facts: Sequence[tuple[str, str]]) -> list[Path]:
    """`report.md`, `summary.json` and the picture of the outcomes, light and dark.

    Raises:
        WriteFailed: the disk took no more.
    """
    images = pictures.in_themes("outcomes", partial(picture, results))
    text = markdown.write("The whole system beside its peers", facts, tables(results), list(images))
    numbers = json.dumps(as_json(results), indent=1) + "\n"
    return files.write(folder, {"report.md": text.encode(), "summary.json": numbers.encode()} | images)


def as_json(results: Results) -> dict[str, Any]:
    """The numbers, by set and system."""
    return {
        name: {
            system: {
                "scores": asdict(item.scores),
                "median_s": item.percentile(50),
                "p95_s": item.percentile(95),
                "lost": dict(Counter(item.lost)),
                "ours_less_this": asdict(less) if (less := _less(systems, system)) else None,
            }
            for system, item in systems.items()
        }
        for name, systems in results.items()
    }


def _less(systems: Mapping[str, Outcomes], system: str) -> Difference | None:
    return ahead(systems[OURS], systems[system]) if OURS in systems and system != OURS else None


def picture(results: Results, theme: Theme) -> Figure:
    """Right, missing and wrong of each system as shares, a panel a set, and its score beside them."""
    figure, first = pictures.new_figure(theme, height=1.0)
    first.remove()
    columns = min(COLUMNS, len(results))
    rows = -(-len(results) // columns)
    most = max(map(len, results.values()))
    figure.set_size_inches(pictures.WIDTH * 1.4, rows * (0.9 + 0.3 * most))
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat[len(results) :]:
        axes.set_visible(False)
    used = []
    for axes, (name, systems) in zip(panels.flat, results.items(), strict=False):
        pictures.dress(axes, theme)
        axes.set_title(name, loc="left", fontsize=10, color=theme.ink)
        used.append((axes, [(system, place, item.scores) for place, (system, item) in enumerate(systems.items())]))
    pictures.stack_outcomes(figure, used, theme)
    return figure
