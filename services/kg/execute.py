"""Programs to SQL to rows. Every statement gets a status of its own; what one lacks does not cost the others.

SQL is an expression tree over the views of the catalogue, with bound parameters: no text of a program becomes SQL.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, Engine, FromClause, Select, func, select

from proto.kg import KgStatus
from services.kg.dates import UnknownTime, Window, resolve_span, resolve_time
from services.kg.entities import NameIndex, Resolution
from services.kg.errors import ExecutionTimeout, KgError, LanguageError, NoEntity, ParseError
from services.kg.language.bind import (
    Binder,
    BoundCall,
    BoundCombine,
    BoundCondition,
    BoundGroup,
    BoundProject,
    BoundQuery,
    BoundSort,
    BoundStep,
    BoundWhere,
)
from services.kg.language.catalogue import Catalogue, Function, Key, Parameter, nearest, spelling
from services.kg.language.parse import Parsed, parse_each
from services.kg.language.tree import Literal_, Nothing, Query, Reference, Slice, Value, render
from services.kg.outcome import Entity, Outcome, Scalar
from services.kg.scope import Scope
from services.kg.store.engine import deadline
from services.kg.store.names import name as name_table
from services.kg.store.names import normalise
from services.kg.store.tables import stated_total

# Rows that come back from a statement; the count is of all.
MAX_ROWS = 50
# Values of one statement that another may go on with.
MAX_FAN_OUT = 50
# Shorter words are parts of too many others.
MIN_STEM = 4
# Statements that go on with one another in a row.
MAX_HOPS = 3
ASKER = ZoneInfo("America/Los_Angeles")
SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9, "trillion": 1e12}
NUMBER = re.compile(r"[$€£]?\s*(-?[\d,]*\.?\d+)\s*(%|[a-z]+)?", re.IGNORECASE)
NUMERIC = frozenset({"integer", "number", "money", "percent", "flag"})


class Executor:
    """Runs programs against a store.

    Args:
        engine: see `store.engine.open_store`.
        names: the index over the same store.
        catalogue: the domains.
    """

    def __init__(self, engine: Engine, names: NameIndex, catalogue: Catalogue) -> None:
        self._engine = engine
        self._names = names
        self.catalogue = catalogue

    def execute(self, program: str, *, domain: str, query_time: datetime, seconds: float = 1.0) -> list[Outcome]:
        """Outcomes in program order; blocks, so it belongs in a worker thread.

        Args:
            program: text in the regularized language.
            domain: where functions are looked for first.
            query_time: with its zone; facts of events after it are hidden.
            seconds: for all statements together; those that get no time have the status `timeout`.

        Raises:
            ParseError: the whole is too long, has too many statements or is nested too deeply.
            StoreError: the store cannot be read.
        """
        names = {name for function in self.catalogue.functions for name in (function.name, *function.aliases)}
        return self.run(parse_each(program, names), domain=domain, query_time=query_time, seconds=seconds)

    def run(
        self, parsed: Sequence[Parsed], *, domain: str, query_time: datetime, seconds: float = 1.0
    ) -> list[Outcome]:
        """As `execute`, for what is parsed already."""
        outcomes: list[Outcome] = []
        try:
            with deadline(seconds), self._engine.connect() as connection:
                run = _Run(connection, self._names, self.catalogue, domain, query_time.astimezone(ASKER))
                for one in parsed:
                    outcomes.append(run.statement(one))
        except ExecutionTimeout as error:
            late = parsed[len(outcomes) :]
            outcomes += [Outcome(one.text, "timeout", message=str(error)) for one in late]
        return outcomes


@dataclass
class _Rows:
    """A statement's rows on their way to SQL."""

    function: Function
    source: FromClause
    where: list[ColumnElement[bool]] = field(default_factory=list)
    order: list[tuple[ColumnElement[Any], bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    # Counting with one of a linked pair given counts the entities of the other.
    identity: str = ""
    # The keys by which later statements may call the rows: a facet's name -> the key that it shows.
    spoken: dict[str, str] = field(default_factory=dict)
    shown: tuple[Key, ...] = ()
    default: tuple[str, ...] = ()
    hops: int = 0

    @property
    def c(self) -> Any:
        return self.source.c

    def nest(self) -> None:
        """Freeze what was done so far, so that what follows applies to its result."""
        inner = self.select([column for column in self.source.c])
        self.source, self.where, self.order, self.limit, self.offset = inner.subquery(), [], [], None, 0

    def select(self, columns: Sequence[ColumnElement[Any]], *, ordered: bool = True) -> Select[Any]:
        statement = select(*columns).select_from(self.source).where(*self.where)
        if ordered or self.limit is not None:
            for column, descending in self.order:
                statement = statement.order_by(column.desc().nulls_last() if descending else column.asc().nulls_last())
        if self.limit is not None:
            statement = statement.limit(self.limit)
        return statement.offset(self.offset) if self.offset else statement


@cache
def _view(view: Select[Any]) -> FromClause:
    return view.subquery()


class _Run:
    """One program: statements see the rows of those before."""

    def __init__(
        self, connection: Connection, names: NameIndex, catalogue: Catalogue, domain: str, query_time: datetime
    ) -> None:
        self._connection = connection
        self._names = names
        self._domain = domain
        self._now = query_time
        self._binder = Binder(catalogue, domain)
        self._catalogue = catalogue
        self._done: list[_Rows | None] = []
        self._entities: list[Entity] = []
        self._windows: list[str] = []
        self._notes: list[str] = []
        self._status: KgStatus | None = None
        self._summary: dict[str, Scalar] = {}
        self._stated = False

    def statement(self, parsed: Parsed) -> Outcome:
        """Run one statement; its errors are its outcome, those of the store are raised."""
        self._entities, self._windows, self._notes, self._status = [], [], [], None
        self._summary, self._stated = {}, False
        if parsed.error is not None or parsed.statement is None:
            self._skip()
            return self._failed(parsed.text, parsed.error or ParseError("cannot be read"))
        if isinstance(parsed.statement, Nothing):
            self._skip()
            return Outcome("none", "no_program", message="no function fits the question")
        source = render(parsed.statement)
        bound_before = len(self._binder.functions)
        try:
            bound = self._binder.bind(parsed.statement)
            if isinstance(bound, BoundCombine):
                self._done.append(None)
                return self._combine(source, bound)
            rows = self._compile(bound)
            self._done.append(rows)
            return self._fetch(source, bound, rows)
        except ExecutionTimeout:
            raise
        except KgError as error:
            if len(self._binder.functions) == bound_before:
                self._binder.skip()
            del self._done[bound_before:]
            self._done.append(None)
            return self._failed(source, error)

    def _skip(self) -> None:
        self._binder.skip()
        self._done.append(None)

    def _failed(self, source: str, error: KgError) -> Outcome:
        expected = error.expected if isinstance(error, LanguageError) else ()
        if isinstance(error, NoEntity):
            expected = error.candidates
        return Outcome(
            source, error.status, entities=tuple(self._entities), message=str(error), expected=tuple(expected)
        )

    # Rows

    def _compile(self, query: BoundQuery) -> _Rows:
        rows = self._source(query)
        for step in query.steps:
            self._step(rows, step)
        if query.head is not None:
            self._slice(rows, Slice(0, query.head))
        if query.facet and rows.shown:
            rows.spoken = {spelling(query.facet): rows.shown[0].name}
        return rows

    def _source(self, query: BoundQuery) -> _Rows:
        if isinstance(query.source, BoundCall):
            return self._call(query.source, _asked(query), every=query.every)
        earlier = self._earlier(query.source)
        columns = [column for column in earlier.source.c]
        rows = _Rows(earlier.function, earlier.select(columns).subquery(), identity=earlier.identity)
        rows.default = earlier.default
        rows.hops = earlier.hops
        rows.order = [(rows.c[column.name], descending) for column, descending in _named(earlier.order)]
        return rows

    def _earlier(self, reference: Reference) -> _Rows:
        index = len(self._done) - 1 if reference.statement is None else reference.statement - 1
        rows = self._done[index] if 0 <= index < len(self._done) else None
        if rows is None:
            raise ParseError("* has no rows before it", expected=("a statement with rows before this one",))
        return rows

    def _call(self, call: BoundCall, asked: frozenset[str], *, every: bool = False, replaced: bool = False) -> _Rows:
        function = call.function
        rows = _Rows(function, _view(function.view))
        entities: dict[str, tuple[str, ...]] = {}
        windows: dict[str, Window] = {}
        for preset in function.presets:
            key = function.key(preset.key)
            rows.where.append(self._clause(rows, BoundCondition(key, preset.operator, (Literal_(preset.value),))))
        for parameter in function.parameters:
            values = call.arguments.get(parameter.name)
            if values:
                series = every and parameter.series
                self._argument(rows, call, parameter, values, entities, windows, series=series)
        for condition in call.conditions:
            rows.where.append(self._clause(rows, condition))
        if function.pair is not None:
            self._pair(rows, function, entities)
        rows.order = [self._ordered(rows, name) for name in function.order]
        scope = Scope(
            self._connection,
            function,
            rows.c,
            asked,
            entities,
            windows,
            self._now,
            self._now.date(),
            limit=function.limit,
        )
        if function.refine is not None:
            function.refine(scope)
            if scope.replacement and not replaced:
                other = self._catalogue.function(scope.replacement, function.domain)
                self._notes += scope.notes
                return self._call(BoundCall(other, call.arguments, ()), asked, replaced=True)
        elif function.event and entities and self._hides_future(call):
            today = (self._now.date() + timedelta(days=1)).isoformat()
            rows.where.append((rows.c[function.event] < today) | rows.c[function.event].is_(None))
        self._notes += scope.notes
        self._status = scope.status
        self._summary, self._stated = scope.summary, scope.stated
        rows.where += scope.where
        rows.order = scope.order or rows.order
        if scope.limit is not None:
            rows.limit = scope.limit
            rows.nest()
            rows.order = [self._ordered(rows, name) for name in function.order]
        return rows

    def _hides_future(self, call: BoundCall) -> bool:
        """What lies ahead is shown only to one who asks for a time himself, or for one film."""
        function = call.function
        if any(condition.key.name == function.event for condition in call.conditions):
            return False
        given = [name for name in call.arguments if name in (function.pair or ())]
        return function.pair is None or given == [function.pair[1]]

    def _ordered(self, rows: _Rows, name: str) -> tuple[ColumnElement[Any], bool]:
        return rows.c[name.removeprefix("-")], name.startswith("-")

    def _pair(self, rows: _Rows, function: Function, entities: Mapping[str, tuple[str, ...]]) -> None:
        assert function.pair is not None  # noqa: S101 - checked by the caller
        columns = {p.name: p.column for p in function.parameters}
        first, second = function.pair
        given = [name for name in function.pair if name in entities]
        if len(given) == 1:
            rows.identity = columns[second if given == [first] else first]
            rows.default = function.default_of.get(given[0], ())

    def _argument(
        self,
        rows: _Rows,
        call: BoundCall,
        parameter: Parameter,
        values: tuple[Value, ...],
        entities: dict[str, tuple[str, ...]],
        windows: dict[str, Window],
        *,
        series: bool,
    ) -> None:
        function = call.function
        if series:
            entities[parameter.name] = self._series(str(_plain(values[0])), parameter)
            rows.where.append(_filter(rows, parameter, entities[parameter.name]))
        elif parameter.kind == "entity":
            self._entity_argument(rows, function, parameter, values, entities)
        elif parameter.kind == "time":
            if function.span is not None and parameter.name == function.span[1]:
                return
            other = call.arguments.get(function.span[1]) if function.span is not None else None
            window = self._window(values, other)
            windows[parameter.name] = window
            self._windows.append(window.label)
            if function.refine is None:
                rows.where += _within(rows.c[parameter.column], window)
        elif parameter.kind == "integer":
            if function.span is not None and parameter.name == function.span[1]:
                return
            other = call.arguments.get(function.span[1]) if function.span is not None else None
            numbers = [_integer(_plain(value)) for value in values]
            column = rows.c[parameter.column]
            rows.where.append(column.between(numbers[0], _integer(_plain(other[0]))) if other else column.in_(numbers))
        elif parameter.clause is not None:
            rows.where.append(parameter.clause(rows.c, tuple(_plain(value) for value in values)))
        else:
            rows.where.append(rows.c[parameter.column].in_([str(_plain(value)) for value in values]))

    def _entity_argument(
        self,
        rows: _Rows,
        function: Function,
        parameter: Parameter,
        values: tuple[Value, ...],
        entities: dict[str, tuple[str, ...]],
    ) -> None:
        groups: list[tuple[str, ...]] = []
        for value in values:
            if isinstance(value, Reference | Query):
                found = self._referred(rows, value, parameter)
                if isinstance(found, Select):
                    rows.where.append(_filter(rows, parameter, found))
                    entities[parameter.name] = tuple(str(one) for one in self._connection.execute(found).scalars())
                    return
                groups.append(found)
            else:
                groups.append(self._resolve(str(_plain(value)), parameter.entities, rows, entities))
        entities[parameter.name] = tuple(dict.fromkeys(one for group in groups for one in group))
        rows.where.append(_filter(rows, parameter, entities[parameter.name]))
        if len(groups) > 1 and function.pair is not None and parameter.name in function.pair:
            # Several names mean what all of them share: films of both actors, actors of both films.
            other = next(p for p in function.parameters if p.name in function.pair and p.name != parameter.name)
            view = _view(function.view).alias()
            for group in groups:
                shared = select(view.c[other.column]).where(view.c[parameter.column].in_(group))
                rows.where.append(rows.c[other.column].in_(shared))

    def _series(self, name: str, parameter: Parameter) -> tuple[str, ...]:
        """Entities whose names begin with this one: the films of a series."""
        start = normalise(name)
        names_of = select(name_table.c.entity_id).where(
            name_table.c.kind.in_(parameter.entities),
            name_table.c.norm >= start,
            name_table.c.norm < f"{start}\U0010ffff",
        )
        found = tuple(self._connection.execute(names_of.distinct().limit(MAX_ROWS)).scalars()) if start else ()
        if not found:
            raise NoEntity(name)
        self._entities.append(Entity(name, parameter.entities[0], found, name, 1.0, "series"))
        return found

    def _resolve(
        self, name: str, kinds: tuple[str, ...], rows: _Rows, entities: Mapping[str, tuple[str, ...]]
    ) -> tuple[str, ...]:
        resolution = self._names.resolve(name, kinds)
        if resolution.status != "ok":
            raise NoEntity(
                name,
                candidates=tuple(dict.fromkeys(candidate.surface for candidate in resolution.candidates)),
                ambiguous=resolution.status == "ambiguous",
            )
        best = resolution.candidates[0]
        self._entities.append(
            Entity(name, kinds[0] if kinds else "", resolution.entities, best.surface, best.score, best.how)
        )
        return tuple(resolution.entities)

    def _referred(self, rows: _Rows, value: Reference | Query, parameter: Parameter) -> Select[Any] | tuple[str, ...]:
        """Identifiers that an earlier statement's values name: as a subquery where it has them, else by their names."""
        if isinstance(value, Query):
            bound = self._binder._query(value)
            earlier, name = self._compile(bound), ""
        else:
            earlier, name = self._earlier(value), value.key
        rows.hops = max(rows.hops, earlier.hops + 1)
        if rows.hops >= MAX_HOPS + 1:
            raise ParseError(f"a program may go on from statement to statement {MAX_HOPS} times")
        key = self._spoken(earlier, name)
        if key.entity in parameter.entities and key.id_column:
            column = earlier.c[key.id_column]
            ids = earlier.select([column], ordered=False).limit(MAX_FAN_OUT)
            found = list(self._connection.execute(earlier.select([column, earlier.c[key.name]]).limit(MAX_FAN_OUT)))
            if found and all(identifier is not None for identifier, _ in found):
                self._notes.append(f"{key.words}: {', '.join(dict.fromkeys(str(text) for _, text in found))}")
                return ids
        texts = self._connection.execute(earlier.select([earlier.c[key.name]]).limit(MAX_FAN_OUT)).scalars()
        names = [str(text) for text in dict.fromkeys(texts) if text is not None]
        if not names:
            raise NoEntity(name or key.name)
        self._notes.append(f"{key.words}: {', '.join(names)}")
        identifiers: list[str] = []
        for text in names:
            for part in _parts(text, lambda part: self._names.resolve(part, parameter.entities)):
                identifiers += part
        if not identifiers:
            raise NoEntity(names[0])
        return tuple(dict.fromkeys(identifiers))

    def _spoken(self, rows: _Rows, name: str) -> Key:
        if not name:
            return rows.shown[0] if rows.shown else rows.function.key(rows.function.default[0])
        if spelling(name) in rows.spoken:
            return rows.function.key(rows.spoken[spelling(name)])
        if rows.function.dynamic:
            return rows.function.key("value")
        found = rows.function.find_key(name)
        if found is None and len(rows.shown) == 1:
            return rows.shown[0]
        return rows.function.key(name)

    # Steps

    def _step(self, rows: _Rows, step: BoundStep) -> None:
        match step:
            case BoundWhere(conditions):
                if rows.limit is not None:
                    rows.nest()
                rows.where += [self._clause(rows, condition) for condition in conditions]
            case BoundSort(key, descending):
                if rows.limit is not None:
                    rows.nest()
                rest = [one for one in rows.order if one[0].name != key.name]
                rows.order = [(rows.c[key.name], descending), *rest]
            case Slice():
                self._slice(rows, step)
            case BoundProject(keys, dynamic):
                rows.shown = keys
                if dynamic:
                    self._dynamic(rows, dynamic)
            case BoundGroup(keys):
                columns = [rows.c[key.name] for key in keys]
                count = func.count().label("count")
                inner = select(*columns, count).select_from(rows.source).where(*rows.where).group_by(*columns)
                function = _grouped(rows.function, keys)
                rows.source, rows.where, rows.order = inner.subquery(), [], []
                rows.function, rows.identity, rows.limit, rows.offset = function, "", None, 0
                rows.order = [(rows.c["count"], True)]
                rows.shown = (*keys, function.key("count"))

    def _slice(self, rows: _Rows, step: Slice) -> None:
        if rows.limit is not None or rows.offset:
            rows.nest()
        rows.offset = step.start
        rows.limit = MAX_ROWS if step.stop is None else max(0, step.stop - step.start)

    def _dynamic(self, rows: _Rows, names: tuple[str, ...]) -> None:
        """Rows whose `key` is what was asked for: the spelling, the domain's synonym, or the nearest that there is."""
        found = self._connection.execute(rows.select([rows.c["key"]], ordered=False).distinct().limit(1_000)).scalars()
        known = {spelling(str(key)): str(key) for key in found}
        chosen: list[str] = []
        for name in names:
            chosen += self._find_dynamic(rows.function, name, known)
        missing = [name for name in names if not self._find_dynamic(rows.function, name, known)]
        if missing and known:
            near = nearest(missing[0], [key for key in known.values() if key != "summary"])
            self._status = "unknown_key"
            self._notes.append(f"nothing is known under {', '.join(missing)}")
            if near:
                self._notes.append(f"what is known: {', '.join(near)}")
            if "summary" in known:
                chosen.append("summary")
        if known:
            rows.where.append(rows.c["key"].in_(chosen))

    def _find_dynamic(self, function: Function, name: str, known: Mapping[str, str]) -> list[str]:
        wanted = spelling(name)
        synonyms = {spelling(said): spelling(key) for said, key in function.spellings.items()}
        for one in (wanted, synonyms.get(wanted, ""), wanted.removesuffix("s"), wanted + "s"):
            if one and one in known:
                return [known[one]]
        # elevation_m and elevation_ft for "elevation", or for a synonym of it.
        for one in (wanted, synonyms.get(wanted, "")):
            if len(one) >= MIN_STEM and (stems := [key for said, key in known.items() if one in said]):
                return sorted(stems, key=len)[:2]
        return []

    def _clause(self, rows: _Rows, condition: BoundCondition) -> ColumnElement[bool]:
        key, operator = condition.key, condition.operator
        column = rows.c[key.name]
        if operator == "isnull":
            return cast(ColumnElement[bool], column.is_(None))
        if operator == "notnull":
            return cast(ColumnElement[bool], column.is_not(None))
        if condition.other is not None:
            return _compare(column, operator, rows.c[condition.other.name])
        if any(isinstance(value, Reference | Query) for value in condition.values):
            return self._in_reference(rows, condition)
        values = tuple(_plain(value) for value in condition.values)
        if key.compare is not None:
            return key.compare(rows.c, cast(Any, operator), values)
        if operator == "like":
            return func.lower(column).contains(str(values[0]).strip("%").lower(), autoescape=True)
        if key.kind == "date":
            return self._on_date(column, operator, values)
        if key.kind in NUMERIC:
            numbers = [_truth(value) if key.kind == "flag" else _number(value, key) for value in values]
            if operator == "between":
                return cast(ColumnElement[bool], column.between(numbers[0], numbers[1]))
            if operator == "in" or len(numbers) > 1:
                return cast(ColumnElement[bool], column.in_(numbers))
            return _compare(column, operator, numbers[0])
        texts = [str(value).lower() for value in values]
        if operator in ("ge", "le", "gt", "lt"):
            return _compare(func.lower(column), operator, texts[0])
        if operator == "between":
            return cast(ColumnElement[bool], func.lower(column).between(texts[0], texts[1]))
        clause: ColumnElement[bool] = func.lower(column).in_(texts)
        if key.entity or key.id_column:
            # A person writes part of a name: lakers for Los Angeles Lakers.
            for text in texts:
                clause |= func.lower(column).contains(text, autoescape=True)
        return ~clause if operator == "neq" else clause

    def _in_reference(self, rows: _Rows, condition: BoundCondition) -> ColumnElement[bool]:
        value = condition.values[0]
        if isinstance(value, Query):
            earlier, name = self._compile(self._binder._query(value)), ""
        else:
            earlier, name = self._earlier(cast(Reference, value)), cast(Reference, value).key
        key = self._spoken(earlier, name)
        inner = earlier.select([earlier.c[key.name]], ordered=False).limit(MAX_FAN_OUT)
        column = rows.c[condition.key.name]
        return cast(ColumnElement[bool], column.not_in(inner) if condition.operator == "neq" else column.in_(inner))

    def _on_date(self, column: Any, operator: str, values: tuple[Scalar, ...]) -> ColumnElement[bool]:
        """Comparison with a stretch of time; partial dates are kept: 2023 is in 2023, and not before 2023-05."""
        first = self._window((Literal_(values[0]),), None)
        last = self._window((Literal_(values[-1]),), None) if len(values) > 1 else first
        start, end = _lower(first.start), _lower(last.end)
        match operator:
            case "ge":
                return cast(ColumnElement[bool], column >= start)
            case "gt":
                return cast(ColumnElement[bool], column >= end)
            case "lt":
                return cast(ColumnElement[bool], column < start)
            case "le":
                return cast(ColumnElement[bool], column < end)
        inside = (column >= start) & (column < end)
        return cast(ColumnElement[bool], ~inside if operator == "neq" else inside)

    def _window(self, values: tuple[Value, ...], other: tuple[Value, ...] | None) -> Window:
        first = str(_plain(values[0]))
        last = str(_plain(other[0])) if other else (str(_plain(values[1])) if len(values) > 1 else "")
        try:
            if last and last.lower() != "none":
                return resolve_span(first, last, self._now, domain=self._domain)
            return resolve_time(first, self._now, domain=self._domain)
        except UnknownTime as error:
            raise LanguageError(str(error)) from None

    # Results

    def _fetch(self, source: str, query: BoundQuery, rows: _Rows) -> Outcome:
        function = rows.function
        shown = rows.shown or tuple(function.key(name) for name in rows.default or function.default)
        if query.aggregate in ("avg", "sum", "min", "max"):
            return self._aggregated(source, query, rows, shown)
        total = self._count(rows)
        found = self._rows(rows, shown, MAX_ROWS) if total else []
        if query.aggregate == "len":
            return self._outcome(source, query, rows, shown, found, self._stated_or(rows, query, total), value=True)
        return self._outcome(source, query, rows, shown, found, self._stated_or(rows, query, total))

    def _aggregated(self, source: str, query: BoundQuery, rows: _Rows, shown: tuple[Key, ...]) -> Outcome:
        how = cast(Literal["avg", "sum", "min", "max"], query.aggregate)
        numeric = [key for key in shown if key.kind in NUMERIC or how in ("min", "max")]
        if not numeric:
            numeric = [key for key in rows.function.keys if key.kind in NUMERIC][:1]
        if not numeric:
            raise ParseError(f"{how} needs a number, and {rows.function.name} has none")
        key = numeric[-1]
        inner = rows.select([rows.c[key.name].label("value")]).subquery()
        value = self._connection.execute(select(getattr(func, how)(inner.c.value))).scalar()
        total = self._count(rows)
        if how in ("min", "max") and value is not None:
            rows.where.append(rows.c[key.name] == value)
        found = self._rows(rows, (key,), MAX_ROWS) if total else []
        return self._outcome(source, query, rows, (key,), found, total, value=_scalar(value))

    def _count(self, rows: _Rows) -> int:
        if rows.identity:
            inner = rows.select([rows.c[rows.identity].label("one")], ordered=rows.limit is not None).subquery()
            statement = select(func.count(inner.c.one.distinct()))
        else:
            inner = rows.select([next(iter(rows.source.c)).label("one")], ordered=rows.limit is not None).subquery()
            statement = select(func.count()).select_from(inner)
        return int(self._connection.execute(statement).scalar() or 0)

    def _rows(self, rows: _Rows, shown: tuple[Key, ...], limit: int) -> list[dict[str, Scalar]]:
        keys = tuple(dict.fromkeys((*rows.function.subject, *(key.name for key in shown))))
        names = [name for name in keys if name in rows.source.c]
        columns: list[ColumnElement[Any]] = [rows.c[name] for name in names]
        if rows.identity:
            columns.append(rows.c[rows.identity])
        statement = rows.select(columns)
        if rows.limit is None or rows.limit > limit:
            statement = statement.limit(limit * 2 if rows.identity else limit)
        lines: dict[Any, dict[str, Scalar]] = {}
        for index, row in enumerate(self._connection.execute(statement)):
            line = {name: _scalar(row[position]) for position, name in enumerate(names)}
            # A person with two credits in a film is one line of its list, unless the credits are what is asked for.
            same = (row[-1], *(line[key.name] for key in shown if key.name in line)) if rows.identity else index
            lines.setdefault(same, line)
        return list(lines.values())[:limit]

    def _stated_or(self, rows: _Rows, query: BoundQuery, total: int) -> int:
        """The larger of what is listed and what the source states that there is."""
        call = query.source
        plain = not any(isinstance(step, BoundWhere | Slice | BoundGroup) for step in query.steps)
        if not isinstance(call, BoundCall) or call.conditions or not plain or len(call.arguments) != 1:
            return total
        ((name, _),) = call.arguments.items()
        relation = rows.function.totals.get(name)
        ids = [one for entity in self._entities for one in entity.entity_ids]
        if relation is None or len(ids) != 1:
            return total
        statement = select(stated_total.c.total).where(
            stated_total.c.relation == relation, stated_total.c.entity_id == ids[0]
        )
        stated = self._connection.execute(statement).scalar()
        if stated is None:
            return total
        if stated > total:
            self._notes.append(f"the source counts {stated} and lists {total}")
        elif stated == 0 and total == 0:
            self._notes.append("the source states that there are none")
        return max(total, int(stated))

    def _outcome(
        self,
        source: str,
        query: BoundQuery,
        rows: _Rows,
        shown: tuple[Key, ...],
        found: list[dict[str, Scalar]],
        total: int,
        *,
        value: Scalar = None,
    ) -> Outcome:
        counted = value is True and query.aggregate == "len"
        values = [row.get(key.name) for row in found for key in shown]
        if self._status is not None:
            status = self._status
        elif self._stated:
            # The source states totals without their parts: they are the row.
            status, found, counted, value = "ok", [dict(self._summary)], False, None
        elif counted:
            status = "ok"
        elif not found or all(one is None for one in values):
            status = "empty"
        else:
            status = "ok"
        return Outcome(
            source,
            status,
            rows.function,
            tuple(key.name for key in shown),
            tuple(found),
            total,
            total if counted else value,
            "" if self._stated and not counted else query.aggregate or "",
            query.every,
            query.facet,
            tuple(self._entities),
            tuple(self._windows),
            tuple(self._notes),
            summary=dict(self._summary),
        )

    def _combine(self, source: str, bound: BoundCombine) -> Outcome:
        values: list[Scalar] = []
        rows: list[Mapping[str, Scalar]] = []
        function: Function | None = None
        shown: tuple[str, ...] = ()
        for query in bound.queries:
            outcome = self._fetch("", query, self._compile(query))
            one = outcome.value
            if one is None and outcome.rows:
                one = outcome.rows[0].get(outcome.shown[-1])
            values.append(one)
            rows += outcome.rows[:1]
            function, shown = outcome.function, outcome.shown
        value = _combined(bound.how, values)
        return Outcome(
            source,
            "empty" if value is None else "ok",
            function,
            shown,
            tuple(rows),
            len(rows),
            value,
            bound.how,
            entities=tuple(self._entities),
            windows=tuple(self._windows),
            notes=tuple(self._notes),
        )


def _asked(query: BoundQuery) -> frozenset[str]:
    return frozenset(key.name for step in query.steps if isinstance(step, BoundProject) for key in step.keys)


def _named(order: list[tuple[ColumnElement[Any], bool]]) -> list[tuple[Any, bool]]:
    return [(column, descending) for column, descending in order if getattr(column, "name", "")]


def _grouped(function: Function, keys: tuple[Key, ...]) -> Function:
    return Function(
        function.name,
        function.domain,
        function.summary,
        (),
        function.view,
        (*keys, Key("count", "integer", ("len", "n"))),
        subject=tuple(key.name for key in keys),
        default=(*(key.name for key in keys), "count"),
    )


def _filter(rows: _Rows, parameter: Parameter, ids: Select[Any] | tuple[str, ...]) -> ColumnElement[bool]:
    if parameter.clause is not None:
        return parameter.clause(rows.c, cast(Any, ids))
    return cast(ColumnElement[bool], rows.c[parameter.column].in_(ids))


def _within(column: Any, window: Window) -> list[ColumnElement[bool]]:
    clauses = []
    if window.start is not None:
        clauses.append(column >= _lower(window.start))
    if window.end is not None:
        clauses.append(column < _lower(window.end))
    return clauses


def _lower(day: date | None) -> str:
    """The shortest text that sorts before every date from this day on, so that `2023` counts as in 2023."""
    if day is None:
        return "9999"
    if (day.month, day.day) == (1, 1):
        return f"{day.year:04d}"
    return f"{day.year:04d}-{day.month:02d}" if day.day == 1 else day.isoformat()


def _compare(column: Any, operator: str, value: Any) -> ColumnElement[bool]:
    match operator:
        case "neq":
            return cast(ColumnElement[bool], column != value)
        case "ge":
            return cast(ColumnElement[bool], column >= value)
        case "le":
            return cast(ColumnElement[bool], column <= value)
        case "gt":
            return cast(ColumnElement[bool], column > value)
        case "lt":
            return cast(ColumnElement[bool], column < value)
        case _:
            return cast(ColumnElement[bool], column == value)


def _plain(value: Value) -> Scalar:
    if isinstance(value, Literal_):
        return value.value
    raise ParseError("a plain value is needed here")


def _integer(value: Scalar) -> int:
    """A year or a rank; `61st grammy (2018)` is 2018."""
    text = str(value)
    years = re.findall(r"(?<!\d)(?:18|19|20)\d\d(?!\d)", text)
    digits = years or re.findall(r"-?\d{1,9}", text)
    if not digits:
        raise LanguageError(f'"{text[:40]}" is no number')
    return int(digits[-1])


def _number(value: Scalar, key: Key) -> float | int:
    if isinstance(value, int | float):
        return value
    match = NUMBER.fullmatch(str(value).strip())
    if match is None:
        raise LanguageError(f'{key.name} is compared with "{str(value)[:40]}", which is no number')
    number = float(match[1].replace(",", ""))
    unit = (match[2] or "").lower()
    if unit == "%":
        return number / 100 if key.kind == "percent" else number
    return number * SCALES.get(unit, 1)


def _truth(value: Scalar) -> int:
    return int(str(value).strip().lower() in {"true", "1", "yes", "won", "win", "winner"})


def _scalar(value: Any) -> Scalar:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return float(value) if hasattr(value, "__float__") else str(value)


def _parts(text: str, resolve: Callable[[str], Resolution]) -> list[tuple[str, ...]]:
    """Entities of "A, B and C", whole first."""
    whole = resolve(text)
    if whole.status == "ok":
        return [tuple(whole.entities)]
    found = [resolve(part) for part in re.split(r",|&|;|\band\b", text) if part.strip()]
    return [tuple(one.entities) for one in found if one.status == "ok"]


def _combined(how: str, values: list[Scalar]) -> Scalar:
    """A number made of others; of two dates the days between."""
    if not values or any(value is None for value in values):
        return None
    if how == "diff" and all(isinstance(value, str) for value in values):
        days = [_day(str(value)) for value in values]
        return abs((days[0] - days[1]).days) if len(days) == 2 and days[0] and days[1] else None
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) != len(values):
        return None
    match how:
        case "diff":
            return numbers[0] - sum(numbers[1:])
        case "ratio":
            return numbers[0] / numbers[1] if len(numbers) == 2 and numbers[1] else None
        case "sum":
            return sum(numbers)
        case "min":
            return min(numbers)
        case "max":
            return max(numbers)
        case _:
            return sum(numbers) / len(numbers)


def _day(text: str) -> Any:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
