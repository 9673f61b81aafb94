"""What one program needs of a running CRAG mock API, fetched into a private graph in memory.

The API finds names by words alone and puts the best match anywhere, so nothing is taken from it by place: what a search
returns is indexed, and our own index decides. Whatever could be meant stays in the private graph; the program is then
compiled against it as against any other, and resolves its names again. Which calls a domain makes is in its `live.py`,
what becomes of their results in its `sources/crag.yaml`.

    wanted = requests_for("movie", {"movie": ["Heat"]}, ["get_movie"])
    with private_graph() as engine:
        report = await fill(engine, client, wanted, query_time=now, budget=budget)
        executor = Executor(engine, NameIndex(engine, CATALOGUE), CATALOGUE)
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
from services.kg.live.api import LiveReport, MockApi, calls_of
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.mapper import Action
from services.kg.load.reading import Writer
from services.kg.load.registry import Registry
from services.kg.load.run import finish
from services.kg.load.schema import sources_of
from services.kg.load.surfaces import index_names
from services.kg.store.base import METADATA
from services.kg.store.names import Surface, create_index, refresh, replace_names
from services.kg.store.tables import source as source_table
from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.telemetry import log

MAX_NAMES = 8
# Entities of a name whose details are fetched.
MAX_CHOSEN = 3
MAX_YEARS = 12
MAPPING = "crag"

Record = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a program mentions. Make one with `requests_for`."""

    domain: str
    names: Mapping[str, tuple[str, ...]]
    functions: frozenset[str]
    years: tuple[int, ...] = ()
    dates: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()


def requests_for(
    domain: str,
    names: Mapping[str, Sequence[str]],
    functions: Iterable[str],
    *,
    years: Iterable[int] = (),
    dates: Iterable[str] = (),
    ranks: Iterable[int] = (),
) -> Wanted:
    """What to fetch for a program.

    `names` is kind of entity -> names as the program spells them; dates are days, months or years in ISO 8601; ranks
    are places of a chart.
    """

    def first(values: Iterable[T], most: int = MAX_YEARS) -> tuple[T, ...]:
        return tuple(dict.fromkeys(values))[:most]

    several = {kind: first(filter(None, map(str.strip, some)), MAX_NAMES) for kind, some in names.items()}
    return Wanted(domain, several, frozenset(functions), first(years), first(dates), first(ranks))


@contextmanager
def private_graph() -> Iterator[Engine]:
    """An empty graph in memory, gone afterwards."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    try:
        METADATA.create_all(engine)
        yield engine
    finally:
        engine.dispose()


async def fill(
    engine: Engine, client: ServiceClient, wanted: Wanted, *, query_time: datetime, budget: Budget
) -> LiveReport:
    """Fetch what a program needs and put it into the graph, with its names indexed.

    The query time decides which years of games are fetched; what has not come when the budget nearly ends is left out.

    Raises:
        ServiceFailure: not one request got an answer.
    """
    api = MockApi(client, _calls(), budget)
    live = Live(engine, api, wanted, query_time)
    await import_module(f"services.kg.domains.{wanted.domain}.live").fetch(live)
    if api.error and len(api.report.failed) == api.report.requests:
        raise api.error
    await asyncio.to_thread(live.finish)
    return api.report


def prepare() -> None:
    """Read what fillings need of the domains' folders, once; takes a second."""
    for name in {call.partition("/")[0] for call in _calls()}:
        import_module(f"services.kg.domains.{name}.live")
        _actions(name)


@lru_cache(maxsize=1)
def _calls() -> dict[str, dict[str, str]]:
    return calls_of(CATALOGUE)


@lru_cache(maxsize=8)
def _actions(domain: str) -> dict[str, Action]:
    """By call, what becomes of its result."""
    mapping = next(one for one in sources_of(CATALOGUE).mappings if (one.name, one.source.domain) == (MAPPING, domain))
    return {str(call): action for action in mapping.actions for call in action.when["call"]}


