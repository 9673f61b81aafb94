"""The pictures of a report, drawn for light and for dark pages."""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from lab.evaluator.report.summary import LIMIT_S, SLICES, Summary
from lab.evaluator.score import OUTCOMES, Estimate, Scores

DPI = 144
WIDTH = 7.2


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a page."""

    ground: str
    ink: str
    faint: str
    right: str
    missing: str
    wrong: str
    line: str


LIGHT = Theme("#ffffff", "#1d2433", "#d9dde5", "#2f8f6b", "#c9ced8", "#c8553d", "#2f5d9b")
DARK = Theme("#12161f", "#e4e8f0", "#2d3546", "#4fbf93", "#4a5263", "#e07a62", "#7fb0f0")
THEMES = (LIGHT, DARK)

Draw = Callable[[Summary, Theme], Figure]
# Its name, its place on the axis, and what it shows.
Bar = tuple[str, float, Scores]


def draw_all(summary: Summary) -> dict[str, bytes]:
    """File name to PNG: every picture in both themes, `<name>-dark.png` for the dark one."""
    pictures: dict[str, bytes] = {}
    for name, (draw, has_data) in PICTURES.items():
        if has_data(summary):
            pictures |= in_themes(name, partial(draw, summary))
    return pictures


def in_themes(name: str, draw: Callable[[Theme], Figure]) -> dict[str, bytes]:
    """File name to PNG: one picture in both themes."""
    return {f"{name}{'-dark' if theme is DARK else ''}.png": png(draw(theme)) for theme in THEMES}


def png(figure: Figure) -> bytes:
    out = io.BytesIO()
    # No date and no version inside: the same numbers make the same file.
    FigureCanvasAgg(figure).print_png(out, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return out.getvalue()


def outcomes(summary: Summary, theme: Theme) -> Figure:
    """Shares of right, missing and wrong, over all and by each label."""
    groups: list[tuple[str, list[tuple[str, Scores]]]] = [("", [("all questions", summary.overall)])]
    groups += [(SLICES[name], list(slices.items())) for name, slices in summary.slices.items()]
    rows = [(title if not index else "", *item) for title, items in groups for index, item in enumerate(items)]
    title = "Right, missing and wrong; CRAG score at the right"
    figure, axes = new_figure(theme, height=0.9 + 0.3 * len(rows) + 0.16 * len(groups), title=title)
    place = 0.0
    bars: list[Bar] = []
    for index, (heading, name, item) in enumerate(rows):
        place += 0.6 if heading and index else 0.0
        bars.append((f"{name[:34]}  ({item.questions})", place, item))
        place += 1.0
    stack_outcomes(figure, [(axes, bars)], theme)
    return figure


def stack_outcomes(figure: Figure, panels: Iterable[tuple[Axes, Sequence[Bar]]], theme: Theme) -> None:
    """Draw shares of right, missing and wrong as stacked bars, with the CRAG score beside each."""
    colours = dict(zip(OUTCOMES, (theme.right, theme.missing, theme.wrong), strict=True))
    for axes, bars in panels:
        for _, place, item in bars:
            left = 0.0
            shares = (item.accuracy.value, item.missing_rate.value, item.hallucination.value)
            for share, colour in zip(shares, colours.values(), strict=True):
                axes.barh(place, share, left=left, color=colour, height=0.72, edgecolor=theme.ground, linewidth=0.8)
                left += share
            axes.text(1.015, place, f"{item.score.value:+.2f}", va="center", fontsize=8.5, color=theme.ink)
        axes.set_yticks([place for _, place, _ in bars], [name for name, _, _ in bars], fontsize=8.5)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(visible=False)
    figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in colours.items()],
        loc="outside lower right",
        ncols=3,
        frameon=False,
        fontsize=8.5,
        labelcolor=theme.ink,
    )


def risk_coverage(summary: Summary, theme: Theme) -> Figure:
    """Risk of the answers kept, and the score, as less sure answers are withheld."""
    curve = summary.curve
    figure, axes = new_figure(theme, height=3.4, title=f"Risk and coverage (area {curve.area:.3f})")
    axes.plot(
        curve.coverage,
        curve.risk,
        color=theme.wrong,
        linewidth=1.8,
        label="wrong among answers",
        drawstyle="steps-post",
    )
    axes.plot(curve.coverage, curve.score, color=theme.line, linewidth=1.8, label="CRAG score")
    axes.axhline(0, color=theme.ink, linewidth=0.8)
    axes.set_xlim(0, max(0.05, float(curve.coverage[-1])))
    axes.set_ylim(min(-0.05, float(curve.score.min()) - 0.05), 1)
    axes.set_xlabel("share of questions answered, surest first")
    axes.legend(frameon=False, fontsize=8.5, labelcolor=theme.ink)
    return figure


def reliability(summary: Summary, theme: Theme) -> Figure:
    """How often answers of a confidence are right, with intervals, beside what the confidence promises."""
    title = f"Reliability (expected calibration error {summary.calibration_error:.3f})"
    figure, axes = new_figure(theme, height=3.4, title=title)
    bins = summary.bins
    axes.plot([0, 1], [0, 1], color=theme.ink, linewidth=0.9, linestyle=(0, (4, 3)), label="as promised")
    confidence = np.array([item.confidence for item in bins])
    accuracy = np.array([item.accuracy.value for item in bins])
    below = accuracy - np.array([item.accuracy.low for item in bins])
    above = np.array([item.accuracy.high for item in bins]) - accuracy
    most = max(item.answers for item in bins)
    axes.errorbar(confidence, accuracy, yerr=[below, above], fmt="none", ecolor=theme.line, elinewidth=1.2, capsize=2)
    sizes = [18 + 130 * item.answers / most for item in bins]
    axes.scatter(confidence, accuracy, s=sizes, color=theme.line, zorder=3, label="answers (size: how many)")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("confidence")
    axes.set_ylabel("share right")
    axes.legend(frameon=False, fontsize=8.5, labelcolor=theme.ink, loc="upper left")
    return figure


def latency(summary: Summary, theme: Theme) -> Figure:
    """The share of questions answered within so many seconds."""
    figure, axes = new_figure(theme, height=3.0, title="Answered within")
    seconds = np.sort(np.array(summary.seconds))
    share = np.arange(1, len(seconds) + 1) / len(seconds)
    axes.step(np.append(0, seconds), np.append(0, share), where="post", color=theme.line, linewidth=1.8)
    axes.axvline(LIMIT_S, color=theme.wrong, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.text(LIMIT_S, 0.04, " 30 s", color=theme.wrong, fontsize=8.5)
    axes.set_xlim(0, max(LIMIT_S * 1.08, float(seconds[-1]) * 1.02))
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("seconds")
    return figure


PICTURES: dict[str, tuple[Draw, Callable[[Summary], bool]]] = {
    "outcomes": (outcomes, lambda summary: summary.overall.questions > 0),
    "risk-coverage": (risk_coverage, lambda summary: len(summary.curve.coverage) > 1),
    "reliability": (reliability, lambda summary: bool(summary.bins)),
    "latency": (latency, lambda summary: bool(summary.seconds)),
}


def compare_scores(names: Sequence[str], rows: Sequence[Scores], theme: Theme) -> Figure:
    """Scores of several runs with their intervals."""
    figure, axes = new_figure(theme, height=1.0 + 0.42 * len(rows), title="CRAG score, 95 % interval")
    intervals(axes, [name[:40] for name in names], [item.score for item in rows], theme)
    axes.axvline(0, color=theme.ink, linewidth=0.8)
    return figure


def intervals(axes: Axes, names: Sequence[str], estimates: Sequence[Estimate], theme: Theme) -> None:
    """Draw values with their intervals, one below the other, by name."""
    values, low, high = np.array([(item.value, item.low, item.high) for item in estimates]).T
    places = range(len(names))
    ends = [values - low, high - values]
    axes.errorbar(values, places, xerr=ends, fmt="o", color=theme.line, elinewidth=1.6, capsize=3)
    axes.set_yticks(places, names, fontsize=8.5)
    axes.set_ylim(len(names) - 0.5, -0.5)


def new_figure(theme: Theme, *, height: float, title: str = "") -> tuple[Figure, Axes]:
    """An empty picture in the colours of a page; the height is in inches."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor=theme.ground, layout="constrained")
    axes = figure.subplots()
    dress(axes, theme)
    if title:
        axes.set_title(title, loc="left", fontsize=10.5, color=theme.ink)
    return figure, axes


def dress(axes: Axes, theme: Theme) -> None:
    """Give a panel the colours of a page."""
    axes.set_facecolor(theme.ground)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.faint)
    axes.tick_params(colors=theme.ink, labelsize=8.5, length=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set(fontsize=9, color=theme.ink)
    axes.grid(visible=True, color=theme.faint, linewidth=0.6)
    axes.set_axisbelow(True)
