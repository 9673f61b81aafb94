"""`cragmesh eval`: ask a running mesh the questions of a file, judge the answers as CRAG does, report."""

from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import httpx
import typer
from rich.progress import Progress, TaskID
from rich.text import Text

from proto.answer import MAX_BUDGET_S, MIN_BUDGET_S
from services.cli.console import as_typed, err, fail, out, plain, say, warn
from services.cli.ending import PROBLEM, USAGE, Result, ends, run_to_end, settings_of
from services.cli.options import Concurrency, Judge, Knobs, ShardOption, Strategy, parse_options, parse_shard
from services.cli.progress import counted, counting
from services.cli.services import root
from services.kit.client import http_client
from services.kit.generator import generator
from services.kit.settings import MeshUrls

if TYPE_CHECKING:
    from lab.evaluator import drive, runs
    from lab.evaluator.data import Skip
    from lab.evaluator.settings import EvaluatorSettings
    from lab.evaluator.store import Judgement, Prediction, RunFolder

# Lines of a question file; the others are counted.
MAX_NAMED = 5
# The most shuffled gold answers that may count as right, as a share.
MAX_SHUFFLED = 0.02

app = typer.Typer(name="eval", help="Measure a running mesh as CRAG does.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The folder of a run.")]
Sources = Annotated[
    list[Path],
    typer.Argument(help="Question files: JSONL, also .gz, .bz2 or a tar of them; CRAG's records, contexts or plain."),
]
Budget = Annotated[float, typer.Option("--budget", min=MIN_BUDGET_S, max=MAX_BUDGET_S, help="Seconds for each answer.")]
Sample = Annotated[int | None, typer.Option(min=1, help="A random sample of so many questions.")]
Seed = Annotated[int, typer.Option(help="Which sample.")]
Timed = Annotated[bool, typer.Option("--timed", help="Only questions that have a query_time.")]


@app.command()
def run(
    sources: Sources,
    folder: Annotated[Path, typer.Option("--out", "-o", help="The run's folder; the same one goes on after a kill.")],
    strategy: Strategy = "",
    budget: Budget = MAX_BUDGET_S,
    concurrency: Concurrency = 2,
    sample: Sample = None,
    seed: Seed = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="The first so many questions.")] = None,
    timed: Timed = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what got no answer.")] = False,
    tokenizer: Annotated[bool, typer.Option(help="Count tokens with the generator where it is reachable.")] = True,
    every_answer: Annotated[
        bool, typer.Option("--every-answer", help="Have `adaptive` give every answer, to fit its confidence on.")
    ] = False,
    option: Knobs = None,
    keep_contexts: Annotated[
        bool, typer.Option("--keep-contexts", help="Keep what the generator was shown, for `train labels`.")
    ] = False,
    shard: ShardOption = "",
    engine: Annotated[
        Literal["here", "ray"], typer.Option(help="Who asks: `ray` for the nodes of a cluster, which count no tokens.")
    ] = "here",
) -> None:
    """Ask the questions, write each answer as it comes, then judge by rules and report."""
    from lab.evaluator import runs
    from lab.evaluator.store import RunFolder

    settings, urls = evaluator_settings()
    order = runs.Order(
        sources=tuple(sources),
        folder=RunFolder(folder),
        gateway_url=root("gateway", urls),
        api_key=settings.api_key,
        strategy=strategy,
        budget_s=budget,
        concurrency=concurrency,
        selection=runs.Selection(timed, sample, seed, limit, parse_shard(shard)),
        retry_failed=retry_failed,
        every_answer=every_answer,
        options=parse_options(option or ()),
        keep_contexts=keep_contexts,
        command=as_typed(settings.eval_data),
        engine=engine,
    )
    progress = evaluate(ask_questions(order, urls, tokenizer=tokenizer and engine == "here"))
    if progress.failed:
        warn(f"{progress.failed} questions got no answer and count as missing: --retry-failed asks them again")
    _report(folder, "rules")


async def ask_questions(
    order: "runs.Order", urls: MeshUrls, *, tokenizer: bool, transport: httpx.AsyncBaseTransport | None = None
) -> "drive.Progress":
    """The outcome of asking an order's questions, with a bar on a terminal and a line now and then elsewhere."""
    from lab.evaluator import runs

    skip = LeftOut()
    async with http_client() as http:
        llm = generator(urls, http)
        with counting() as bar:
            task = bar.add_task("asking", total=None, start=False)

            source: runs.Plan | None = None
            logged = 0

            def begin(plan: "runs.Plan", progress: "drive.Progress") -> None:
                nonlocal source
                source = plan
                bar.update(task, total=plan.total, completed=progress.earlier)
                bar.start_task(task)
                _advance(bar, task, plan, progress)

            def advance(progress: "drive.Progress") -> None:
                nonlocal logged
                if source is not None:
                    _advance(bar, task, source, progress)
                if not err.is_terminal and progress.done >= logged + 10:
                    logged = progress.done
                    say(_line(source, progress))

            progress = await runs.run(
                order, llm if tokenizer else None, on_plan=begin, on_progress=advance, on_skip=skip, transport=transport
            )
    skip.report(f", named in {order.folder.path / 'run.json'}")
    return progress