class Live:
    """One filling. What is put runs in a thread, one at a time.

    wanted: what the program mentions.
    now: when the question is asked.
    """

    def __init__(self, engine: Engine, api: MockApi, wanted: Wanted, query_time: datetime) -> None:
        self.wanted = wanted
        self.now = query_time
        self.report = api.report
        self.call = api.call
        self.call_each = api.call_each
        self._engine = engine
        self._as_of: str | None = None
        # One connection, so one transaction at a time.
        self._writing = asyncio.Lock()

    def names(self, kind: str) -> tuple[str, ...]:
        return self.wanted.names.get(kind, ())

    def uses(self, *functions: str) -> bool:
        return not self.wanted.functions.isdisjoint(functions)

    def years(self, of: range) -> list[int]:
        """The years that the program names, by number or in dates, as far as the API has them."""
        stated = [*self.wanted.years, *(int(one[:4]) for one in self.wanted.dates if one[:4].isdecimal())]
        return [year for year in dict.fromkeys(stated) if year in of]

    async def fetch(self, name: str, **args: object) -> Any:
        """Call, put what comes, and return it."""
        result = await self.call(name, **args)
        if result is not None:
            await self.put([record(name, result, **args)])
        return result

    async def put(self, records: Iterable[Record]) -> None:
        """Put what calls returned; a result that makes no sense is left out."""
        async with self._writing:
            await asyncio.to_thread(self._put, list(records))

    def _put(self, records: list[Record]) -> None:
        sources = sources_of(CATALOGUE)
        actions = _actions(self.wanted.domain)
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
            self._as_of = max(filter(None, (self._as_of, graph.as_of.get(self.wanted.domain))), default=None)

    async def choose(self, kind: str, name: str, surfaces: Iterable[Surface]) -> tuple[str, ...]:
        """The entities that a name means among these, best first; if that is open, the nearest."""
        return await asyncio.to_thread(_choose, kind, name, list(surfaces))

    async def search(self, kind: str, call: str, name: str) -> tuple[str, ...]:
        """The names that a name means among those that a search finds."""
        unique = list(dict.fromkeys(texts(await self.call(call, query=name))))
        # The first of a search counts a little more.
        weighed = [Surface(one, one, 1.0 - place / (2 * len(unique))) for place, one in enumerate(unique)]
        return await self.choose(kind, name, weighed)

    def finish(self) -> None:
        """Index the names, and note the source."""
        sources = sources_of(CATALOGUE)
        with self._engine.begin() as connection:
            graph = Graph(connection, {**sources.tables, source_table.name: source_table})
            finish(graph, sources, {self.wanted.domain: self._as_of})
            row = {
                "name": "live",
                "domain": self.wanted.domain,
                "digest": "",
                "loaded_at": datetime.now(self.now.tzinfo).isoformat(timespec="seconds"),
                "as_of": self._as_of,
                "rows": self.report.requests,
                "skipped": self.report.skipped,
            }
            graph.put(source_table.name, row)
            graph.flush()
            index_names(connection, CATALOGUE, [self.wanted.domain])


def _choose(kind: str, name: str, surfaces: list[Surface]) -> tuple[str, ...]:
    if not surfaces:
        return ()
    with private_graph() as engine:
        with engine.begin() as connection:
            create_index(connection)
            replace_names(connection, kind, surfaces)
            refresh(connection, [kind])
        resolution = NameIndex(engine, CATALOGUE).resolve(name, [kind])
    found = resolution.entities or tuple(one.entity_id for one in resolution.candidates)
    return tuple(dict.fromkeys(found))[:MAX_CHOSEN]


def record(call: str, result: object, **args: object) -> Record:
    """What a call returned, as mappings describe it."""
    return {"call": call, "args": args, "result": result}


def texts(result: object) -> list[str]:
    """The texts of a list; none of anything else."""
    return [one for one in result if isinstance(one, str)] if isinstance(result, list) else []


def objects(result: object) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [one for one in result if isinstance(one, dict)] if isinstance(result, list) else []
