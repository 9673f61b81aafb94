"""Runs programs over a running CRAG mock API: what a program names is fetched into a graph, and executed there."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime

from services.kg.entities import NameIndex
from services.kg.errors import KgError
from services.kg.execute import Executor
from services.kg.language.bind import Binder, BoundCall, BoundCombine, BoundCondition, BoundQuery, BoundWhere
from services.kg.language.catalogue import Catalogue
from services.kg.language.parse import Parsed, parse_each
from services.kg.language.tree import Literal_, Query, Reference, Value
from services.kg.live.fill import Lookup, fill, lookup_of, prepare, private_graph
from services.kg.outcome import Outcome
from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.text.times import Calendar, UnknownTime, resolve_time

# A statement that refers to an earlier one needs that one's results to be fetched first.
MAX_ROUNDS = 3
# For the execution, after the requests.
EXECUTE_RESERVE_S = 0.3


class LiveExecutor:
    """Runs programs against the mock API's current data."""

    def __init__(self, client: ServiceClient, catalogue: Catalogue) -> None:
        prepare()
        self._client = client
        self._catalogue = catalogue

    async def execute(self, program: str, *, domain: str, query_time: datetime, budget: Budget) -> list[Outcome]:
        """Outcomes in program order.

        Raises:
            KgError: as `Executor.execute`.
            ServiceFailure: the API answers no request.
        """
        parsed = parse_each(program, self._catalogue.spellings)
        now = self._catalogue.asked(query_time, domain)
        outcomes: list[Outcome] = []
        with private_graph() as engine:
            fetched: set[tuple[str, str]] = set()
            for _ in range(MAX_ROUNDS):
                lookup = self._lookup(parsed, domain, now, outcomes)
                names = {(kind, name) for kind, some in lookup.names.items() for name in some}
                if outcomes and names <= fetched:
                    break
                fetched |= names
                fill_s = budget.allow(reserve_s=EXECUTE_RESERVE_S)
                await fill(engine, self._client, lookup, query_time=now, budget=Budget(fill_s))
                executor = Executor(engine, NameIndex(engine, self._catalogue), self._catalogue)
                seconds = max(EXECUTE_RESERVE_S, budget.left())
                outcomes = await asyncio.to_thread(executor.run, parsed, domain=domain, query_time=now, seconds=seconds)
        return outcomes

    def _lookup(self, parsed: Sequence[Parsed], domain: str, now: datetime, earlier: Sequence[Outcome]) -> Lookup:
        """What the statements name, themselves or through the outcomes of earlier statements."""
        binder = Binder(self._catalogue, domain)
        names: dict[str, list[str]] = {}
        functions: set[str] = set()
        # Texts of arguments that are no names, by the parameter's kind; ranks are a kind of their own.
        texts: dict[str, list[str]] = {"time": [], "integer": [], "rank": []}
        calendar = self._catalogue.domains[domain].calendar
        for index, statement in enumerate(parsed):
            for query in _queries(binder, statement):
                functions |= {query.called.name} if query.called is not None else set()
                if not isinstance(query.source, BoundCall):
                    continue
                functions.add(query.source.function.name)
                for parameter in query.source.function.parameters:
                    values = query.source.arguments.get(parameter.name, ())
                    arguments = [text for value in values for text in _texts(value, index, earlier)]
                    if parameter.kind in texts:
                        texts["rank" if parameter.name == "rank" else parameter.kind] += arguments
                    for kind in parameter.entities or ([parameter.name] if parameter.kind == "text" else []):
                        names.setdefault(kind, []).extend(arguments)
                for condition in _conditions(query):
                    literals = [value for value in condition.values if isinstance(value, Literal_)]
                    texts["integer"] += [str(one.value) for one in literals if condition.key.name == "year"]
        days = [day for text in texts["time"] for day in _days(text, now, calendar)]
        years, ranks = _integers(texts["integer"]), _integers(texts["rank"])
        return lookup_of(domain, names, functions, years=years, dates=days, ranks=ranks)


def _queries(binder: Binder, parsed: Parsed) -> list[BoundQuery]:
    """The queries of a statement; none if it cannot be bound."""
    if isinstance(parsed.statement, Query):
        with contextlib.suppress(KgError):
            bound = binder.bind(parsed.statement)
            return list(bound.queries) if isinstance(bound, BoundCombine) else [bound]
    binder.skip()
    return []


def _conditions(query: BoundQuery) -> Iterator[BoundCondition]:
    if isinstance(query.source, BoundCall):
        yield from query.source.conditions
    for step in query.steps:
        if isinstance(step, BoundWhere):
            yield from step.conditions


def _integers(texts: Sequence[str]) -> list[int]:
    return [int(text) for text in texts if text.isdecimal() and len(text) <= 4]


def _texts(value: Value, index: int, earlier: Sequence[Outcome]) -> list[str]:
    """The texts of a literal, or of the rows to which a reference of the statement at `index` refers."""
    if isinstance(value, Literal_):
        return [] if value.value is None else [str(value.value)]
    if not isinstance(value, Reference):
        return []
    place = index - 1 if value.statement is None else value.statement - 1
    if not 0 <= place < len(earlier):
        return []
    outcome = earlier[place]
    keys = [value.key, *outcome.shown]
    return [str(row[key]) for row in outcome.rows for key in keys[:2] if row.get(key) is not None]


def _days(text: str, now: datetime, calendar: Calendar) -> list[str]:
    """The window as the API's dates: a day, a month, a year, or each day of a few."""
    try:
        window = resolve_time(text, now, calendar)
    except UnknownTime:
        return []
    if window.start is None:
        return []
    if window.granularity in ("day", "instant"):
        return [window.start.isoformat()]
    if window.granularity in ("year", "month"):
        return [window.start.isoformat()[: 4 if window.granularity == "year" else 7]]
    return sorted({f"{window.start:%Y-%m}", f"{window.end or now.date():%Y-%m}"})
