"""`cragmesh`: the command line of the mesh."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from dotenv import load_dotenv
from pydantic import ValidationError

from proto.answer import MAX_BUDGET_S, MIN_BUDGET_S
from services.cli import ask as asking
from services.cli import client, processes, questions, render
from services.cli import logs as logging
from services.cli.ablate import ablate
from services.cli.ask import PROBLEM, UNREACHABLE, USAGE
from services.cli.board import Board
from services.cli.calibrate import calibrate
from services.cli.classifier import app as classifier
from services.cli.console import err, fail, out, plain, say, write
from services.cli.eval import app as evaluation
from services.cli.export import export, feedback
from services.cli.fetch import fetch
from services.cli.group import Commands
from services.cli.index import collections, index
from services.cli.kg import app as knowledge
from services.cli.mcp import mcp
from services.cli.papers.commands import app as papers
from services.cli.questions import BadInput
from services.cli.search import search
from services.cli.services import embedded, root
from services.cli.settings import CliSettings, project_root
from services.cli.supervisor import MeshFailure, OnChange, Supervisor
from services.cli.train import app as training
from services.kit.settings import MeshUrls

Result = TypeVar("Result")

EXIT_CODES = (
    "Exit codes: 0 done (an answer, also `i don't know`), 1 a problem, 2 wrong usage, 3 the mesh is not reachable or "
    "not ready, 130 interrupted."
)

app = typer.Typer(
    name="cragmesh",
    cls=Commands,
    help="Start a factual question-answering mesh on this machine, and ask it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)

evaluation.command()(ablate)
evaluation.command()(fetch)
evaluation.command()(export)
app.add_typer(evaluation)
app.add_typer(classifier)
app.add_typer(knowledge)
app.add_typer(papers)
app.add_typer(feedback)
app.add_typer(training)
app.command()(calibrate)
app.command(name="index")(index)
app.command(name="search")(search)
app.command(name="collections")(collections)
app.command()(mcp)

Strategy = Annotated[str, typer.Option(help="How to answer; the gateway's default when not given.")]
BudgetS = Annotated[
    float | None,
    typer.Option("--budget", min=MIN_BUDGET_S, max=MAX_BUDGET_S, help="Seconds until the answer is due."),
]
Pages = Annotated[list[Path] | None, typer.Option(help="A page to answer from (.html, .htm, .txt); repeat it.")]
Folder = Annotated[Path | None, typer.Option(help="A folder of pages to answer from.")]
FromCollection = Annotated[str, typer.Option("--collection", "-c", help="A collection to answer from.")]
Record = Annotated[Path | None, typer.Option(help="A file of CRAG records (.jsonl, .jsonl.gz, .jsonl.bz2).")]
Index = Annotated[int, typer.Option(min=0, help="Which record of the file, from 0.")]
QueryTime = Annotated[str, typer.Option(help="When it is asked: `02/28/2024, 10:04:54 PT` or ISO 8601.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@app.callback()
def _read_environment() -> None:
    # What the shell has set wins over the file.
    load_dotenv(project_root() / ".env")


@app.command()
def up() -> None:
    """Start the mesh on this machine and wait until it is ready. What runs already is left alone."""
    settings, urls = _settings()
    _needs_proc()
    board = Board([service.name for service in embedded(urls)], err)

    async def start() -> None:
        async with board.shown():
            await _supervisor(settings, urls, board.changed).up()

    _run_mesh(start())
    say(f'The mesh is up: {root("gateway", urls)}\n  ask:    cragmesh ask "..." --page FILE\n  stop:   cragmesh down')
    if lack := _run(client.confidence_lack(root("gateway", urls), settings.api_key)):
        say(lack, style="yellow")


@app.command()
def down() -> None:
    """Stop the mesh, and whatever a crash has left of it."""
    settings, urls = _settings()
    _needs_proc()
    board = Board((), err)

    async def stop() -> dict[str, Any]:
        async with board.shown():
            return dict(await _supervisor(settings, urls, board.changed).down())

    say("The mesh is down." if _run_mesh(stop()) else "The mesh was not running.")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show what each service runs on, and whether it is ready."""
    settings, urls = _settings()
    _needs_proc()
    rows = _run_mesh(_supervisor(settings, urls).status())
    if as_json:
        write("[" + ",\n ".join(row.model_dump_json() for row in rows) + "]")
    else:
        render.show_status(out, rows)
    if not all(row.ready for row in rows):
        raise typer.Exit(UNREACHABLE)


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="One service; all of them when not given.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they grow.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Lines of each to begin with.")] = 20,
) -> None:
    """Show the services' logs."""
    settings, urls = _settings()
    names = [item.name for item in embedded(urls)]
    if service and service not in names:
        fail(f"no service {service!r}: there are {', '.join(names)}", USAGE)
    files = [_supervisor(settings, urls).log_file(name) for name in ([service] if service else names)]
    logging.show(files, lines)
    if follow:
        _run(logging.follow(files))


