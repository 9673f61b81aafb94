"""`cragmesh`: the command line of the mesh."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from dotenv import load_dotenv
from typer.core import TyperGroup

from proto.answer import MAX_BUDGET_S, MIN_BUDGET_S
from services.cli import ask as asking
from services.cli import client, processes, questions, render
from services.cli import logs as logging
from services.cli.ablate import ablate
from services.cli.calibrate import calibrate
from services.cli.classifier import app as classifier
from services.cli.console import err, fail, out, plain, say, warn, write, write_json
from services.cli.ending import PROBLEM, UNREACHABLE, USAGE, Result, ends, run_to_end, settings_of
from services.cli.eval import app as evaluation
from services.cli.export import export, feedback
from services.cli.fetch import fetch
from services.cli.index import collections, index
from services.cli.kg import app as knowledge
from services.cli.mcp import mcp
from services.cli.options import AsJson, QueryTime, Strategy
from services.cli.papers import app as papers
from services.cli.plan import plan
from services.cli.progress_table import ProgressTable
from services.cli.questions import BadInput
from services.cli.search import search
from services.cli.services import embedded, root
from services.cli.settings import CliSettings, project_root
from services.cli.supervisor import MeshFailure, OnChange, Supervisor
from services.cli.train import app as training
from services.kit.settings import MeshUrls

EXIT_CODES = (
    "Exit codes: 0 done (an answer, also `i don't know`), 1 a problem, 2 wrong usage, 3 the mesh is not reachable or "
    "not ready, 130 interrupted."
)


class Commands(TyperGroup):
    """Where `lab` is not installed, as in a service's image, the commands that need it say so."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "lab":
                raise
            fail(
                f"`cragmesh {ctx.invoked_subcommand}` measures or teaches, and the package `lab` that does so is not "
                "installed here: images of services lack it. Use the image `cragmesh/evaluator` or `cragmesh/trainer`, "
                "or a checkout of the project",
                PROBLEM,
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
app.add_typer(collections)
app.command()(mcp)
app.command()(plan)

BudgetS = Annotated[
    float | None, typer.Option("--budget", min=MIN_BUDGET_S, max=MAX_BUDGET_S, help="Seconds until the answer is due.")
]
Pages = Annotated[list[Path] | None, typer.Option(help="A page to answer from (.html, .htm, .txt); repeat it.")]
Folder = Annotated[Path | None, typer.Option(help="A folder of pages to answer from.")]
FromCollection = Annotated[str, typer.Option("--collection", "-c", help="A collection to answer from.")]
Search = Annotated[bool, typer.Option("--search", help="Search the web for further pages; needs a searcher.")]
Record = Annotated[Path | None, typer.Option(help="A file of CRAG records (.jsonl, .jsonl.gz, .jsonl.bz2).")]
Index = Annotated[int, typer.Option(min=0, help="Which record of the file, from 0.")]


@app.callback()
def _read_environment() -> None:
    # What the shell has set wins over the file.
    load_dotenv(project_root() / ".env")


@app.command()
def up() -> None:
    """Start the mesh on this machine and wait until it is ready. What runs already is left alone."""
    settings, urls = _settings()
    _needs_proc()
    table = ProgressTable([service.name for service in embedded(urls)], err)

    async def start() -> None:
        async with table.live():
            await _supervisor(table.changed).up()

    _run_mesh(start())
    say(f'The mesh is up: {root("gateway", urls)}\n  ask:    cragmesh ask "..." --page FILE\n  stop:   cragmesh down')
    if lack := _run(client.confidence_lack(root("gateway", urls), settings.api_key)):
        warn(lack)


@app.command()
def down() -> None:
    """Stop the mesh, and whatever a crash has left of it."""
    _needs_proc()
    table = ProgressTable((), err)

    async def stop() -> dict[str, Any]:
        async with table.live():
            return dict(await _supervisor(table.changed).down())

    say("The mesh is down." if _run_mesh(stop()) else "The mesh was not running.")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show what each service runs on, and whether it is ready."""
    _needs_proc()
    rows = _run_mesh(_supervisor().status())
    if as_json:
        write_json(rows)
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
    names = [item.name for item in embedded(settings_of(MeshUrls))]
    if service and service not in names:
        fail(f"no service {service!r}: there are {', '.join(names)}", USAGE)
    supervisor = _supervisor()
    files = [supervisor.log_file(name) for name in ([service] if service else names)]
    with ends(problem=(OSError,)):
        logging.show(files, lines)
        if not any(file.exists() for file in files):
            say(f"no logs in {files[0].parent}")
        if follow:
            _run(logging.follow(files))


def _asks(*, traced: bool) -> Callable[..., None]:
    """A command that asks a question and shows the answer or, traced, how it came about."""

    def ask(
        question: Annotated[str, typer.Argument(help="The question; with --record, the record's own by default.")] = "",
        page: Pages = None,
        pages: Folder = None,
        record: Record = None,
        index: Index = 0,
        collection: FromCollection = "",
        search: Search = False,
        strategy: Strategy = "",
        budget: BudgetS = None,
        query_time: QueryTime = "",
        as_json: AsJson = False,
    ) -> None:
        if not question.strip() and record is None:
            fail('ask what? Give a question, as in: cragmesh ask "how tall is the eiffel tower?"', USAGE)
        if record is not None and (page or pages):
            fail("a record brings its own pages: give --record, or --page and --pages", USAGE)
        with ends(usage=(BadInput,)):
            prepared = questions.question(
                question.strip(),
                pages=[*(page or ()), *(questions.pages_in(pages) if pages else ())],
                record=questions.read_record(record, index) if record else None,
                collection=collection,
                search=search,
                query_time=query_time,
                strategy=strategy,
                budget_s=budget,
            )
        settings, urls = _settings()
        url = root("gateway", urls)
        raise typer.Exit(_run(asking.ask(prepared, url, api_key=settings.api_key, as_json=as_json, traced=traced)))

    return ask


ASK = "Ask a question, from pages on disk, a collection, the web, or a CRAG record's own search results."
EXPLAIN = (
    "Ask a question and show how the answer came about: the plan, prompts and replies, decisions, what was skipped."
)
app.command("ask", epilog=EXIT_CODES, help=ASK)(_asks(traced=False))
app.command("explain", epilog=EXIT_CODES, help=EXPLAIN)(_asks(traced=True))


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

    with ends(problem=(generated.ContractError,)):
        if not check:
            for path in generated.export(project_root()):
                write(str(path))
        elif drift := generated.check(project_root()):
            for line in drift:
                say(line)
            fail("the generated contracts have drifted: run `make contracts`", PROBLEM)


def _settings() -> tuple[CliSettings, MeshUrls]:
    return settings_of(CliSettings), settings_of(MeshUrls)


def _supervisor(on_change: OnChange = lambda _name, _state: None) -> Supervisor:
    settings, urls = _settings()
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
    with ends():
        return run_to_end(work)


def _run_mesh(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        return _run(work)
    except MeshFailure as failure:
        for line in failure.log:
            err.print(plain(line), style="dim", markup=False, soft_wrap=True)
        if failure.log_file:
            say(f"the rest of its log: {failure.log_file}", style="dim")
        fail(str(failure), PROBLEM)
    except OSError as error:
        fail(f"{error.filename or 'the mesh'}: {error.strerror or error}", PROBLEM)
