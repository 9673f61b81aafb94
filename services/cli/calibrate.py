"""`cragmesh calibrate`: fit the gateway's confidence, on made-up questions or on judged runs."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from services.cli.console import fail, out, say, write
from services.cli.ending import PROBLEM, USAGE, ends
from services.cli.shards import ShardOption, parse_shard
from services.kit.caution import CALIBRATION_MINUTES, COSTS, Caution
from services.kit.shard import Shard

if TYPE_CHECKING:
    from lab.evaluator.calibrate import Earned, Fitted
    from lab.evaluator.calibrate import Table as Data
    from lab.evaluator.score import Difference
    from lab.evaluator.store import Judgement, Prediction

FITTED = Path("services/gateway/data/confidence")
REPORT = Path("out/calibration/report")
ABLATION = "ablation.md"


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
    concurrency: Annotated[int, typer.Option("-c", min=1, max=256, help="Questions in flight at once.")] = 2,
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
        typer.Option("--out", help="File to write; by default where the gateway looks for it."),
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
    if share.count > 1:
        if not made_up:
            fail("--shard is for asking, --made-up; a fit is of all answers", USAGE)
        _ask_share(minutes, concurrency, folder, share)
    elif made_up:
        _made_up(minutes, concurrency, folder, to, report, ablate=ablate)
    elif generic:
        _generic(folders or [], to, report or REPORT, apply_to, ablate=ablate)
    else:
        _own(folders or [], generator, to, compared, report or REPORT, apply_to, ablate=ablate)


def _ask_share(minutes: float, concurrency: int, folder: Path | None, share: Shard) -> None:
    from services.cli import eval as evaluation
    from services.cli import made_up

    settings, urls = evaluation.evaluator_settings()
    target = evaluation.evaluate(made_up.target(settings, urls, folder, share))
    evaluation.evaluate(made_up.ask(target, urls, minutes=minutes, concurrency=concurrency))
    say("when all shares are there: cragmesh eval merge SHARES --out RUN, and cragmesh calibrate RUN", "dim")
    write(str(target.run))


def _made_up(
    minutes: float, concurrency: int, folder: Path | None, to: Path | None, report: Path | None, *, ablate: bool
) -> None:
    from services.cli import eval as evaluation
    from services.cli import made_up
    from services.gateway.calibration import digest_of

    settings, urls = evaluation.evaluator_settings()
    target = evaluation.evaluate(made_up.target(settings, urls, folder))
    say(f"asking {target.generator} for up to {minutes:g} minutes; interrupted, the same command goes on")
    evaluation.evaluate(made_up.ask(target, urls, minutes=minutes, concurrency=concurrency))
    file = to or made_up.confidence_dir(settings) / f"{target.generator}.json"
    written = _own([target.run], target.generator, file, [], report or target.folder / "report", [], ablate=ablate)
    if not written:
        return
    if to:
        say("put it into the gateway's CRAGMESH_CONFIDENCE_DIR: it takes effect without a restart")
        return
    why_not = evaluation.evaluate(made_up.in_effect(target, digest_of(written)))
    if why_not:
        fail(f"the gateway at {target.url} does not weigh answers by {file}: {why_not}", PROBLEM)
    say(f"in effect: {target.url} weighs the answers of {target.generator} by it", "green")


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
    """Fit on the runs of one generator; returns what was written, nothing when signals are only compared."""
    # scikit-learn and matplotlib take seconds to import, which no other command should wait for.
    from lab.evaluator import calibrate as fitting
    from lab.evaluator import generic
    from lab.evaluator.errors import EvaluatorError
    from lab.evaluator.reliability import draw
    from services.gateway.confidence import DOMAINS, RANKS, SIGNALS

    with ends(problem=(EvaluatorError, ValueError)):
        generator = generator or ("" if to or ablate else _only_model(folders))
        # A question of several runs has an answer in each, and a judgement of each.
        runs = [_judged(folder) for folder in folders]
        if ablate:
            _ablate(fitting.table([pair for run in runs for pair in generic.ranked(run)]), report)
            return b""
        # A run of another version may have signals that are none any more.
        weighed = SIGNALS.keys() - RANKS - DOMAINS
        data = fitting.table([pair for run in runs for pair in run]).of_signals(weighed)
        say(
            f"fitting on {data.answered.sum()} answers to {len(data.ids)} questions, half a minute of an idle core",
            "dim",
        )
        fitted = fitting.fit(data)
        both = fitting.halves(data)
        others = [(folder, fitting.beside(both, _judged(folder))) for folder in compared]
        elsewhere = [(folder, fitting.apply(fitted, fitting.table(_judged(folder)))) for folder in apply_to]
    draw(fitted, data, report)
    board = Table("fitted on", "reported on", "lines", "score", "right", "wrong", "all answers given")
    for name, half in zip((("one half", "the other"), ("the other", "the one")), both, strict=True):
        board.add_row(*name, _lines(half.fitted), *_numbers(half.earned))
    reached = fitting.earned(fitted, data, fitted.right, fitted.false)
    board.add_row("held-out folds", "all", _lines(fitted), *_numbers(reached))
    for folder, reached in elsewhere:
        board.add_row("all", folder.name, _lines(fitted), *_numbers(reached))
    out.print(board)
    _show_cautions(fitted, data)
    if others:
        out.print(_beside(others))
    say(f"risk and coverage: {report / 'risk_coverage.png'}", "dim")
    return _install(fitted, data, folders, generator, to or FITTED / f"{generator.rpartition('/')[2]}.json")


def _generic(folders: Sequence[Path], to: Path | None, report: Path, apply_to: Sequence[Path], *, ablate: bool) -> None:
    from lab.evaluator import calibrate as fitting
    from lab.evaluator import generic
    from lab.evaluator.errors import EvaluatorError
    from lab.evaluator.reliability import draw
    from services.gateway.confidence import GENERIC, GENERIC_SIGNALS

    with ends(problem=(EvaluatorError, ValueError)):
        runs: defaultdict[str, list[tuple[Prediction, Judgement]]] = defaultdict(list)
        for folder in folders:
            runs[_only_model([folder])] += _judged(folder)
        data = generic.pool(runs, GENERIC_SIGNALS)
        if ablate:
            _ablate(data, report)
            return
        fitted = fitting.fit(data)
        transferred = generic.transfer(runs, GENERIC_SIGNALS)
        elsewhere = [
            (folder, fitting.apply(fitted, fitting.table(generic.ranked(_judged(folder))))) for folder in apply_to
        ]
    draw(fitted, data, report)
    board = Table("fitted on", "reported on", "score", "right", "wrong", "all answers given")
    for name, reached in transferred.items():
        board.add_row("the others, other questions", name, *_numbers(reached))
    for folder, reached in elsewhere:
        board.add_row("all of these", folder.name, *_numbers(reached))
    out.print(board)
    _show_cautions(fitted, data)
    _install(fitted, data, folders, GENERIC, to or FITTED / f"{GENERIC}.json", generators=len(runs))


def _install(
    fitted: "Fitted", data: "Data", folders: Sequence[Path], generator: str, to: Path, *, generators: int = 1
) -> bytes:
    from lab.evaluator.errors import WriteFailed
    from lab.evaluator.store import write_whole

    if fitted.invalid is None:
        say(f'"invalid question" is never answered: {data.invalid.sum()} of the questions are', "yellow")
    runs = ", ".join(folder.resolve().name for folder in folders[:8])
    of = f" by {generators} generators" if generators > 1 else ""
    fitted_on = f"{data.answered.sum()} answers{of} to {len(data.ids)} questions: {runs}"
    heads: dict[str, Any] = {
        "answer": fitted.answer,
        "invalid": fitted.invalid,
        "fitted_on": fitted_on,
        "generator": generator,
    }
    content = json.dumps(heads, indent=1).encode() + b"\n"
    with ends(problem=(OSError, WriteFailed)):
        to.parent.mkdir(parents=True, exist_ok=True)
        write_whole(to, content)
    say(f"signals of the answer's head: {', '.join(fitted.answer['names']) or 'none, since all answers are alike'}")
    write(str(to))
    return content


def _ablate(data: "Data", report: Path) -> None:
    from lab.evaluator import ablation
    from lab.evaluator.store import write_whole

    score, rows = ablation.ablate(data)
    text = ablation.markdown(score, rows)
    report.mkdir(parents=True, exist_ok=True)
    write_whole(report / ABLATION, text.encode())
    board = Table(
        "signals",
        "lost without them",
        "95 %",
        "nats an answer",
        "alone",
        caption=f"all signals: {score:+.3f}, held out",
    )
    for row in rows:
        interval = f"[{row.lost.low:+.3f}, {row.lost.high:+.3f}]"
        board.add_row(row.group, f"{row.lost.value:+.3f}", interval, f"{row.nats:+.4f}", f"{row.alone:+.3f}")
    out.print(board)
    write(str(report / ABLATION))


def _show_cautions(fitted: "Fitted", data: "Data") -> None:
    """What each setting of CRAGMESH_CAUTION gives, on held-out folds."""
    from lab.evaluator import calibrate as fitting

    board = Table("caution", "a wrong answer costs", "lines", "right", "wrong", "silent", "score at that cost")
    for caution, cost in COSTS.items():
        reached = fitting.earned(fitted, data, fitted.right, fitted.false, caution)
        silent = 1 - reached.right - reached.wrong
        shares = (f"{share:.1%}" for share in (reached.right, reached.wrong, silent))
        board.add_row(caution, f"{cost:g}", _lines(fitted, caution), *shares, f"{reached.score:+.3f}")
    out.print(board)


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
    from lab.evaluator import runs
    from lab.evaluator.feedback import PEOPLE
    from lab.evaluator.store import RunFolder

    found = runs.read(RunFolder(folder), lambda line: say(line, "yellow"))
    # A person knows better than a rule, which needs a gold answer.
    judge = PEOPLE if RunFolder(folder).judgements_file(PEOPLE).exists() else "rules"
    verdicts = runs.verdicts(RunFolder(folder), found.predictions, judge)
    return [(line, verdicts[line.id]) for line in found.predictions if line.id in verdicts]


def _only_model(folders: Sequence[Path]) -> str:
    """The model that all runs were made with.

    Raises:
        ValueError: there were several, of which one may be an adapter, or the runs do not say.
    """
    from lab.evaluator.store import RunFolder

    seen: set[str] = set()
    for folder in folders:
        mesh = RunFolder(folder).info().mesh
        names = [mesh["answers_by"]] if mesh.get("answers_by") else mesh.get("generator")
        seen.update(map(str, names) if isinstance(names, list) else ())
    if len(seen) != 1:
        there = f": the runs saw {', '.join(sorted(seen))}" if seen else ""
        raise ValueError(f"say whose answers these are, --generator MODEL or MODEL+ADAPTER{there}")
    return seen.pop()


def _lines(fitted: "Fitted", caution: Caution = "balanced") -> str:
    invalid = "" if fitted.invalid is None else f", invalid {fitted.invalid['thresholds'][caution]:.2f}"
    return f"{fitted.answer['thresholds'][caution]:.2f}{invalid}"


def _numbers(reached: "Earned") -> tuple[str, ...]:
    return tuple(f"{value:+.3f}" for value in (reached.score, reached.right, reached.wrong, reached.ungated))
