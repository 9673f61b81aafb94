"""The graph that is served, and its replacement as soon as a load is complete."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
from services.kit.errors import ServiceFailure
from services.kit.llm import LLM
from services.kit.telemetry import log

# The time for the store to answer: a busy one is not gone.
STORE_LOOK_S = 3.0

# The load that a store holds: of SQLite the file, which a load replaces; of PostgreSQL its sources and times.
Version = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """An open graph."""

    engine: Engine
    catalogue: Catalogue  # the domains that it has tables for
    as_of: dict[str, str]  # domain -> the last day that its sources know
    detail: str  # one line about the graph, for people
    version: Version


def open_graph(url: str, catalogue: Catalogue) -> Store:
    """The graph of a database, with the demo's rows where there is no file yet.

    Raises:
        KgError: the database cannot be read.
        SQLAlchemyError: the database holds no graph.
    """
    ensure_demo(url)
    engine = open_store(url)
    try:
        # First, so that a load during the reading counts as a change.
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
    # A store may be older than a domain's folder; it has the tables of all bundled ones.
    empty = [one.name for one in catalogue.domains.values() if not (one.bundled or one.tables.keys() <= tables)]
    if empty:
        detail += f"; nothing is loaded of {', '.join(empty)}: run `cragmesh kg load`"
        log.warning("domains without tables are left out", domains=empty)
        catalogue = Catalogue(one for one in catalogue.domains.values() if one.name not in empty)
    return Store(engine, catalogue, as_of, detail, version)


def _version(url: str, engine: Engine) -> Version:
    """The load that the store holds now; empty where its file is missing, as between `rm` and `cp`.

    Raises:
        KgError: the store does not answer.
        SQLAlchemyError: the store takes no further connection.
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
    """A graph with its `Answering`."""

    store: Store
    answering: Answering

    def close(self) -> None:
        self.answering.close()
        self.store.engine.dispose()


class Serving:
    """The current graph: a request ends with the graph that it began with, later ones use what was loaded since.

    Args:
        url: of the database.
        make: opens and warms the graph of the database, without blocking.
        leave_s: the longest time that a request may take, for which a replaced graph stays open.
    """

    def __init__(
        self, url: str, graph: ServedGraph, make: Callable[[], Awaitable[ServedGraph]], *, leave_s: float
    ) -> None:
        self._url = url
        self._make = make
        self._leave_s = leave_s
        self._last_look_answered = True
        self._look_began = math.inf
        self._read: ServedGraph | None = None
        self.graph = graph

    @property
    def has_read(self) -> bool:
        """Whether the generator has read the tables of a graph that was served."""
        return self._read is not None

    @property
    def answers(self) -> bool:
        """Whether the store answered the last look, and the one under way is not late: probes wait for neither."""
        return self._last_look_answered and time.monotonic() - self._look_began < STORE_LOOK_S

    async def look(self) -> Version:
        """The load that the store holds now; empty where the store does not answer."""
        self._look_began = time.monotonic()
        try:
            version = await asyncio.to_thread(_version, self._url, self.graph.store.engine)
        except (KgError, SQLAlchemyError, OSError) as error:
            log.error("the store does not answer", error=str(error))
            self._last_look_answered = False
            return ()
        finally:
            self._look_began = math.inf
        self._last_look_answered = True
        return version

    async def follow(self, every_s: float) -> None:
        """Replace the graph after each load, until cancelled; one that cannot be read changes nothing."""
        refused: Version = ()
        async with asyncio.TaskGroup() as closures:
            while True:
                await asyncio.sleep(every_s)
                before, version = self.graph, await self.look()
                if version in ((), refused, before.store.version):
                    continue
                try:
                    self.graph = await self._make()
                except Exception as error:
                    # Whatever is wrong with the new graph, the old one goes on serving.
                    refused = version
                    log.error("the graph that was loaded cannot be read; the one before is served", error=str(error))
                    continue
                log.info("serves the graph that was loaded", detail=self.graph.store.detail)
                closures.create_task(self._close(before))

    async def read_ahead(self, llm: LLM, every_s: float) -> None:
        """Have a generator read the tables of each graph that is served, as soon as it answers, until cancelled."""
        while True:
            if (graph := self.graph) is not self._read:
                with suppress(ServiceFailure):
                    await graph.answering.read_ahead(llm)
                    self._read = graph
            await asyncio.sleep(every_s)

    async def _close(self, graph: ServedGraph) -> None:
        try:
            await asyncio.sleep(self._leave_s)
        finally:
            graph.close()
