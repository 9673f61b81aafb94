"""`cragmesh collections backup` and `restore`: collections to files and back, past the retriever.

They ask Qdrant itself, as the retriever's settings name it; of a folder that a retriever holds they say so.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.console import say, write
from services.cli.ending import ends, run_to_end, settings_of

if TYPE_CHECKING:
    from services.retriever.collections.store import Store


def backup(
    folder: Annotated[Path, typer.Argument(help="Where files are written, one a collection.")],
    collection: Annotated[
        list[str] | None, typer.Option("--collection", "-c", help="Only this one; repeat it.")
    ] = None,
) -> None:
    """Write collections to files, with their vectors."""
    from services.retriever.collections import backup as files
    from services.retriever.collections.schema import KEY

    async def work(store: "Store") -> None:
        names = collection or [name for name in await store.names() if KEY in await store.metadata(name)]
        for name in names:
            file = folder / f"{name}.jsonl.gz"
            say(f"{name}: {await files.backup(store, name, file):,} points")
            write(str(file))

    with ends(problem=(OSError,)):
        folder.mkdir(parents=True, exist_ok=True)
    _over_the_store(work)


def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote.")],
    name: Annotated[str, typer.Option("--as", help="Another name than it had.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Delete the collection of that name first.")] = False,
) -> None:
    """Make a collection of a file, on the same Qdrant or on another."""
    from services.retriever.collections import backup as files

    async def work(store: "Store") -> None:
        restored, points = await files.restore(store, file, name, replace=replace)
        say(f"{restored}: {points:,} points")

    _over_the_store(work)


def _over_the_store(work: "Callable[[Store], Awaitable[None]]") -> None:
    # Qdrant's client, which no other command should wait for.
    from services.kit.errors import MeshError
    from services.retriever.collections.service import open_store
    from services.retriever.settings import RetrieverSettings

    async def run() -> None:
        async with open_store(settings_of(RetrieverSettings)).running() as store:
            await work(store)

    with ends(problem=(MeshError, OSError)):
        run_to_end(run())
