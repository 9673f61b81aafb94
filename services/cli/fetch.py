"""`cragmesh eval fetch`: a benchmark's public files, on a machine that reaches the internet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import httpx
import typer
from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

from services.cli.console import err, fail, say, write
from services.cli.ending import USAGE, ends
from services.cli.progress import bar_of

if TYPE_CHECKING:
    from lab.evaluator import fetch as fetching

# The share between two lines where no terminal shows the bar.
LOG_EVERY = 0.05


def fetch(
    benchmark: Annotated[str, typer.Argument(help="`crag`.")] = "crag",
    folder: Annotated[Path, typer.Option("--to", help="Where the files go; a cut download goes on.")] = Path(
        "out/crag"
    ),
    names: Annotated[
        list[str] | None, typer.Option("--set", help="questions, questions-v5, task-3 or graph; questions by default.")
    ] = None,
    base: Annotated[str, typer.Option(help="A mirror's address, in place of the owner's.")] = "",
) -> None:
    """Fetch a benchmark's public files and check each by size and SHA-256; their licence is the owner's.

    A number of your own in three commands: `cragmesh eval fetch crag`, `cragmesh eval run
    out/crag/crag_task_1_and_2_dev_v4.jsonl.bz2 --sample 500 --out out/mine`, `cragmesh eval report out/mine`.
    """
    from lab.evaluator import fetch as fetching
    from lab.evaluator.errors import EvaluatorError

    catalogues = fetching.catalogues()
    if benchmark not in catalogues:
        fail(f"no benchmark is named {benchmark!r}; there is {', '.join(sorted(catalogues))}", USAGE)
    with ends(problem=(EvaluatorError,)):
        catalogue = fetching.load(catalogues[benchmark])
    names = names or ["questions"]
    if unknown := sorted(set(names) - catalogue.sets.keys()):
        fail(f"{benchmark} has no set {unknown[0]!r}; it has {', '.join(catalogue.sets)}", USAGE)
    say(f"{catalogue.name}: {catalogue.licence}", "dim")
    sources = {name: catalogue.sets[name] for name in names}
    for name, source in sources.items():
        say(f"{name}: {source.summary}, {source.size / 1e9:.1f} GB", "dim")
        with ends(problem=(EvaluatorError,), again="the same command goes on from here"):
            paths = _fetch(source, folder, base or catalogue.base)
        for path in paths:
            write(str(path))


def _fetch(source: "fetching.SourceSet", folder: Path, base: str) -> list[Path]:
    from lab.evaluator import fetch as fetching

    with bar_of(DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()) as bar, httpx.Client() as http:
        task = bar.add_task("fetching", total=source.size)
        logged = 0.0

        def advance(count: int) -> None:
            nonlocal logged
            bar.advance(task, count)
            share = bar.tasks[0].completed / source.size
            if not err.is_terminal and share >= logged + LOG_EVERY:
                logged = share
                say(f"{share:.0%} of {source.size / 1e9:.1f} GB", "dim")

        return fetching.fetch(source, folder, http, base=base, on_bytes=advance)
