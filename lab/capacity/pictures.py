"""Pictures of a plan and of simulations."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.capacity.cluster import Cluster, search
from lab.capacity.plan import Plan, plan, rehearse
from lab.evaluator.report.pictures import LIGHT, png

RATES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
CORPORA = (10**6, 10**7, 10**8, 10**9)
FATES = {"answered": LIGHT.right, "late": LIGHT.missing, "refused": LIGHT.wrong}


def draw_all(folder: Path, deployment: Plan) -> list[Path]:
    """Write the pictures of a plan into a folder.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"needed": needed(deployment), "harm": harm(deployment), "cluster": cluster()}
    paths = {folder / f"capacity-{name}.png": figure for name, figure in figures.items()}
    for path, figure in paths.items():
        path.write_bytes(png(figure))
    return list(paths)


def needed(deployment: Plan) -> Figure:
    """T4s by rate, and Qdrant nodes by corpus."""
    figure, left, right = _figure()
    left.loglog(RATES, [plan(rate, 10**7, deployment.basis).cards for rate in RATES], color=LIGHT.line, marker="o")
    _label(left, "T4s, at 10 million chunks", "questions a second")
    for rate, shade in ((100, 0.5), (10_000, 1.0)):
        nodes = [plan(rate, chunks, deployment.basis).qdrant["nodes"] for chunks in CORPORA]
        right.loglog(CORPORA, nodes, color=LIGHT.line, alpha=shade, marker="o", label=f"{rate:,} a second")
    _label(right, "Qdrant nodes of 64 GiB", "chunks")
    right.legend(frameon=False, fontsize=8)
    return figure


def harm(deployment: Plan) -> Figure:
    """Fates of questions at higher rates, and when a region is lost."""
    cases = {
        "as planned": rehearse(deployment),
        "1.5 times\nthe questions": rehearse(deployment, surge=1.5),
        "3 times": rehearse(deployment, surge=3),
        "one region\nof 3 lost": rehearse(deployment, lost=1 / 3),
        "one of 2 lost": rehearse(deployment, lost=1 / 2),
    }
    figure, left, right = _figure()
    bottom = [0.0] * len(cases)
    for fate, colour in FATES.items():
        shares = [outcome.share(fate) for outcome in cases.values()]
        left.bar(list(cases), shares, bottom=bottom, color=colour, label=fate)
        bottom = [below + share for below, share in zip(bottom, shares, strict=True)]
    _label(left, f"Questions, planned for {deployment.rate:g} a second", "")
    left.legend(frameon=False, fontsize=7, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.1))
    right.bar(list(cases), [outcome.quantile(0.95) for outcome in cases.values()], color=LIGHT.line)
    _label(right, "p95 of the answers, s", "")
    for axes in (left, right):
        axes.tick_params(axis="x", labelsize=6)
    return figure


def cluster() -> Figure:
    """Latency with and without one node of six, and the share of points that is searched, by replicas."""
    figure, left, right = _figure()
    replicas = (1, 2, 3)
    clusters = [Cluster(nodes=6, shards=12, replicas=copies) for copies in replicas]
    for name, colour, lost in (("all six", LIGHT.right, frozenset[int]()), ("one lost", LIGHT.wrong, frozenset({0}))):
        runs = [search(one, 150, 60, lost=lost, at_s=-10) for one in clusters]
        places = [copies + (0.2 if lost else -0.2) for copies in replicas]
        left.bar(places, [1000 * run.quantile(0.95) for run in runs], 0.4, color=colour, label=name)
        right.bar(places, [run.recall for run in runs], 0.4, color=colour)
    left.legend(frameon=False, fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.1))
    for axes in (left, right):
        axes.set_xticks(replicas)
    _label(left, "p95 of a search once noticed, ms", "replicas of each shard")
    _label(right, "share of the points that is searched", "replicas of each shard")
    return figure


def _figure() -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(7.2, 2.8), dpi=144, layout="constrained")
    left, right = figure.subplots(1, 2)
    return figure, left, right


def _label(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, fontsize=9, color=LIGHT.ink)
    axes.set_xlabel(below, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
