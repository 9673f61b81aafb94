"""`cragmesh calibrate`: fit the gateway's confidence, on made-up questions or on judged runs."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from services.cli.console import fail, say, show_table, warn, write
from services.cli.ending import PROBLEM, USAGE, ends, wrong
from services.cli.options import Concurrency, ShardOption, parse_shard
from services.cli.settings import project_root
from services.kit.caution import CALIBRATION_MINUTES, COSTS, Caution
from services.kit.shard import Shard

if TYPE_CHECKING:
    from lab.evaluator.calibrate import Earned, Fitted, Table
    from lab.evaluator.score import Estimate
    from lab.evaluator.store import Judgement, Prediction

REPORT = Path("out/calibration/report")
ABLATION = "ablation.md"
# Columns of what a fit earns.
EARNED = ("score", "right", "wrong", "all answers given")


def calibrate(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Runs of `adaptive`, made by `eval run --every-answer`.")
    ] = None,
    made_up: Annotated[
        bool, typer.Option("--made-up", help="Ask the running mesh made-up questions, and fit on its answers.")
    ] = False,
    minutes: Annotated[
        float, typer.Option(min=0.05, max=24 * 60, help="How long to ask; the same command goes on later.")
    ] = CALIBRATION_MINUTES,
    concurrency: Concurrency = 2,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where made-up questions and answers are; remove it to begin anew.")
    ] = None,
    generic: Annotated[
        bool, typer.Option("--generic", help="Fit for generators without an own one, on runs of two others or more.")
    ] = False,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Only show what each signal earns on held-out folds.")
    ] = False,
    generator: Annotated[
        str, typer.Option(help="Whose answers these are: MODEL, or MODEL+ADAPTER; by default what the runs say.")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File to write; by default one in CRAGMESH_CONFIDENCE_DIR, which takes effect at once."
        ),
    ] = None,
    compared: Annotated[
        list[Path],
        typer.Option("--beside", help="Runs of other strategies, to be compared on the questions they share."),
    ] = [],  # noqa: B006
    report: Annotated[Path | None, typer.Option(help="Folder of the pictures; out/calibration/report.")] = None,
    apply_to: Annotated[list[Path], typer.Option("--apply-to", help="Runs to report on, unseen by the fit.")] = [],  # noqa: B006
    shard: ShardOption = "",
) -> None:
    """Fit the probability that an answer is right, and the lines under which the gateway abstains."""
    if made_up == bool(folders) or (made_up and generic):
        fail("give runs, or --made-up and a mesh that is up", USAGE)
    share = parse_shard(shard)
    if share.count > 1 and not made_up:
        fail("--shard is for asking, --made-up; a fit is of all answers", USAGE)
    if made_up:
        _made_up(minutes, concurrency, folder, to, report, share, ablate=ablate)
    elif generic:
        _generic(folders or [], to, report or REPORT, apply_to, ablate=ablate)
    else:
        _own(folders or [], generator, to, compared, report or REPORT, apply_to, ablate=ablate)


def _made_up(
    minutes: float,
    concurrency: int,
    folder: Path | None,
    to: Path | None,
    report: Path | None,
    share: Shard,
    *,
    ablate: bool,
) -> None:
    from services.cli import eval as evaluation
    from services.cli import made_up
    from services.gateway.calibration import digest_of

    settings, urls = evaluation.evaluator_settings()
    target = evaluation.evaluate(made_up.target(settings, urls, folder, share))
    if share.count == 1:
        say(f"asking {target.generator} for up to {minutes:g} minutes; interrupted, the same command goes on")
    evaluation.evaluate(made_up.ask(target, urls, minutes=minutes, concurrency=concurrency))
    if share.count > 1:
        say("when all shares are there: cragmesh eval merge SHARES --out RUN, and cragmesh calibrate RUN", "dim")
        write(str(target.run))
        return
    file = to or _watched(target.generator)
    content = _own([target.run], target.generator, file, [], report or target.folder / "report", [], ablate=ablate)
    if not content:
        return
    if to:
        say("put it into the gateway's CRAGMESH_CONFIDENCE_DIR: it takes effect without a restart")
        return
    if why_not := evaluation.evaluate(made_up.in_effect(target, digest_of(content))):
        fail(f"the gateway at {target.url} does not weigh answers by {file}: {why_not}", PROBLEM)
    say(f"in effect: {target.url} weighs the answers of {target.generator} by it", "green")


def _watched(generator: str) -> Path:
    """The file of a generator's confidence that a gateway on this machine takes within seconds."""
    from services.cli import eval as evaluation

    settings, _ = evaluation.evaluator_settings()
    return project_root() / settings.confidence_dir / f"{generator.rpartition('/')[2]}.json"


