"""`cragmesh eval export` and `cragmesh feedback export`: answers for other evaluators, verdicts for ours."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from services.cli.console import fail, say, warn, write
from services.cli.ending import USAGE, ends, settings_of

feedback = typer.Typer(name="feedback", help="What people said of answers.", no_args_is_help=True)


@feedback.callback()
def _group() -> None:
    """Keeps `export` a command of its own."""


@feedback.command("export")
def export_feedback(
    folder: Annotated[Path, typer.Option("--out", "-o", help="The run's folder; `calibrate` takes it.")],
    source: Annotated[
        Path | None, typer.Argument(help="Where the gateway keeps feedback; its own setting by default.")
    ] = None,
) -> None:
    """Write people's verdicts as a run, and the questions whose answer is known as a file for `eval run`."""
    from lab.evaluator import feedback as people
    from lab.evaluator.errors import EvaluatorError
    from lab.evaluator.store import RunFolder
    from services.gateway.settings import GatewaySettings

    source = source or settings_of(GatewaySettings).feedback_dir
    if source is None:
        fail("say where feedback is kept, or set CRAGMESH_FEEDBACK_DIR", USAGE)
    with ends(problem=(EvaluatorError,)):
        count = people.export(source, RunFolder(folder), warn)
    say(f"{count} verdicts; next: cragmesh calibrate {folder}")
    write(str(folder))


def export(
    folder: Annotated[Path, typer.Argument(help="The folder of a run; contexts are there with --keep-contexts.")],
    to: Annotated[Literal["ragas", "deepeval"], typer.Option(help="Whose format.")],
    file: Annotated[Path | None, typer.Option("--out", "-o", help="The file; printed when not given.")] = None,
) -> None:
    """Write a run's questions, answers and contexts for another evaluator."""
    from lab.evaluator import runs
    from lab.evaluator.errors import EvaluatorError
    from lab.evaluator.export import exported
    from lab.evaluator.store import RunFolder, write_whole

    with ends(problem=(EvaluatorError,)):
        text = exported(runs.read(RunFolder(folder), warn).predictions, to)
        if file:
            write_whole(file, text.encode())
    write(str(file) if file else text.rstrip("\n"))