class LeftOut:
    """Names the first lines that are no usable questions, and counts all of them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, line: "Skip") -> None:
        self.count += 1
        if self.count <= MAX_NAMED:
            warn(f"left out: {line.place}: {line.why}")

    def report(self, place: str = "") -> None:
        """Print how many there are, where not all were named."""
        if self.count > MAX_NAMED:
            warn(f"left out: {self.count} lines in all{place}")


def _advance(bar: Progress, task: TaskID, plan: "runs.Plan", progress: "drive.Progress") -> None:
    description = f"score {progress.score:+.3f}" + (f", {progress.failed} failed" if progress.failed else "")
    if plan.total is None and plan.source.size:
        # Too large to count beforehand: bytes stand for questions.
        expected = progress.done * plan.source.size / max(1, plan.source.position)
        bar.update(task, total=max(progress.done, round(expected)))
    bar.update(task, completed=progress.done, description=description)


def _line(plan: "runs.Plan | None", progress: "drive.Progress") -> str:
    of = f" of {plan.total}" if plan and plan.total else ""
    return f"{progress.done}{of} questions, score so far {progress.score:+.3f}, {progress.failed} without an answer"


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="The folders of a run's shards, all of them.")],
    folder: Annotated[Path, typer.Option("--out", "-o", help="Where the whole run is written.")],
) -> None:
    """Join the shards of a run, judge it by rules and report, as if it had been one."""
    from lab.evaluator import runs
    from lab.evaluator.store import RunFolder

    with evaluating():
        runs.merge([RunFolder(path) for path in folders], RunFolder(folder), warn)
    _report(folder, "rules")


@app.command()
def judge(
    folder: Folder,
    judge: Judge = "rules",
    concurrency: Annotated[int, typer.Option("-c", min=1, max=256, help="Verdicts asked for at once.")] = 4,
) -> None:
    """Judge a run. The judge `llm` is at CRAGMESH_JUDGE_URL; better not the model that is judged."""
    from lab.evaluator import runs
    from lab.evaluator.store import RunFolder

    settings, _ = evaluator_settings()
    target = RunFolder(folder)
    with evaluating():
        predictions = runs.read(target, warn).predictions
        if judge == "rules":
            runs.judge_by_rules(target, predictions)
        elif settings.judge_url:
            run_to_end(ask_judge(target, predictions, settings, concurrency))
        else:
            fail("where is the judge? Set CRAGMESH_JUDGE_URL to an OpenAI-compatible server", USAGE)
    _report(folder, judge)


async def ask_judge(
    target: "RunFolder", predictions: "Sequence[Prediction]", settings: "EvaluatorSettings", concurrency: int
) -> "dict[str, Judgement]":
    """A run's verdicts by the model at `settings.judge_url`, those that are there not asked for again."""
    from lab.evaluator import runs

    with counted(f"judging {target.name}", len(predictions)) as advance:
        return await runs.judge_by_model(
            target,
            predictions,
            url=settings.judge_url,
            model=settings.judge_model,
            api_key=settings.judge_api_key,
            allow_s=settings.judge_timeout_s,
            concurrency=concurrency,
            on_done=lambda: advance(1),
        )


@app.command()
def report(folder: Folder, judge: Judge = "rules") -> None:
    """Write a run's report: Markdown, pictures, numbers. It holds no question and no answer."""
    _report(folder, judge)


def _report(folder: Path, judge: str) -> None:
    # Draws: seconds that the other commands need not wait for.
    from lab.evaluator import runs
    from lab.evaluator.report import files, tables
    from lab.evaluator.report.summary import summarize
    from lab.evaluator.store import RunFolder

    target = RunFolder(folder)
    with evaluating():
        record = runs.read(target, warn)
        judgements = runs.verdicts(target, record.predictions, judge)
        summary = summarize(
            target.name,
            record.info,
            record.predictions,
            judgements,
            judge=judge,
            agreements=runs.agreements(target, judge, judgements),
            unread=record.unread,
        )
        paths = files.write_run(summary, target.report_folder)
        _show(tables.SCORE_HEAD, [tables.scores_row("all", summary.overall)])
        for slices in summary.slices.values():
            _show(tables.SCORE_HEAD, [tables.scores_row(name, item) for name, item in slices.items()])
    for path in paths:
        say(str(path), "dim")


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(help="The folders of two runs or more.")],
    folder: Annotated[Path, typer.Option("--out", "-o", help="Where the comparison is written.")],
    judge: Judge = "rules",
    texts: Annotated[bool, typer.Option("--texts", help="Also write questions and answers into it.")] = False,
) -> None:
    """Compare runs question by question, with intervals of the differences."""
    if len(folders) < 2:
        fail("give two folders or more", USAGE)
    compare_runs(dict(zip(_names(folders), folders, strict=True)), folder, judge, texts=texts)


