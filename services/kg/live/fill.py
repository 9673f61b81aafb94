"""Fetches what one program needs of a running CRAG mock API into a private graph in memory.

The API finds names by words alone and puts the best match anywhere, so its order means nothing: our own index decides
among the results of a search. All that could be meant stays in the private graph; the program is then compiled against
it as against any other, and resolves its names again. A domain's calls are in its `live.py`, the mapping of their
results in its `sources/crag.yaml`.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar

from sqlalchemy import Engine, StaticPool, create_engine

from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.live.api import LiveReport, MockApi
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.mapper import Action
from services.kg.load.reading import Writer
from services.kg.load.registry import Registry
from services.kg.load.run import finish, put_source
from services.kg.load.schema import sources_of
from services.kg.load.surfaces import index_names
from services.kg.store.names import Surface, create_index, refresh, replace_names
from services.kg.store.tables import METADATA
from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.telemetry import log

MAX_NAMES = 8
# Entities whose details are fetched, for each name.
MAX_CHOSEN = 3
MAX_YEARS = 12
MAPPING = "crag"

Record = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a program mentions. Make one with `lookup_of`."""

    domain: str
    names: Mapping[str, tuple[str, ...]]  # kind of entity -> names as the program spells them
    functions: frozenset[str]
    years: tuple[int, ...]
    dates: tuple[str, ...]  # days, months or years in ISO 8601
    ranks: tuple[int, ...]  # places of a chart


def lookup_of(
    domain: str,
    names: Mapping[str, Sequence[str]],
    functions: Iterable[str],
    *,
    years: Iterable[int] = (),
    dates: Iterable[str] = (),
    ranks: Iterable[int] = (),
) -> Lookup:
    """What to fetch for a program: each value once, and no more of them than one question may."""

    def first(values: Iterable[T], limit: int = MAX_YEARS) -> tuple[T, ...]:
        return tuple(dict.fromkeys(values))[:limit]

    by_kind = {kind: first(filter(None, map(str.strip, some)), MAX_NAMES) for kind, some in names.items()}
    return Lookup(domain, by_kind, frozenset(functions), first(years), first(dates), first(ranks))


