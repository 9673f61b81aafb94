"""Programs over a running CRAG mock API: fetch what a program names, then run it over that as over any other graph."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from services.kg.entities import NameIndex
from services.kg.errors import KgError
from services.kg.execute import ASKER, Executor
from services.kg.language.bind import Binder, BoundCall, BoundCombine, BoundCondition, BoundQuery, BoundWhere
from services.kg.language.catalogue import Catalogue
from services.kg.language.parse import Parsed, parse_each
from services.kg.language.tree import Literal_, Query, Reference, Value
from services.kg.live.fill import Wanted, fill, prepare, private_graph, requests_for
from services.kg.outcome import Outcome
from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.text.times import Calendar, UnknownTime, resolve_time

# Each statement that goes on with an earlier one needs what that one found to be fetched first.
MAX_ROUNDS = 3
# Kept for execution when requests are made.
EXECUTE_RESERVE_S = 0.3


class LiveExecutor:
    """Runs programs against what the mock API says at that moment."""

    def __init__(self, client: ServiceClient, catalogue: Catalogue) -> None:
        prepare()
        self._client = client
        self._catalogue = catalogue

    async def execute(self, program: str, *, domain: str, query_time: datetime, budget: Budget) -> list[Outcome]:
        """Outcomes in program order; raises as `Executor.execute`, and ServiceFailure where the API answers nothing."""
        parsed = parse_each(program, self._catalogue.spellings)
        now = query_time.astimezone(ASKER)
        outcomes: list[Outcome] = []
        with private_graph() as engine:
            fetched: set[tuple[str, str]] = set()
            for _ in range(MAX_ROUNDS):
                wanted = self._wanted(parsed, domain, now, outcomes)
                names = {(kind, name) for kind, some in wanted.names.items() for name in some}
                if outcomes and names <= fetched:
                    break
                fetched |= names
                left = budget.allow(reserve_s=EXECUTE_RESERVE_S)
                await fill(engine, self._client, wanted, query_time=now, budget=Budget(left))
                executor = Executor(engine, NameIndex(engine, self._catalogue), self._catalogue)
                seconds = max(EXECUTE_RESERVE_S, budget.left())
                outcomes = await asyncio.to_thread(executor.run, parsed, domain=domain, query_time=now, seconds=seconds)
        return outcomes

    def _wanted(self, parsed: Sequence[Parsed], domain: str, now: datetime, before: Sequence[Outcome]) -> Wanted:
        """What the statements name, by themselves or through the values of statements that have been run."""
        binder = Binder(self._catalogue, domain)
        names: dict[str, list[str]] = {}
        functions: set[str] = set()
        # Texts of parameters by their kinds, but for names; ranks are of their own.
        given: dict[str, list[str]] = {"time": [], "integer": [], "rank": []}
        calendar = self._catalogue.domains[domain].calendar
        for index, one in enumerate(parsed):
            for query in _queries(binder, one):
                functions |= {query.called.name} if query.called is not None else set()
                if not isinstance(query.source, BoundCall):
                    continue
                functions.add(query.source.function.name)
                for parameter in query.source.function.parameters:
                    values = query.source.arguments.get(parameter.name, ())
                    texts = [text for value in values for text in _texts(value, index, before)]
                    if parameter.kind in given:
                        given["rank" if parameter.name == "rank" else parameter.kind] += texts
                    for kind in parameter.entities or ([parameter.name] if parameter.kind == "text" else []):
                        names.setdefault(kind, []).extend(texts)
                for condition in _conditions(query):
                    literals = [value for value in condition.values if isinstance(value, Literal_)]
                    given["integer"] += [str(one.value) for one in literals if condition.key.name == "year"]
        days = [day for text in given["time"] for day in _days(text, now, calendar)]
        years, ranks = _integers(given["integer"]), _integers(given["rank"])
        return requests_for(domain, names, functions, years=years, dates=days, ranks=ranks)


def _queries(binder: Binder, parsed: Parsed) -> list[BoundQuery]:
    if not isinstance(parsed.statement, Query):
        binder.skip()
        return []
    try:
        bound = binder.bind(parsed.statement)
    except KgError:
        binder.skip()
        return []
    return list(bound.queries) if isinstance(bound, BoundCombine) else [bound]


def _conditions(query: BoundQuery) -> Iterator[BoundCondition]:
    if isinstance(query.source, BoundCall):
        yield from query.source.conditions
    for step in query.steps:
        if isinstance(step, BoundWhere):
            yield from step.conditions


def _integers(texts: Sequence[str]) -> list[int]:
    return [int(text) for text in texts if text.isdecimal() and len(text) <= 4]


def _texts(value: Value, index: int, before: Sequence[Outcome]) -> list[str]:
    """What a literal says, or what the rows that a reference means say."""
    if isinstance(value, Literal_):
        return [] if value.value is None else [str(value.value)]
    if not isinstance(value, Reference):
        return []
    earlier = index - 1 if value.statement is None else value.statement - 1
    if not 0 <= earlier < len(before):
        return []
    outcome = before[earlier]
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
