"""`cragmesh classifier`: train and evaluate the classifier, without a running mesh."""

from pathlib import Path
from typing import Annotated

import typer

from services.cli.console import err, fail, say, show_table, write
from services.cli.ending import USAGE, ends, settings_of

app = typer.Typer(name="classifier", help="Train and evaluate the classifier of questions.", no_args_is_help=True)

Generator = Annotated[str, typer.Option(help="Root of an OpenAI-compatible server.")]


@app.command()
def train(
    data: Annotated[
        list[Path] | None,
        typer.Option(help="More labelled questions: CRAG's records or FreshQA (.jsonl, .csv, .gz, .bz2); repeat it."),
    ] = None,
    calibrate: Annotated[
        list[Path] | None,
        typer.Option(help="Real questions that only temper certainties; of FreshQA the half that is not held back."),
    ] = None,
    generator: Generator = "",
    sample: Annotated[int, typer.Option(min=20, help="Validation questions to ask the generator.")] = 60,
    to: Annotated[Path | None, typer.Option("--out", help="Where to write; the shipped model by default.")] = None,
) -> None:
    """Train on the project's own questions, validate on templates kept back, and write model and card."""
    # scikit-learn takes seconds to import, which no other command should wait for.
    from lab.classifier.fit import fit
    from services.classifier.settings import ClassifierSettings
    from services.classifier.svm import MODEL
    from services.kit.jsonl import BadLine

    folder, settings = to or MODEL.parent, settings_of(ClassifierSettings)
    with ends(usage=(BadLine,), problem=(OSError, ValueError)), err.status("training"):
        card = fit(
            folder,
            settings,
            data=data or (),
            calibrate=calibrate or (),
            generator=generator,
            sample=sample,
            progress=say,
        )
    rows = (
        (head, *(f"{scores[name]:.3f}" for name in ("accuracy", "macro_f1", "ece")), str(card["thresholds"][head]))
        for head, scores in card["validation"].items()
    )
    heads = ("head", "accuracy", "macro-F1", "ECE", "threshold")
    show_table(heads, rows, title="validation, by templates kept back")
    write(str(folder))


@app.command()
def evaluate(
    generator: Generator = "",
    sample: Annotated[int, typer.Option(min=1, help="Questions of a set that the generator is asked.")] = 40,
    to: Annotated[Path, typer.Option("--out", help="Folder for the report.")] = Path("out/classifier"),
) -> None:
    """Measure on real questions; needs CRAGMESH_EVAL_DATA."""
    from lab.classifier import evaluate as evaluation
    from lab.evaluator.settings import EvaluatorSettings
    from services.classifier.settings import ClassifierSettings
    from services.classifier.svm import ModelError

    root, settings = settings_of(EvaluatorSettings).eval_data, settings_of(ClassifierSettings)
    if root is None:
        fail("CRAGMESH_EVAL_DATA is not set, so there are no questions; nothing was measured", USAGE)
    with ends(problem=(ModelError, OSError, ValueError)):
        report = evaluation.evaluate(root, to, settings, generator=generator, sample=sample, say=say)
    write(report.markdown())
