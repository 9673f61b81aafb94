"""The report of a load run: latency by stage, outcomes over time, goodput, and the cost of a thousand questions."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.capacity import percentile
from lab.evaluator.report import markdown
from lab.evaluator.report.pictures import LIGHT, new_figure, png
from lab.evaluator.report.tables import Table

OUTCOMES = {"answers": LIGHT.right, "abstentions": LIGHT.missing, "refusals": LIGHT.line, "failures": LIGHT.wrong}
# Bars of the picture over time.
BARS = 60


def write(name: str, record: dict[str, Any], folder: Path, *, command: str, hour_price: float = 0.0) -> Path:
    """`NAME_report.md` and its two pictures; gives the report.

    Args:
        record: of `Tally.record`.
        hour_price: of all machines of the mesh; without it the report names no cost.
    """
    pictures = {f"{name}_stages.png": _stages(record["stages_s"]), f"{name}_outcomes.png": _outcomes(record["moments"])}
    pictures = {file: picture for file, picture in pictures.items() if picture}
    for file, picture in pictures.items():
        (folder / file).write_bytes(picture)
    figures = [(key, f"{value:.4g}") for key, value in record.items() if isinstance(value, int | float)]
    if hour_price and record["goodput_per_s"]:
        figures.append(("cost_per_thousand", f"{hour_price / 3.6 / record['goodput_per_s']:.4g}"))
    times = {**record["stages_s"], **record["doors_s"]}
    rows = [
        (stage, f"{len(of)}", *(f"{percentile(of, at):.3f}" for at in (0.5, 0.95, 1.0))) for stage, of in times.items()
    ]
    tables = [
        Table("Figures", ("figure", "value"), tuple(figures)),
        Table("Seconds by stage and route", ("stage or route", "number", "median", "p95", "slowest"), tuple(rows)),
    ]
    report = folder / f"{name}_report.md"
    report.write_text(markdown.write(f"Load: {name}", [("command", command)], tables, list(pictures)), encoding="utf-8")
    return report


def _stages(stages: dict[str, list[float]]) -> bytes:
    if not stages:
        return b""
    title = "Seconds by stage: quartiles, up to p95"
    figure, axes = new_figure(LIGHT, height=1.2 + 0.32 * len(stages), title=title)
    axes.boxplot(
        list(stages.values()), orientation="horizontal", whis=(0, 95), showfliers=False, tick_labels=list(stages)
    )
    axes.invert_yaxis()
    return png(figure)


def _outcomes(moments: Sequence[tuple[float, str]]) -> bytes:
    if not moments:
        return b""
    width = max(1.0, max(at for at, _ in moments) / BARS)
    counts = Counter((int(at / width), outcome) for at, outcome in moments)
    bars = np.arange(1 + max(bar for bar, _ in counts))
    figure, axes = new_figure(LIGHT, height=3.0, title="Questions a second")
    below = np.zeros(len(bars))
    for outcome, colour in OUTCOMES.items():
        rate = np.array([counts[int(bar), outcome] / width for bar in bars])
        axes.bar(bars * width, rate, width, bottom=below, align="edge", color=colour, label=outcome)
        below += rate
    axes.legend(fontsize=8.5, frameon=False, ncols=len(OUTCOMES), loc="lower right", bbox_to_anchor=(1, 1))
    axes.set_xlabel("seconds", fontsize=9, color=LIGHT.ink)
    return png(figure)