def _own(
    folders: Sequence[Path],
    generator: str,
    to: Path | None,
    compared: Sequence[Path],
    report: Path,
    apply_to: Sequence[Path],
    *,
    ablate: bool,
) -> bytes:
    """Fit on the runs of one generator; returns the file's content, empty when signals are only compared."""
    # scikit-learn and matplotlib take seconds to import, which no other command should wait for.
    from lab.evaluator import calibrate as fitting
    from lab.evaluator import generic
    from lab.evaluator.errors import EvaluatorError
    from services.gateway.confidence import RANKS, SIGNALS

    with ends(problem=(EvaluatorError, OSError, ValueError)):
        model = generator
        if not (generator or ablate):
            model = _only_model(folders, may_be_unknown=bool(to))
            # A file that is named here is called as the generator.
            generator = "" if to else model
        # A question of several runs has an answer in each, and a judgement of each.
        runs = [_judged(folder, model or _only_model([folder], may_be_unknown=True)) for folder in folders]
        # A run of another version may have signals that are none any more.
        if ablate:
            _ablate(fitting.table([pair for run in runs for pair in generic.ranked(run)]).of_signals(SIGNALS), report)
            return b""
        data = fitting.table([pair for run in runs for pair in run]).of_signals(SIGNALS.keys() - RANKS)
        say(f"fitting on {data.answered.sum()} answers to {data.questions} questions", "dim")
        fitted = fitting.fit(data)
        both = fitting.halves(data)
        others = [(folder, fitting.beside(both, _judged(folder))) for folder in compared]
        elsewhere = [(folder, fitting.apply(fitted, fitting.table(_judged(folder, model)))) for folder in apply_to]
    rows = [
        (*name, _lines(half.fitted), *_numbers(half.earned))
        for name, half in zip((("one half", "the other"), ("the other", "the one")), both, strict=True)
    ]
    earned = fitting.earned(fitted, data, fitted.right, fitted.false)
    rows.append(("held-out folds", "all", _lines(fitted), *_numbers(earned)))
    rows += [("all", folder.name, _lines(fitted), *_numbers(earned)) for folder, earned in elsewhere]
    show_table(("fitted on", "reported on", "lines", *EARNED), rows)
    _show_cautions(fitted, data)
    if others:
        heads = ("beside", "questions", "score less its", "right less its", "wrong less its")
        differences = (
            (other.name, str(less.questions), *map(_interval, (less.score, less.accuracy, less.hallucination)))
            for other, less in others
        )
        show_table(heads, differences, caption="by halves, 95 %")
    content = _install(fitted, data, folders, generator, to or _watched(generator))
    _draw(fitted, data, report)
    return content


def _generic(folders: Sequence[Path], to: Path | None, report: Path, apply_to: Sequence[Path], *, ablate: bool) -> None:
    from lab.evaluator import calibrate as fitting
    from lab.evaluator import generic
    from lab.evaluator.errors import EvaluatorError
    from services.gateway.confidence import GENERIC, GENERIC_SIGNALS

    with ends(problem=(EvaluatorError, OSError, ValueError)):
        runs: defaultdict[str, list[tuple[Prediction, Judgement]]] = defaultdict(list)
        for folder in folders:
            model = _only_model([folder])
            runs[model] += _judged(folder, model)
        data = generic.pool(runs, GENERIC_SIGNALS)
        if ablate:
            _ablate(data, report)
            return
        fitted = fitting.fit(data)
        transferred = generic.transfer(runs, GENERIC_SIGNALS)
        elsewhere = [
            (folder, fitting.apply(fitted, fitting.table(generic.ranked(_judged(folder, _only_model([folder]))))))
            for folder in apply_to
        ]
    rows = [("the others, other questions", name, *_numbers(earned)) for name, earned in transferred.items()]
    rows += [("all of these", folder.name, *_numbers(earned)) for folder, earned in elsewhere]
    show_table(("fitted on", "reported on", *EARNED), rows)
    _show_cautions(fitted, data)
    _install(fitted, data, folders, GENERIC, to or _watched(GENERIC), generators=len(runs))
    _draw(fitted, data, report)


