"""`cragmesh calibrate`: fit the gateway's confidence on judged runs."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from services.cli.ask import PROBLEM
from services.cli.console import out, say, write

SHIPPED = Path("services/gateway/data/confidence/default.json")


def calibrate(
    folders: Annotated[list[Path], typer.Argument(help="Runs of `adaptive`, made with CRAGMESH_ABSTAIN=0.")],
    to: Annotated[Path, typer.Option("--out", help="Where the gateway reads it.")] = SHIPPED,
    report: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("out/calibration"),
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
        answers = fitting.table(predictions, judgements, invalid=False)
        head, held_out = fitting.fit(answers)
        both = fitting.halves(answers)
    except (EvaluatorError, ValueError) as error:
        say(str(error), "red")
        raise typer.Exit(PROBLEM) from None
    heads: dict[str, Any] = {
        "answer": head,
        "invalid": None,
        "fitted_on": f"{len(answers.right)} answers to {answers.asked} questions: {', '.join(f.name for f in folders)}",
        "generator": generator,
    }
    try:
        invalid, _ = fitting.fit(fitting.table(predictions, judgements, invalid=True))
        heads["invalid"] = invalid
    except ValueError as error:
        say(f'"invalid question" is never answered: {error}', "yellow")
    fitting.draw(held_out, answers.right, answers.asked, report)
    fitting.write(heads, to)
    table = Table("fitted on", "reported on", "threshold", "score", "right", "wrong", "score without abstention")
    for name, half in zip((("one half", "the other"), ("the other", "the one")), both, strict=True):
        numbers = (f"{half[key]:+.3f}" for key in ("score", "right", "wrong", "without"))
        table.add_row(*name, f"{half['threshold']:.2f}", *numbers)
    score, right, wrong = fitting.score_at(held_out, answers.right, head["threshold"], answers.asked)
    table.add_row(
        "all, held-out folds", "all", f"{head['threshold']:.2f}", f"{score:+.3f}", f"{right:+.3f}", f"{wrong:+.3f}", ""
    )
    out.print(table)
    write(str(to))
