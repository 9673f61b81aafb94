"""`python -m lab.crag_data`: convert CRAG's own data files, once, outside of what runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lab.crag_data.convert import convert, load_folder
from services.kg.errors import StoreError
from services.kg.load import LoadError
from services.kg.store.engine import open_store

app = typer.Typer(no_args_is_help=True, pretty_exceptions_show_locals=False)
Folder = Annotated[Path, typer.Argument(help="The mock API's data files, or rows read out of its answers.")]


@contextmanager
def _errors_shown() -> Iterator[None]:
    try:
        yield
    except (LoadError, StoreError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


@app.command(name="convert")
def write(folder: Folder, out: Annotated[Path, typer.Option(help="A folder for the JSON lines.")]) -> None:
    """Write JSON lines that `cragmesh kg load` takes."""
    with _errors_shown():
        reports = convert(folder, out)
    for report in reports:
        typer.echo(f"{report.name}: {report.records:,} records, {len(report.problems):,} left out")
        for problem in report.problems:
            typer.echo(f"  {problem}", err=True)


@app.command(name="load")
def fill(folder: Folder, database: Annotated[str, typer.Option(help="URL of the graph's database.")]) -> None:
    """Convert and load at once."""
    with _errors_shown():
        engine = open_store(database, read_only=False)
        report = load_folder(folder, engine)
    engine.dispose()
    typer.echo(f"{report.rows:,} records, {report.skipped:,} left out, in {report.seconds:.1f} s")


if __name__ == "__main__":
    app()
