"""`cragmesh kg domain`: draft a domain of one's own from CSV files, and say what is wrong with its folder."""

from pathlib import Path
from typing import Annotated

import typer

from services.cli.console import fail, say, write
from services.cli.ending import PROBLEM, USAGE, ends, settings_of

app = typer.Typer(name="domain", help="Add a domain of your own to the graph.", no_args_is_help=True)

DEFAULT_FOLDER = Path("domains")


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The domain's name: letters, digits and _.")],
    first: Annotated[
        list[Path], typer.Option("--from", help="A CSV or TSV file with a header; more may follow it, or repeat it.")
    ],
    more: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="More files, a table each.")] = None,
    to: Annotated[
        Path | None, typer.Option(help="The folder of your domains; CRAGMESH_KG_DOMAINS, else `domains`.")
    ] = None,
) -> None:
    """Draft the folder of a domain from tables: kinds, keys, types, units and joins are guessed, to be edited."""
    from lab.draft import DraftError, draft
    from services.kg.load import LoadError
    from services.kg.settings import KgSettings

    with ends(usage=(DraftError,), problem=(LoadError, OSError)):
        folder = to or settings_of(KgSettings).kg_domains or DEFAULT_FOLDER
        paths = draft(name, [*first, *(more or ())], folder)
    for path in paths:
        write(str(path))
    say(f"Look at the lines with `guess`, then: cragmesh kg domain check {folder / name}")


@app.command()
def check(folder: Annotated[Path, typer.Argument(help="The folder of a domain, or one of several.")]) -> None:
    """Say what is wrong with a domain by file, line and key, and what people will not be understood by."""
    from services.kg.lint import Finding, lint

    folders = (
        [folder] if (folder / "domain.yaml").is_file() else sorted(path.parent for path in folder.glob("*/domain.yaml"))
    )
    if not folders:
        fail(f"there is no domain.yaml in {folder}, nor in a folder of it", USAGE)
    findings: list[Finding] = [finding for one in folders for finding in lint(one)]
    for finding in findings:
        say(str(finding), "red" if finding.fault else "yellow")
    faults = sum(finding.fault for finding in findings)
    say(f"{len(folders)} domain{'s' if len(folders) > 1 else ''}: {faults} faults, {len(findings) - faults} warnings")
    if faults:
        raise typer.Exit(PROBLEM)