def compare_runs(
    folders: Mapping[str, Path], folder: Path, judge: str, *, texts: bool = False, with_first: bool = False
) -> None:
    """Show and write a comparison of runs, each with each, or with the first alone."""
    from lab.evaluator import runs
    from lab.evaluator.report import files
    from lab.evaluator.store import RunFolder

    settings, _ = evaluator_settings()
    with evaluating():
        judged = []
        for name, path in folders.items():
            target = RunFolder(path)
            predictions = runs.read(target, warn).predictions
            verdicts = runs.verdicts(target, predictions, judge)
            judged.append(files.Judged(name, {line.id: line for line in predictions}, verdicts))
        comparison = files.compare(judged, with_first=with_first)
        paths = files.write_comparison(comparison, folder, command=as_typed(settings.eval_data), texts=texts)
        for table in files.compared_tables(comparison):
            _show(table.head, table.rows)
    for path in paths:
        say(str(path), "dim")


def _names(folders: list[Path]) -> list[str]:
    """Folder names, with as many of their parents as tell them apart."""
    paths = [path.resolve() for path in folders]
    if len(set(paths)) < len(paths):
        fail("a run is named twice", USAGE)
    names = [path.name for path in paths]
    for depth in range(2, max(len(path.parts) for path in paths) + 1):
        repeated = {name for name in names if names.count(name) > 1}
        names = [
            str(Path(*path.parts[-depth:])) if name in repeated else name
            for name, path in zip(names, paths, strict=True)
        ]
    return names


@app.command()
def check(
    sources: Sources, timed: Timed = False, seed: Annotated[int, typer.Option(help="Which shuffles.")] = 0
) -> None:
    """Try the judge `rules` on the gold answers alone: each against itself, and against another's."""
    from lab.evaluator.data import Source
    from lab.evaluator.selfcheck import self_check

    skip = LeftOut()
    with evaluating():
        verdicts = self_check(Source(sources, on_skip=skip, timed_only=timed).items(), seed=seed)
    skip.report()
    if not verdicts.answerable:
        fail(f"no line is a question with a right answer{' and a query_time' if timed else ''}", PROBLEM)
    rows = [
        ("questions", str(verdicts.questions)),
        ("gold against itself", ", ".join(f"{count} {name}" for name, count in sorted(verdicts.itself.items()))),
        (f"score over the {verdicts.answerable} that have a right answer", f"{verdicts.score:.4f}"),
        ("shuffled gold: share right", f"{verdicts.shuffled_right:.4f}"),
        ("shuffled gold: share right without being the same", f"{verdicts.false_rights:.4f}"),
        ("shuffled gold: score", f"{verdicts.shuffled_score:+.4f}"),
    ]
    _show(("", "value"), rows)
    for fault in verdicts.faults[:MAX_NAMED]:
        warn(f"gold against itself: {fault}")
    if verdicts.faults:
        fail(f"gold answers that are not right against themselves: {len(verdicts.faults)}", PROBLEM)
    if verdicts.shuffled_right >= MAX_SHUFFLED:
        fail(f"{verdicts.shuffled_right:.1%} of shuffled gold is right: below {MAX_SHUFFLED:.0%} is wanted", PROBLEM)


def _show(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in lines of its own width: a narrow terminal must not break a figure in two."""
    cells = [[plain(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for index, (first, *rest) in enumerate(cells):
        numbers = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        line = "  ".join((first.ljust(widths[0]), *numbers)).rstrip()
        out.print(Text(line, style="" if index else "dim"), soft_wrap=True)
    out.print()


def evaluator_settings() -> "tuple[EvaluatorSettings, MeshUrls]":
    """Settings from the environment; wrong values end the command."""
    from lab.evaluator.settings import EvaluatorSettings

    return settings_of(EvaluatorSettings), settings_of(MeshUrls)


@contextmanager
def evaluating() -> Iterator[None]:
    """End the program in words where the evaluator fails inside."""
    from lab.evaluator.errors import BadSource, EvaluatorError, Unreachable

    with ends(
        usage=(BadSource,),
        unreachable=(Unreachable,),
        problem=(EvaluatorError,),
        again="the same command goes on from here",
    ):
        yield


def evaluate(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, or until a signal cancels it and what was written is safe."""
    with evaluating():
        return run_to_end(work)
