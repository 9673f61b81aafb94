"""`cragmesh calibrate`: fit the gateway's confidence on judged runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from services.cli.ask import PROBLEM
from services.cli.console import out, say, write

if TYPE_CHECKING:
    from services.evaluator.calibrate import Earned, Fitted
    from services.evaluator.calibrate import Table as Questions

SHIPPED = Path("services/gateway/data/confidence/default.json")


def calibrate(
    folders: Annotated[list[Path], typer.Argument(help="Runs of `adaptive`, made with CRAGMESH_ABSTAIN=0.")],
    to: Annotated[Path, typer.Option("--out", help="Where the gateway reads it.")] = SHIPPED,
    report: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("out/calibration"),
    apply_to: Annotated[list[Path], typer.Option("--apply-to", help="Runs to report on, unseen by the fit.")] = [],  # noqa: B006
    generator: Annotated[str, typer.Option(help="Whose answers these are, for the reader.")] = "",
) -> None:
    """Fit the probability that an answer is right, and the line under which the gateway abstains."""
    # scikit-learn and matplotlib take seconds to import, which no other command should wait for.
    from services.evaluator import calibrate as fitting
    from services.evaluator import runs
    from services.evaluator.errors import EvaluatorError
    from services.evaluator.store import Judgement, Prediction, RunFolder

    predictions: list[Prediction] = []
    judgements: dict[str, Judgement] = {}
    try:
        for folder in folders:
            found = runs.read(RunFolder(folder), lambda line: say(line, "yellow"))
            predictions += found.predictions
            judgements |= runs.verdicts(RunFolder(folder), found.predictions, "rules")
        data = fitting.table(predictions, judgements)
        fitted = fitting.fit(data)
        both = fitting.halves(data)
        elsewhere = [(folder, fitting.apply(fitted, _table(folder))) for folder in apply_to]
    except (EvaluatorError, ValueError) as error:
        say(str(error), "red")
        raise typer.Exit(PROBLEM) from None
    if fitted.invalid is None:
        say(f'"invalid question" is never answered: {data.invalid.sum()} of the questions are', "yellow")
    fitting.draw(fitted, data, report)
    names = ", ".join(folder.name for folder in folders)
    fitted_on = f"{data.answered.sum()} answers to {len(data.ids)} questions: {names}"
    heads = {"answer": fitted.answer, "invalid": fitted.invalid, "fitted_on": fitted_on, "generator": generator}
    fitting.write(heads, to)
    board = Table("fitted on", "reported on", "lines", "score", "right", "wrong", "all answers given")
    for name, (half, reached) in zip((("one half", "the other"), ("the other", "the one")), both, strict=True):
        board.add_row(*name, _lines(half), *_numbers(reached))
    reached = fitting.earned(fitted, data, fitted.right, fitted.false)
    board.add_row("held-out folds", "all", _lines(fitted), *_numbers(reached))
    for folder, reached in elsewhere:
        board.add_row("all", folder.name, _lines(fitted), *_numbers(reached))
    out.print(board)
    say(f"signals of the answer's head: {', '.join(fitted.answer['names'])}")
    write(str(to))


def _table(folder: Path) -> "Questions":
    from services.evaluator import calibrate as fitting
    from services.evaluator import runs
    from services.evaluator.store import RunFolder

    found = runs.read(RunFolder(folder), lambda line: say(line, "yellow"))
    return fitting.table(found.predictions, runs.verdicts(RunFolder(folder), found.predictions, "rules"))


def _lines(fitted: "Fitted") -> str:
    invalid = "" if fitted.invalid is None else f", invalid {fitted.invalid['threshold']:.2f}"
    return f"{fitted.answer['threshold']:.2f}{invalid}"


def _numbers(reached: "Earned") -> tuple[str, ...]:
    return tuple(f"{value:+.3f}" for value in (reached.score, reached.right, reached.wrong, reached.ungated))
