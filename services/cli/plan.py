"""`cragmesh plan`: a deployment for a rate of questions and a corpus, what it costs, and what it rests on."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from services.cli.console import plain, show_table, write
from services.cli.ending import ends


def plan(
    rate: Annotated[float, typer.Option(min=0.01, max=1e6, help="Questions a second at the peak.")],
    corpus: Annotated[str, typer.Option(help="Chunks of all collections: 500k, 10M, 1B.")],
    assumptions: Annotated[Path | None, typer.Option(help="What you know better: a copy of assumptions.yaml.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="A folder for pictures; takes a minute.")] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Print the chart's values, over values-t4.yaml, and nothing else.")
    ] = False,
) -> None:
    """Print a deployment, its cost, what is full first, what losing a region does, and each assumption."""
    with ends(usage=(ValueError,), problem=(OSError,)):
        from lab.capacity import plan as planning

        inputs = planning.assumptions(assumptions or planning.SHIPPED)
        deployment = planning.plan(rate, planning.count(corpus), inputs)
        chart = yaml.safe_dump(deployment.values(), sort_keys=False)
        if values:
            write(chart.rstrip())
            return
        qdrant = deployment.qdrant
        rows = (
            (name, str(deployment.replicas.get(name, qdrant["nodes"])), f"{load:.0%}")
            for name, load in deployment.load.items()
        )
        title = f"{rate:g} questions a second, {deployment.chunks:,} chunks"
        show_table(("service", "replicas", "busy"), rows, title=title)
        write(f"{deployment.cards} T4s on {deployment.t4_nodes} nodes; {deployment.first} is full first.")
        write(
            f"Qdrant: {qdrant['nodes']} nodes, {qdrant['shards']} shards of {qdrant['replicas']} replicas, "
            f"{qdrant['memory_gib']:,} GiB of vectors in memory, {qdrant['disk_gib']:,} GiB of disk."
        )
        costs = ", ".join(f"{name} {cost:,.0f}" for name, cost in deployment.usd_month.items())
        usd = sum(deployment.usd_month.values())
        write(f"{usd:,.0f} USD a month ({costs}), {deployment.usd_per_1000:.2f} a thousand questions.")
        for name, case in {
            "as planned": planning.rehearse(deployment),
            "1.5 times the questions": planning.rehearse(deployment, surge=1.5),
            "one region of three lost": planning.rehearse(deployment, lost=1 / 3),
        }.items():
            fates = ", ".join(f"{case.share(fate):.0%} {fate}" for fate in ("answered", "late", "refused"))
            write(f"{name}: median {case.quantile(0.5):.1f} s, p95 {case.quantile(0.95):.1f} s; {fates}")
        write(f"\nValues of the chart, over values-t4.yaml:\n{plain(chart)}\nAssumptions:")
        for name, (value, source) in inputs.items():
            write(plain(f"  {name} = {value:g}: {source}"))
        if pictures:
            from lab.capacity.pictures import draw_all

            for picture in draw_all(pictures, deployment):
                write(plain(str(picture)))
