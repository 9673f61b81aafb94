"""`cragmesh kg`: fill the knowledge graph, without a running mesh, and ask it through its service."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError
from rich.table import Table

from proto.kg import KgExecuteRequest, KgRequest, KgResponse
from services.cli import graph
from services.cli.caller import Refused, Unreachable
from services.cli.console import err, fail, out, plain, say, warn, write_json
from services.cli.ending import USAGE, ends, settings_of, wrong
from services.cli.kg_domain import app as own
from services.cli.options import AsJson, QueryTime
from services.cli.progress import counting
from services.cli.services import root
from services.cli.settings import CliSettings, project_root
from services.kit.settings import KitSettings, MeshUrls

if TYPE_CHECKING:
    from services.kg.load import LoadReport

app = typer.Typer(name="kg", help="Fill the knowledge graph, and ask it.", no_args_is_help=True)
app.add_typer(own)

DOMAINS = "movie, finance, music, sports, open or one of yours"
Domain = Annotated[str, typer.Option(help=f"{DOMAINS}: where functions are looked for first.")]
Database = Annotated[str, typer.Option(help="URL of the graph's database; CRAGMESH_KG_DATABASE when not given.")]


@app.command()
def load(
    source: Annotated[
        str, typer.Argument(help="A file or folder, or `demo` for the graph that comes with the service.")
    ],
    database: Database = "",
    mapping: Annotated[
        Path | None, typer.Option(help="YAML that says which fields of a CSV or JSONL file of your own go where.")
    ] = None,
    domain: Annotated[str, typer.Option(help="Take only this domain.")] = "",
    aside: Annotated[
        Path | None, typer.Option(help="A file for the records that cannot be used, each with the reason.")
    ] = None,
) -> None:
    """Load row files, CSV named like tables, and sources that mappings describe into the graph, all or nothing.

    What was loaded before and has not changed is skipped; a running service keeps reading the old graph until then.
    """
    # SQLAlchemy and NumPy take a second to import, which no other command should wait for.
    from sqlalchemy.exc import DBAPIError

    from services.kg.definition.domain import read_catalogue
    from services.kg.definition.folder import BrokenDomain
    from services.kg.domains import CATALOGUE
    from services.kg.errors import StoreError
    from services.kg.load import BadMapping, LoadError, UnknownFormat
    from services.kg.load import load as load_graph
    from services.kg.settings import KgSettings
    from services.kg.store.engine import open_store

    settings = settings_of(KgSettings)
    with ends(usage=(BadMapping, BrokenDomain, UnknownFormat), problem=(LoadError, StoreError, OSError)):
        catalogue = read_catalogue(CATALOGUE, settings.kg_domains)
        if domain and domain not in catalogue.domains:
            fail(f"there is no domain {domain}: {', '.join(catalogue.domains)}", USAGE)
        engine = open_store(database or _served(settings.kg_database), read_only=False)
        with counting() as bar:
            task = bar.add_task("reading", total=None)

            def show(step: str, done: int, total: int) -> None:
                bar.update(task, description=plain(step)[:48], completed=done, total=total or None)

            try:
                report = load_graph(
                    "demo" if source == "demo" else Path(source),
                    engine,
                    mapping=mapping,
                    domain=domain or None,
                    catalogue=catalogue,
                    aside=aside,
                    progress=show,
                )
            except DBAPIError as error:
                raise StoreError(f"the database refused: {error.orig}") from None
    engine.dispose()
    _show(report)


def _served(url: str) -> str:
    """A database as the services of `cragmesh up` find it: a relative path of SQLite's counts from the checkout."""
    before, scheme, path = url.partition("sqlite:///")
    return f"{before}{scheme}{project_root() / path}" if path and path != ":memory:" else url


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    domain: Annotated[str, typer.Option(help=f"{DOMAINS}; all are tried where none is named.")] = "",
    mode: Annotated[str, typer.Option(help="auto, program, function-calling, sql or rules.")] = "auto",
    query_time: QueryTime = "",
    as_json: AsJson = False,
) -> None:
    """Write a program for a question, run it, and show both."""
    body = {"query": question, "domain": domain or None, "mode": mode, "query_time": query_time or None}
    _call(lambda client: client.ask(KgRequest.model_validate(body)), as_json=as_json)


@app.command()
def run(
    program: Annotated[str, typer.Argument(help="A program in the regularized language, or @FILE.")],
    domain: Domain = "open",
    query_time: QueryTime = "",
    as_json: AsJson = False,
) -> None:
    """Run a program."""
    if program.startswith("@"):
        try:
            program = Path(program[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{program[1:]}: {error}", USAGE)
    body = {"program": program, "domain": domain, "query_time": query_time or None}
    _call(lambda client: client.run(KgExecuteRequest.model_validate(body)), as_json=as_json)


@app.command()
def shell(domain: Domain = "", query_time: QueryTime = "") -> None:
    """Write programs and questions line by line, with completion and history."""
    with _client() as client:
        graph.shell(client, out, settings_of(CliSettings).run_dir / "kg_history", domain=domain, query_time=query_time)


def _call(call: Callable[[graph.KgClient], KgResponse], *, as_json: bool) -> None:
    with _client() as client:
        try:
            response = call(client)
        except ValidationError as error:
            fail(wrong(error), USAGE)
    if as_json:
        write_json(response)
    else:
        graph.show(out, response)


@contextmanager
def _client() -> Iterator[graph.KgClient]:
    """The graph's service, whose failure ends the program."""
    url, token = root("kg", settings_of(MeshUrls)), settings_of(KitSettings).mesh_token
    with ends(problem=(Refused,), unreachable=(Unreachable,)), graph.KgClient(url, token=token) as kg:
        yield kg


def _show(report: "LoadReport") -> None:
    table = Table("file", "format", "rows", "skipped", "merged", box=None)
    for file in report.files:
        rows = "unchanged" if file.unchanged else f"{sum(file.rows.values()):,}"
        others = [f"{count:,}" if count else "" for count in (file.skipped, file.merged)]
        table.add_row(plain(file.name), file.format, rows, *others)
    err.print(table)
    for file in report.files:
        for problem in file.problems:
            place = f"{file.name}:{problem.line}" if problem.line else file.name
            warn(f"  {place}: {problem.field + ' ' if problem.field else ''}{problem.reason}")
        if file.skipped > len(file.problems):
            warn(f"  {file.name}: and {file.skipped - len(file.problems):,} more rows")
        for merge in file.merges:
            row = " ".join((merge.table, *map(str, merge.key)))
            warn(f"  {file.name}:{merge.line}: its {row} is that of line {merge.earlier}: one row of both")
        if file.merged > len(file.merges):
            warn(f"  {file.name}: and {file.merged - len(file.merges):,} more that became one with an earlier one")
    for name in report.unknown:
        warn(f"  {name}: no known format, left out")
    counts = ", ".join(f"{name} {count:,}" for name, count in report.tables.items() if count and name != "source")
    say(f"{report.rows:,} rows in {report.seconds:.1f} s; the graph holds {counts}")
