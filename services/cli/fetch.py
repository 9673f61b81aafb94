"""`cragmesh eval fetch`: a benchmark's public files, on a machine that reaches the internet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import httpx
import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from services.cli.console import err, fail, say, write
from services.cli.ending import PROBLEM, USAGE, ends

if TYPE_CHECKING:
    from lab.evaluator import fetch as fetching

# Where no terminal shows the bar, a line each so large a share.
LOG_EVERY = 0.05


def fetch(
    benchmark: Annotated[str, typer.Argument(help="`crag`.")] = "crag",
    folder: Annotated[Path, typer.Option("--to", help="Where the files go; a cut download goes on.")] = Path(
        "out/crag"
    ),
    wanted: Annotated[
        list[str] | None, typer.Option("--set", help="questions, questions-v5, task-3 or graph; questions by default.")
    ] = None,
    base: Annotated[str, typer.Option(help="A mirror's address, in place of the owner's.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Fetch nothing: check what is there.")] = False,
) -> None:
    """Fetch a benchmark's public files and check each by size and SHA-256; their licence is the owner's.

    A number of your own in three commands: `cragmesh eval fetch crag`, `cragmesh eval run
    out/crag/crag_task_1_and_2_dev_v4.jsonl.bz2 --sample 500 --out out/mine`, `cragmesh eval report out/mine`.
    """
    from lab.evaluator import fetch as fetching
    from lab.evaluator.errors import EvaluatorError

    known = fetching.catalogues()
    if benchmark not in known:
        fail(f"no benchmark is named {benchmark!r}; there is {', '.join(sorted(known))}", USAGE)
    with ends(problem=(EvaluatorError,)):
        catalogue = fetching.load(known[benchmark])
    names = wanted or ["questions"]
    if unknown := sorted(set(names) - catalogue.sets.keys()):
        fail(f"{benchmark} has no set {unknown[0]!r}; it has {', '.join(catalogue.sets)}", USAGE)
    say(f"{catalogue.name}: {catalogue.licence}", "dim")
    if check:
        _check([catalogue.sets[name] for name in names], folder)
        return
    for name in names:
        one = catalogue.sets[name]
        say(f"{name}: {one.summary}, {one.size / 1e9:.1f} GB", "dim")
        with ends(problem=(EvaluatorError,), again="the same command goes on from here"):
            paths = _fetch(one, folder, base or catalogue.base)
        for path in paths:
            write(str(path))


def _check(wanted: "list[fetching.SourceSet]", folder: Path) -> None:
    from lab.evaluator import fetch as fetching

    wrong = [name for one in wanted for name in fetching.missing(one, folder)]
    for name in wrong:
        say(f"{folder / name}: missing, cut or not what is pinned", "yellow")
    if wrong:
        raise typer.Exit(PROBLEM)
    say("all files are whole", "dim")


def _fetch(wanted: "fetching.SourceSet", folder: Path, base: str) -> list[Path]:
    from lab.evaluator import fetch as fetching

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=err, disable=not err.is_terminal, transient=True) as bar:
        task = bar.add_task("fetching", total=wanted.size)
        told = 0.0

        def arrived(count: int) -> None:
            nonlocal told
            bar.advance(task, count)
            share = bar.tasks[0].completed / wanted.size
            if not err.is_terminal and share >= told + LOG_EVERY:
                told = share
                say(f"{share:.0%} of {wanted.size / 1e9:.1f} GB", "dim")

        with httpx.Client() as http:
            return fetching.fetch(wanted, folder, http, base=base, on_bytes=arrived)
