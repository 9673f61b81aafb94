"""`cragmesh calibrate`: fit the gateway's confidence on judged runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from services.cli.ask import PROBLEM
from services.cli.console import fail, out, say, write

if TYPE_CHECKING:
    from services.evaluator.calibrate import Earned, Fitted
    from services.evaluator.score import Difference
    from services.evaluator.store import Judgement, Prediction

FITTED = Path("services/gateway/data/confidence")


def calibrate(
    folders: Annotated[list[Path], typer.Argument(help="Runs of `adaptive`, made with CRAGMESH_ABSTAIN=0.")],
    generator: Annotated[
        str, typer.Option(help="Whose answers these are: MODEL, or MODEL+ADAPTER; by default the run's only model.")
    ] = "",
    to: Annotated[
        Path | None, typer.Option("--out", help="By default where the gateway looks for this generator's.")
    ] = None,
    compared: Annotated[
        list[Path],
        typer.Option("--beside", help="Runs of other strategies, to be compared on the questions they share."),
    ] = [],  # noqa: B006
    report: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("out/calibration"),
    apply_to: Annotated[list[Path], typer.Option("--apply-to", help="Runs to report on, unseen by the fit.")] = [],  # noqa: B006
) -> None:
    """Fit the probability that an answer is right, and the line under which the gateway abstains."""
    # scikit-learn and matplotlib take seconds to import, which no other command should wait for.
    from services.evaluator import calibrate as fitting
    from services.evaluator.errors import EvaluatorError

    try:
        generator = generator or ("" if to else _only_model(folders))
        # A question of several runs has an answer in each, and a judgement of each.
        data = fitting.table([pair for folder in folders for pair in _judged(folder)])
        fitted = fitting.fit(data)
        both = fitting.halves(data)
        others = [(folder, fitting.beside(both, _judged(folder))) for folder in compared]
        elsewhere = [(folder, fitting.apply(fitted, fitting.table(_judged(folder)))) for folder in apply_to]
    except (EvaluatorError, ValueError) as error:
        fail(str(error), PROBLEM)
    to = to or FITTED / f"{generator.rpartition('/')[2]}.json"
    if fitted.invalid is None:
        say(f'"invalid question" is never answered: {data.invalid.sum()} of the questions are', "yellow")
    fitting.draw(fitted, data, report)
    names = ", ".join(folder.name for folder in folders)
    fitted_on = f"{data.answered.sum()} answers to {len(data.ids)} questions: {names}"
    heads = {"answer": fitted.answer, "invalid": fitted.invalid, "fitted_on": fitted_on, "generator": generator}
    fitting.write(heads, to)
    board = Table("fitted on", "reported on", "lines", "score", "right", "wrong", "all answers given")
    for name, half in zip((("one half", "the other"), ("the other", "the one")), both, strict=True):
        board.add_row(*name, _lines(half.fitted), *_numbers(half.earned))
    reached = fitting.earned(fitted, data, fitted.right, fitted.false)
    board.add_row("held-out folds", "all", _lines(fitted), *_numbers(reached))
    for folder, reached in elsewhere:
        board.add_row("all", folder.name, _lines(fitted), *_numbers(reached))
    out.print(board)
    if others:
        out.print(_beside(others))
    say(f"signals of the answer's head: {', '.join(fitted.answer['names'])}")
    write(str(to))


def _beside(others: "Sequence[tuple[Path, Difference]]") -> Table:
    board = Table(
        "beside", "questions", "score less its", "right less its", "wrong less its", caption="by halves, 95 %"
    )
    for folder, found in others:
        told = (found.score, found.accuracy, found.hallucination)
        cells = (f"{one.value:+.3f} [{one.low:+.2f}, {one.high:+.2f}]" for one in told)
        board.add_row(folder.name, str(found.questions), *cells)
    return board


def _judged(folder: Path) -> "list[tuple[Prediction, Judgement]]":
    from services.evaluator import runs
    from services.evaluator.store import RunFolder

    found = runs.read(RunFolder(folder), lambda line: say(line, "yellow"))
    verdicts = runs.verdicts(RunFolder(folder), found.predictions, "rules")
    return [(line, verdicts[line.id]) for line in found.predictions if line.id in verdicts]


def _only_model(folders: Sequence[Path]) -> str:
    """The model that all runs were made with.

    Raises:
        ValueError: there were several, of which one may be an adapter, or the runs do not say.
    """
    from services.evaluator.store import RunFolder

    seen: set[str] = set()
    for folder in folders:
        names = RunFolder(folder).info().mesh.get("generator")
        seen.update(map(str, names) if isinstance(names, list) else ())
    if len(seen) != 1:
        there = f": the runs saw {', '.join(sorted(seen))}" if seen else ""
        raise ValueError(f"say whose answers these are, --generator MODEL or MODEL+ADAPTER{there}")
    return seen.pop()


def _lines(fitted: "Fitted") -> str:
    invalid = "" if fitted.invalid is None else f", invalid {fitted.invalid['threshold']:.2f}"
    return f"{fitted.answer['threshold']:.2f}{invalid}"


def _numbers(reached: "Earned") -> tuple[str, ...]:
    return tuple(f"{value:+.3f}" for value in (reached.score, reached.right, reached.wrong, reached.ungated))