def _install(
    fitted: "Fitted", data: "Table", folders: Sequence[Path], generator: str, to: Path, *, generators: int = 1
) -> bytes:
    from lab.evaluator.errors import WriteFailed
    from lab.evaluator.store import write_whole
    from services.gateway.confidence import Confidence

    if fitted.invalid is None:
        warn(f'"invalid question" is never answered: {data.only(data.invalid == 1).questions} of the questions are')
    runs = ", ".join(folder.resolve().name for folder in folders[:8])
    of = f" by {generators} generators" if generators > 1 else ""
    fitted_on = f"{data.answered.sum()} answers{of} to {data.questions} questions: {runs}"
    heads = {"answer": fitted.answer, "invalid": fitted.invalid, "fitted_on": fitted_on, "generator": generator}
    try:
        Confidence.model_validate(heads)
    except ValidationError as error:
        fail(f"{to} is as it was, since the gateway would refuse this fit: {wrong(error)}", PROBLEM)
    content = json.dumps(heads, indent=1).encode() + b"\n"
    with ends(problem=(WriteFailed,)):
        write_whole(to, content)
    say(f"signals of the answer's head: {', '.join(fitted.answer['names']) or 'none, since all answers are alike'}")
    write(str(to))
    return content


def _draw(fitted: "Fitted", data: "Table", report: Path) -> None:
    from lab.evaluator.reliability import draw

    with ends(problem=(OSError,)):
        draw(fitted, data, report)
    say(f"risk and coverage: {report / 'risk_coverage.png'}", "dim")


def _ablate(data: "Table", report: Path) -> None:
    from lab.evaluator import ablation
    from lab.evaluator.report import markdown
    from lab.evaluator.store import write_whole

    table = ablation.table(*ablation.ablate(data))
    write_whole(report / ABLATION, markdown.write("What each signal earns", (), [table], ()).encode())
    show_table(table.head, table.rows, caption=table.note)
    write(str(report / ABLATION))


def _show_cautions(fitted: "Fitted", data: "Table") -> None:
    """Print the result of each setting of CRAGMESH_CAUTION on held-out folds."""
    from lab.evaluator import calibrate as fitting

    rows = []
    for caution, cost in COSTS.items():
        earned = fitting.earned(fitted, data, fitted.right, fitted.false, caution)
        silent = 1 - earned.right - earned.wrong
        shares = (f"{share:.1%}" for share in (earned.right, earned.wrong, silent))
        rows.append((caution, f"{cost:g}", _lines(fitted, caution), *shares, f"{earned.score:+.3f}"))
    heads = ("caution", "a wrong answer costs", "lines", "right", "wrong", "silent", "score at that cost")
    show_table(heads, rows)


def _judged(folder: Path, generator: str = "") -> "list[tuple[Prediction, Judgement]]":
    """A run's judged predictions, without those of another generator than the one that is named.

    Adapters answer different questions of a run. Where none is of that generator, all count as its.
    """
    from lab.evaluator import runs
    from lab.evaluator.feedback import PEOPLE
    from lab.evaluator.store import RunFolder
    from services.gateway.confidence import name_of

    target = RunFolder(folder)
    predictions = runs.read(target, warn).predictions
    # A person knows better than a rule, which needs a gold answer.
    judge = PEOPLE if target.judgements_file(PEOPLE).exists() else "rules"
    verdicts = runs.verdicts(target, predictions, judge)
    model, _, adapter = generator.partition("+")
    name = name_of(model, adapter)
    others = sorted({line.generator for line in predictions} - {"", name}) if generator else []
    if others and not any(line.generator == name for line in predictions):
        warn(f"{folder}: no answer is by {name}; those of {', '.join(others)} are taken for its")
        others = []
    return [(line, verdicts[line.id]) for line in predictions if line.id in verdicts and line.generator not in others]


def _only_model(folders: Sequence[Path], *, may_be_unknown: bool = False) -> str:
    """The one model that all runs were made with; empty where they name none and that is allowed.

    Raises:
        ValueError: the runs name several models, of which one may be an adapter, or none.
    """
    from lab.evaluator.store import RunFolder

    models: set[str] = set()
    for folder in folders:
        mesh = RunFolder(folder).info().mesh
        names = [mesh["answers_by"]] if mesh.get("answers_by") else mesh.get("generator")
        models.update(map(str, names) if isinstance(names, list) else ())
    if len(models) > 1 or not (models or may_be_unknown):
        several = f": the runs saw {', '.join(sorted(models))}" if models else ""
        raise ValueError(f"say whose answers these are, --generator MODEL or MODEL+ADAPTER{several}")
    return models.pop() if models else ""


def _lines(fitted: "Fitted", caution: Caution = "balanced") -> str:
    invalid = "" if fitted.invalid is None else f", invalid {fitted.invalid['thresholds'][caution]:.2f}"
    return f"{fitted.answer['thresholds'][caution]:.2f}{invalid}"


def _interval(estimate: "Estimate") -> str:
    return f"{estimate.value:+.3f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def _numbers(earned: "Earned") -> tuple[str, ...]:
    return tuple(f"{value:+.3f}" for value in (earned.score, earned.right, earned.wrong, earned.ungated))
