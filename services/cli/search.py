"""`cragmesh search`: a collection asked from the command line."""

from typing import Annotated

import typer
from pydantic import ValidationError
from rich.text import Text

from proto.collections import SearchRequest, SearchResponse
from services.cli.console import fail, out, plain, write_json
from services.cli.ending import USAGE, wrong
from services.cli.index import Collection, connected
from services.cli.options import AsJson
from services.kit.filters import parse_filter

TEXT_CHARS = 400


def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    collection: Collection,
    encoder: Annotated[
        list[str] | None, typer.Option(help="Search by this one alone, or `bm25`; repeat it. All when not given.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="FIELD=VALUE that must hold, or a filter as JSON; repeat it.")
    ] = None,
    top: Annotated[int, typer.Option("--top", "-n", min=1, max=1_000, help="How many to show.")] = 5,
    copies: Annotated[bool, typer.Option("--copies", help="Show a text under each document that holds it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search a collection; without a generator, only what was found is shown."""
    try:
        request = SearchRequest(
            queries=(query,),
            encoders=tuple(encoder or ()),
            top_n=top,
            filters=tuple(map(parse_filter, where or ())),
            distinct=not copies,
        )
    except ValidationError as error:
        fail(wrong(error), USAGE)
    except ValueError as error:
        fail(f"--where {error}", USAGE)
    with connected() as client:
        response = client.search(collection, request)
    if as_json:
        write_json(response)
    else:
        _show(response)


def _show(response: SearchResponse) -> None:
    for number, hit in enumerate(response.hits, 1):
        name = plain(hit.title or hit.id)
        out.print(Text(f"{number:>3}  {name}  ({hit.score:.4f})", style="bold"))
        if hit.url:
            out.print(Text(f"     {plain(hit.url)}", style="dim"))
        text = " ".join(plain(hit.text).split())
        out.print(Text(f"     {text[:TEXT_CHARS]}{'...' if len(text) > TEXT_CHARS else ''}"))
    out.print(Text(f"{len(response.hits)} found in {response.timing.elapsed_ms:.0f} ms", style="dim"))
