"""The graph that is served, and the next one as soon as a load has put it in its place."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, inspect, make_url, select
from sqlalchemy.exc import SQLAlchemyError

from services.kg.answering import Answering
from services.kg.errors import KgError
from services.kg.language.catalogue import Catalogue
from services.kg.store.demo import ensure_demo
from services.kg.store.engine import deadline, open_store
from services.kg.store.tables import source
from services.kit.telemetry import log

# What the store gets to answer: a busy one is not gone.
STORE_LOOK_S = 3.0

# Which load a store holds: of SQLite the file, which a load replaces; of PostgreSQL what was loaded when.
Version = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """An open graph.

    Args:
        catalogue: the domains that it has tables of.
        as_of: the last day that each domain's sources know.
        detail: a line about it, for people.
    """

    engine: Engine
    catalogue: Catalogue
    as_of: dict[str, str]
    detail: str
    version: Version


def open_graph(url: str, catalogue: Catalogue) -> Store:
    """The graph of a database, with the demo's rows where there is no file yet.

    Raises:
        KgError: it cannot be read.
        SQLAlchemyError: it is no graph.
    """
    ensure_demo(url)
    engine = open_store(url)
    try:
        # Before it is read: what changes meanwhile is seen as a change.
        version = _version(url, engine)
        with deadline(10), engine.connect() as connection:
            tables = set(inspect(connection).get_table_names())
            rows = connection.execute(select(source.c.name, source.c.domain, source.c.as_of, source.c.rows)).all()
    except BaseException:
        engine.dispose()
        raise
    as_of: dict[str, str] = {}
    for _, domain, last, _ in rows:
        as_of[domain] = max(as_of.get(domain, ""), last or "")
    detail = f"{sum(row[3] for row in rows):,} rows of {', '.join(sorted({row[0] for row in rows}))}"
    # The store was made before the folder was there; the bundled ones are in every store.
    empty = [one.name for one in catalogue.domains.values() if not (one.bundled or one.tables.keys() <= tables)]
    if empty:
        detail += f"; nothing is loaded of {', '.join(empty)}: run `cragmesh kg load`"
        log.warning("domains without tables are left out", domains=empty)
        catalogue = Catalogue(one for one in catalogue.domains.values() if one.name not in empty)
    return Store(engine, catalogue, as_of, detail, version)


def _version(url: str, engine: Engine) -> Version:
    """Which load the store holds now; nothing where it is a file that is away, as between `rm` and `cp`.

    Raises:
        KgError: the store does not answer.
        SQLAlchemyError: it has no place for another connection.
    """
    columns = (source.c.name, source.c.domain, source.c.digest, source.c.loaded_at)
    with deadline(STORE_LOOK_S), engine.connect() as connection:
        loads = tuple(map(tuple, connection.execute(select(*columns).order_by(*columns[:2]))))
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return loads
    path = Path(parsed.database or "")
    if not path.is_file():
        return ()
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """A graph, and what answers from it."""

    store: Store
    answering: Answering

    def close(self) -> None:
        self.answering.close()
        self.store.engine.dispose()


class Serving:
    """The graph of the moment: requests that began with one end with it, the next have what was loaded since.

    Args:
        url: of the database.
        make: opens and warms the graph that is there; blocks nobody.
        leave_s: how long requests may last that began before the change.
    """

    def __init__(
        self, url: str, graph: ServedGraph, make: Callable[[], Awaitable[ServedGraph]], *, leave_s: float
    ) -> None:
        self._url = url
        self._make = make
        self._leave_s = leave_s
        self._answered = True
        self._asked_at = math.inf
        self.graph = graph

    @property
    def answers(self) -> bool:
        """What the last look at the store saw, or that the one under way takes too long: probes wait for neither."""
        return self._answered and time.monotonic() - self._asked_at < STORE_LOOK_S

    async def look(self) -> Version:
        """Which load the store holds now; nothing where it does not say."""
        self._asked_at = time.monotonic()
        try:
            version = await asyncio.to_thread(_version, self._url, self.graph.store.engine)
        except (KgError, SQLAlchemyError, OSError) as error:
            log.error("the store does not answer", error=str(error))
            self._answered = False
            return ()
        finally:
            self._asked_at = math.inf
        self._answered = True
        return version

    async def follow(self, every_s: float) -> None:
        """Look for another graph for as long as the service runs; one that cannot be read changes nothing."""
        refused: Version = ()
        async with asyncio.TaskGroup() as leaving:
            while True:
                await asyncio.sleep(every_s)
                before, version = self.graph, await self.look()
                if version in ((), refused, before.store.version):
                    continue
                try:
                    self.graph = await self._make()
                except Exception as error:
                    # Whatever lies there, what was served goes on.
                    refused = version
                    log.error("the graph that was loaded cannot be read; the one before is served", error=str(error))
                    continue
                log.info("serves the graph that was loaded", detail=self.graph.store.detail)
                leaving.create_task(self._close(before))

    async def _close(self, graph: ServedGraph) -> None:
        try:
            await asyncio.sleep(self._leave_s)
        finally:
            graph.close()