@app.command(epilog=EXIT_CODES)
def ask(
    question: Annotated[str, typer.Argument(help="The question; with --record, the record's own by default.")] = "",
    page: Pages = None,
    pages: Folder = None,
    record: Record = None,
    index: Index = 0,
    collection: FromCollection = "",
    strategy: Strategy = "",
    budget: BudgetS = None,
    query_time: QueryTime = "",
    as_json: AsJson = False,
) -> None:
    """Ask a question, from pages on disk, a collection, or a CRAG record's own search results."""
    prepared = _question(question, page, pages, record, index, collection, strategy, budget, query_time)
    settings, urls = _settings()
    code = _run(asking.ask(prepared, root("gateway", urls), api_key=settings.api_key, as_json=as_json))
    raise typer.Exit(code)


@app.command(epilog=EXIT_CODES)
def explain(
    question: Annotated[str, typer.Argument(help="The question; with --record, the record's own by default.")] = "",
    page: Pages = None,
    pages: Folder = None,
    record: Record = None,
    index: Index = 0,
    collection: FromCollection = "",
    strategy: Strategy = "",
    budget: BudgetS = None,
    query_time: QueryTime = "",
    as_json: AsJson = False,
) -> None:
    """Ask a question and show how the answer came about: the plan, prompts and replies, decisions, what was skipped."""
    prepared = _question(question, page, pages, record, index, collection, strategy, budget, query_time)
    settings, urls = _settings()
    code = _run(asking.ask(prepared, root("gateway", urls), api_key=settings.api_key, as_json=as_json, traced=True))
    raise typer.Exit(code)


@app.command(epilog=EXIT_CODES)
def demo(
    every: Annotated[bool, typer.Option("--all", help="Ask all questions, not only the first.")] = False,
    strategy: Strategy = "",
    budget: BudgetS = None,
) -> None:
    """Ask about five web pages that come with the project."""
    settings, urls = _settings()
    code = 0
    for item in asking.demo_questions()[: None if every else 1]:
        prepared = questions.question(
            item.question, pages=asking.demo_pages(), strategy=strategy, budget_s=budget, gold=(item.answer,)
        )
        code = _run(asking.ask(prepared, root("gateway", urls), api_key=settings.api_key))
        if code:
            break
        say(f"{item.note}\n", style="dim")
    raise typer.Exit(code)


@app.command()
def contracts(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; name what has drifted from the models.")
    ] = False,
) -> None:
    """Generate the OpenAPI and proto3 files from the contracts."""
    # Imports every service's application, which takes seconds that no other command should wait for.
    from services.cli import contracts as generated

    try:
        if not check:
            for path in generated.export(project_root()):
                write(str(path))
        elif drift := generated.check(project_root()):
            for line in drift:
                say(line)
            fail("the generated contracts have drifted: run `make contracts`", PROBLEM)
    except generated.ContractError as error:
        fail(str(error), PROBLEM)


def _question(
    question: str,
    page: list[Path] | None,
    pages: Path | None,
    record: Path | None,
    index: int,
    collection: str,
    strategy: str,
    budget: float | None,
    query_time: str,
) -> questions.Question:
    if not question.strip() and record is None:
        fail('ask what? Give a question, as in: cragmesh ask "how tall is the eiffel tower?"', USAGE)
    if record is not None and (page or pages):
        fail("a record brings its own pages: give --record, or --page and --pages", USAGE)
    try:
        return questions.question(
            question.strip(),
            pages=[*(page or ()), *(questions.pages_in(pages) if pages else ())],
            record=questions.read_record(record, index) if record else None,
            collection=collection,
            query_time=query_time,
            strategy=strategy,
            budget_s=budget,
        )
    except BadInput as error:
        fail(str(error), USAGE)


def _settings() -> tuple[CliSettings, MeshUrls]:
    try:
        return CliSettings(), MeshUrls()
    except ValidationError as error:
        wrong = "; ".join(f"CRAGMESH_{str(item['loc'][0]).upper()}: {item['msg']}" for item in error.errors())
        fail(wrong, USAGE)


def _supervisor(settings: CliSettings, urls: MeshUrls, on_change: OnChange = lambda _name, _state: None) -> Supervisor:
    return Supervisor(
        embedded(urls),
        settings.run_dir,
        cwd=project_root(),
        start_timeout_s=settings.start_timeout_s,
        stop_timeout_s=settings.stop_timeout_s,
        on_change=on_change,
    )


def _needs_proc() -> None:
    if not processes.supported():
        fail("the embedded mesh runs on Linux only; elsewhere, use `docker compose up`", PROBLEM)


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, or until Ctrl-C, SIGTERM or a closed terminal cancels it and it has cleaned up."""

    async def main() -> Result:
        task = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel if task else lambda: None)
        return await work

    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("interrupted", style="yellow")
        raise typer.Exit(130) from None


def _run_mesh(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        return _run(work)
    except MeshFailure as failure:
        for line in failure.log:
            err.print(plain(line), style="dim", markup=False, soft_wrap=True)
        if failure.log_file:
            say(f"the rest of its log: {failure.log_file}", style="dim")
        fail(str(failure), PROBLEM)
