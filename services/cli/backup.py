"""`cragmesh collections backup` and `restore`: collections to files and back, past the retriever.

They ask Qdrant itself, as the retriever's settings name it; of a folder that a retriever holds they say so.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.console import fail, say, write
from services.cli.ending import PROBLEM, ends, run_to_end, settings_of
from services.cli.settings import project_root

if TYPE_CHECKING:
    from services.retriever.collections.store import Store
    from services.retriever.settings import RetrieverSettings


def backup(
    folder: Annotated[Path, typer.Argument(help="Where files are written, one a collection.")],
    collection: Annotated[
        list[str] | None, typer.Option("--collection", "-c", help="Only this one; repeat it.")
    ] = None,
) -> None:
    """Write collections to files, with their vectors."""
    from services.retriever.collections import backup as files
    from services.retriever.collections.schema import KEY, read

    settings = _served()
    if not settings.qdrant_url and not settings.qdrant_path.is_dir():
        # Opened, it would be made.
        fail(f"there are no collections: no folder {settings.qdrant_path}", PROBLEM)

    async def work(store: "Store") -> None:
        names = collection or [name for name in await store.names() if KEY in await store.metadata(name)]
        if not names:
            fail(f"there are no collections in {settings.qdrant_url or settings.qdrant_path}", PROBLEM)
        # Before the first is written.
        for name in names:
            read(name, await store.metadata(name))
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            file = folder / f"{name}.jsonl.gz"
            say(f"{name}: {await files.backup(store, name, file):,} points")
            write(str(file))

    _over_the_store(settings, work)


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

    _over_the_store(_served(), work)


def _served() -> "RetrieverSettings":
    """Settings as the retriever of `cragmesh up` has them: a relative folder counts from the checkout."""
    from services.retriever.settings import RetrieverSettings

    settings = settings_of(RetrieverSettings)
    return settings.model_copy(update={"qdrant_path": project_root() / settings.qdrant_path})


def _over_the_store(settings: "RetrieverSettings", work: "Callable[[Store], Awaitable[None]]") -> None:
    # Qdrant's client, which no other command should wait for.
    from services.kit.errors import MeshError
    from services.retriever.collections.service import open_store

    async def run() -> None:
        async with open_store(settings).running() as store:
            await work(store)

    with ends(problem=(MeshError, OSError)):
        run_to_end(run())