@contextmanager
def private_graph() -> Iterator[Engine]:
    """An empty graph in memory, for as long as the context lasts."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    try:
        METADATA.create_all(engine)
        yield engine
    finally:
        engine.dispose()


async def fill(
    engine: Engine, client: ServiceClient, lookup: Lookup, *, query_time: datetime, budget: Budget
) -> LiveReport:
    """Fetch what a program needs and put it into the graph, with its names indexed.

    The query time decides which years of games are fetched; the fetching stops when the budget nearly ends.

    Raises:
        ServiceFailure: no request got an answer.
    """
    api = MockApi(client, budget)
    live = Live(engine, api, lookup, query_time)
    await import_module(f"services.kg.domains.{lookup.domain}.live").fetch(live)
    if api.error and len(api.report.failed) == api.report.requests:
        raise api.error
    await asyncio.to_thread(live.finish)
    return api.report


def prepare() -> None:
    """Import what the domains call, and read their mappings, which takes a second."""
    for name in CATALOGUE.domains:
        import_module(f"services.kg.domains.{name}.live")
        _actions(name)


@lru_cache(maxsize=8)
def _actions(domain: str) -> dict[str, Action]:
    """The action for the result of each call."""
    mapping = next(one for one in sources_of(CATALOGUE).mappings if (one.name, one.source.domain) == (MAPPING, domain))
    return {str(call): action for action in mapping.actions for call in action.when["call"]}


class Live:
    """One filling of a graph. Rows are put in a thread, by one call at a time.

    lookup: what the program mentions.
    now: when the question is asked.
    """

    def __init__(self, engine: Engine, api: MockApi, lookup: Lookup, query_time: datetime) -> None:
        self.lookup = lookup
        self.now = query_time
        self.report = api.report
        self.call = api.call
        self.call_each = api.call_each
        self._engine = engine
        self._as_of: str | None = None
        # One connection, so one transaction at a time.
        self._writing = asyncio.Lock()

    def names(self, kind: str) -> tuple[str, ...]:
        return self.lookup.names.get(kind, ())

    def uses(self, *functions: str) -> bool:
        return not self.lookup.functions.isdisjoint(functions)

    def years(self, span: range) -> list[int]:
        """The years of the span that the program names, by number or in dates."""
        years = [*self.lookup.years, *(int(one[:4]) for one in self.lookup.dates if one[:4].isdecimal())]
        return [year for year in dict.fromkeys(years) if year in span]

    async def fetch(self, name: str, **args: object) -> Any:
        """The result of a call, whose rows are put."""
        result = await self.call(name, **args)
        if result is not None:
            await self.put([record(name, result, **args)])
        return result

    async def put(self, records: Iterable[Record]) -> None:
        """Put the rows of calls' results; one of another shape is skipped and counted."""
        async with self._writing:
            await asyncio.to_thread(self._put, list(records))

    def _put(self, records: list[Record]) -> None:
        sources = sources_of(CATALOGUE)
        actions = _actions(self.lookup.domain)
        with self._engine.begin() as connection:
            graph = Graph(connection, sources.tables)
            writer = Writer(graph, Registry(graph, sources.kinds))
            for one in records:
                try:
                    actions[one["call"]].apply(writer, one)
                except (BadRow, AttributeError, TypeError, KeyError) as error:
                    self.report.skipped += 1
                    log.debug("live", skipped=str(error)[:80])
            graph.flush()
            self._as_of = max(filter(None, (self._as_of, graph.as_of.get(self.lookup.domain))), default=None)

    async def choose(self, kind: str, name: str, surfaces: Iterable[Surface]) -> tuple[str, ...]:
        """The entities that a name means among these, best first; if none is certain, the nearest."""
        return await asyncio.to_thread(_choose, kind, name, list(surfaces))

    async def search(self, kind: str, call: str, name: str) -> tuple[str, ...]:
        """The names that a name means among those that a search finds."""
        unique = list(dict.fromkeys(texts(await self.call(call, query=name))))
        # The first of a search counts a little more.
        weighed = [Surface(one, one, 1.0 - place / (2 * len(unique))) for place, one in enumerate(unique)]
        return await self.choose(kind, name, weighed)

    def finish(self) -> None:
        """Merge entities, index the names, and put the row of the source."""
        sources, domain, report = sources_of(CATALOGUE), self.lookup.domain, self.report
        with self._engine.begin() as connection:
            graph = Graph(connection, sources.tables)
            finish(graph, sources, {domain: self._as_of})
            put_source(
                graph, "live", domain, digest="", as_of=self._as_of, rows=report.requests, skipped=report.skipped
            )
            graph.flush()
            index_names(connection, CATALOGUE, [domain])


def _choose(kind: str, name: str, surfaces: list[Surface]) -> tuple[str, ...]:
    if not surfaces:
        return ()
    with private_graph() as engine:
        with engine.begin() as connection:
            create_index(connection)
            replace_names(connection, kind, surfaces)
            refresh(connection, [kind])
        resolution = NameIndex(engine, CATALOGUE).resolve(name, [kind])
    entities = resolution.entities or [one.entity_id for one in resolution.candidates]
    return tuple(dict.fromkeys(entities))[:MAX_CHOSEN]


def record(call: str, result: object, **args: object) -> Record:
    """The result of a call, as mappings describe it."""
    return {"call": call, "args": args, "result": result}


def texts(result: object) -> list[str]:
    """The texts of a list; none of anything else."""
    return [one for one in result if isinstance(one, str)] if isinstance(result, list) else []


def objects(result: object) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [one for one in result if isinstance(one, dict)] if isinstance(result, list) else []
