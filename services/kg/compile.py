"""From bound statements to rows in the making: names and times are resolved here, and nothing is fetched.

SQL is an expression tree over the views of the catalogue, with bound parameters: no text of a program becomes SQL.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, func, select

from proto.kg import KgStatus
from services.kg.entities import NameIndex, Resolution
from services.kg.errors import LanguageError, NoEntity, ParseError
from services.kg.language.bind import (
    Binder,
    BoundCall,
    BoundCondition,
    BoundGroup,
    BoundProject,
    BoundQuery,
    BoundSort,
    BoundStep,
    BoundWhere,
)
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key, Parameter, nearest, spelling
from services.kg.language.tree import Literal_, Query, Reference, Slice, Value
from services.kg.outcome import Entity, Scalar
from services.kg.rows import Rows, view_of
from services.kg.scope import Scope
from services.kg.store.names import name as name_table
from services.kg.store.names import normalise
from services.kg.values import compare, integer, lower_bound, number, plain, truth, within, words_of
from services.kit.text.times import UnknownTime, Window, resolve_span, resolve_time

# Rows that come back from a statement; the count is of all.
MAX_ROWS = 50
# Values of one statement that another may go on with.
MAX_FAN_OUT = 50
# Statements that go on with one another in a row.
MAX_HOPS = 3


@dataclass
class Findings:
    """What was learnt while a statement was compiled, for its outcome."""

    entities: list[Entity] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    status: KgStatus | None = None
    summary: dict[str, Scalar] = field(default_factory=dict)
    # The summary stands for rows that the source does not list.
    stated: bool = False


class Compiler:
    """Compiles the statements of one program in order; `done` are the rows of those before, None where one failed.

    What happens after `now` is hidden; functions are looked for in `domain` first.
    """

    def __init__(
        self, connection: Connection, names: NameIndex, catalogue: Catalogue, domain: str, now: datetime
    ) -> None:
        self._connection = connection
        self._names = names
        self._catalogue = catalogue
        self._calendar = catalogue.domains[domain].calendar
        self._now = now
        self.binder = Binder(catalogue, domain)
        self.done: list[Rows | None] = []
        self.findings = Findings()

    def compile(self, query: BoundQuery) -> Rows:
        """The rows of a query.

        Raises:
            KgError: a name, time, key or value in it that means nothing.
        """
        rows = self._source(query)
        for step in query.steps:
            self._step(rows, step)
        if query.head is not None:
            self._slice(rows, Slice(0, query.head))
        if query.facet and rows.shown:
            rows.spoken = {spelling(query.facet): rows.shown[0].name}
        return rows

    def _source(self, query: BoundQuery) -> Rows:
        if isinstance(query.source, BoundCall):
            return self._call(query.source, _asked(query), every=query.every)
        earlier = self._earlier(query.source)
        columns = [column for column in earlier.source.c]
        rows = Rows(earlier.function, earlier.select(columns).subquery(), identity=earlier.identity)
        rows.default = earlier.default
        rows.hops = earlier.hops
        rows.order = [(rows.c[column.name], descending) for column, descending in _named(earlier.order)]
        return rows

    def _earlier(self, reference: Reference) -> Rows:
        index = len(self.done) - 1 if reference.statement is None else reference.statement - 1
        rows = self.done[index] if 0 <= index < len(self.done) else None
        if rows is None:
            raise ParseError("* has no rows before it", expected=("a statement with rows before this one",))
        return rows

    def _call(self, call: BoundCall, asked: frozenset[str], *, every: bool = False, instead_of: str = "") -> Rows:
        function = call.function
        rows = Rows(function, view_of(function.view))
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
            instead_of=instead_of,
            tables=self._catalogue.domains[function.domain].tables,
        )
        if function.refine is not None:
            function.refine(scope)
            if scope.replacement and not instead_of:
                other = self._catalogue.function(scope.replacement, function.domain)
                self.findings.notes += scope.notes
                return self._call(BoundCall(other, call.arguments, ()), asked, instead_of=function.name)
        elif function.event and entities and self._hides_future(call):
            today = (self._now.date() + timedelta(days=1)).isoformat()
            rows.where.append((rows.c[function.event] < today) | rows.c[function.event].is_(None))
        self.findings.notes += scope.notes
        self.findings.status = scope.status
        self.findings.summary, self.findings.stated = scope.summary, scope.stated
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

    def _ordered(self, rows: Rows, name: str) -> tuple[ColumnElement[Any], bool]:
        return rows.c[name.removeprefix("-")], name.startswith("-")

    def _pair(self, rows: Rows, function: Function, entities: Mapping[str, tuple[str, ...]]) -> None:
        assert function.pair is not None  # noqa: S101 - checked by the caller
        columns = {p.name: p.column for p in function.parameters}
        first, second = function.pair
        given = [name for name in function.pair if name in entities]
        if len(given) == 1:
            rows.identity = columns[second if given == [first] else first]
            rows.default = function.default_of.get(given[0], ())

    def _argument(
        self,
        rows: Rows,
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
            entities[parameter.name] = self._series(str(plain(values[0])), parameter)
            rows.where.append(_filter(rows, parameter, entities[parameter.name]))
        elif parameter.kind == "entity":
            self._entity_argument(rows, function, parameter, values, entities)
        elif parameter.kind == "time":
            if function.span is not None and parameter.name == function.span[1]:
                return
            other = call.arguments.get(function.span[1]) if function.span is not None else None
            window = self._window(values, other)
            windows[parameter.name] = window
            self.findings.windows.append(window.label)
            if function.refine is None:
                rows.where += within(rows.c[parameter.column], window)
        elif parameter.kind == "integer":
            if function.span is not None and parameter.name == function.span[1]:
                return
            other = call.arguments.get(function.span[1]) if function.span is not None else None
            numbers = [integer(plain(value)) for value in values]
            column = rows.c[parameter.column]
            rows.where.append(column.between(numbers[0], integer(plain(other[0]))) if other else column.in_(numbers))
        elif parameter.clause is not None:
            rows.where.append(parameter.clause(rows.c, tuple(plain(value) for value in values)))
        else:
            rows.where.append(rows.c[parameter.column].in_([str(plain(value)) for value in values]))

    def _entity_argument(
        self,
        rows: Rows,
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
                try:
                    groups.append(self._resolve(str(plain(value)), parameter.entities))
                except NoEntity:
                    if len(values) > 1 or not self._is_named(rows, parameter, str(plain(value))):
                        raise
                    return
        entities[parameter.name] = tuple(dict.fromkeys(one for group in groups for one in group))
        if parameter.column:
            rows.evidence += [(parameter.column, group) for group in groups]
        rows.where.append(_filter(rows, parameter, entities[parameter.name]))
        if len(groups) > 1 and function.pair is not None and parameter.name in function.pair:
            # Several names mean what all of them share: films of both actors, actors of both films.
            other = next(p for p in function.parameters if p.name in function.pair and p.name != parameter.name)
            view = view_of(function.view).alias()
            for group in groups:
                shared = select(view.c[other.column]).where(view.c[parameter.column].in_(group))
                rows.where.append(rows.c[other.column].in_(shared))

    def _is_named(self, rows: Rows, parameter: Parameter, name: str) -> bool:
        """Narrow to rows that have the name as text, when there are any: a film that only the Oscars know."""
        if not parameter.text_column:
            return False
        spellings = {name.strip().lower(), f"the {name.strip().lower()}", name.strip().lower().removeprefix("the ")}
        clause = func.lower(rows.c[parameter.text_column]).in_(spellings)
        column = rows.c[parameter.text_column]
        surface = self._connection.execute(select(column).select_from(rows.source).where(clause).limit(1)).scalar()
        if surface is None:
            return False
        rows.where.append(clause)
        self.findings.entities.append(Entity(name, parameter.entities[0], (), str(surface), 1.0, "text"))
        return True

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
        self.findings.entities.append(Entity(name, parameter.entities[0], found, name, 1.0, "series"))
        return found

    def _resolve(self, name: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
        resolution = self._names.resolve(name, kinds)
        if resolution.status != "ok":
            raise NoEntity(
                name,
                candidates=tuple(dict.fromkeys(candidate.surface for candidate in resolution.candidates)),
                ambiguous=resolution.status == "ambiguous",
            )
        best = resolution.candidates[0]
        self.findings.entities.append(
            Entity(name, kinds[0] if kinds else "", resolution.entities, best.surface, best.score, best.how)
        )
        return tuple(resolution.entities)

    def _referred(self, rows: Rows, value: Reference | Query, parameter: Parameter) -> Select[Any] | tuple[str, ...]:
        """Identifiers that an earlier statement's values name: as a subquery where it has them, else by their names."""
        if isinstance(value, Query):
            bound = self.binder.query(value)
            earlier, name = self.compile(bound), ""
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
                self.findings.notes.append(f"{key.words}: {', '.join(dict.fromkeys(str(text) for _, text in found))}")
                return ids
        texts = self._connection.execute(earlier.select([earlier.c[key.name]]).limit(MAX_FAN_OUT)).scalars()
        names = [str(text) for text in dict.fromkeys(texts) if text is not None]
        if not names:
            raise NoEntity(name or key.name)
        self.findings.notes.append(f"{key.words}: {', '.join(names)}")
        identifiers: list[str] = []
        for text in names:
            for part in _parts(text, lambda part: self._names.resolve(part, parameter.entities)):
                identifiers += part
        if not identifiers:
            raise NoEntity(names[0])
        return tuple(dict.fromkeys(identifiers))

    def _spoken(self, rows: Rows, name: str) -> Key:
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

    def _step(self, rows: Rows, step: BoundStep) -> None:
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

    def _slice(self, rows: Rows, step: Slice) -> None:
        if rows.limit is not None or rows.offset:
            rows.nest()
        rows.offset = step.start
        rows.limit = MAX_ROWS if step.stop is None else max(0, step.stop - step.start)

    def _dynamic(self, rows: Rows, names: tuple[str, ...]) -> None:
        """Rows whose `key` is what was asked for: the spelling, the domain's synonym, or the nearest that there is."""
        found = self._connection.execute(rows.select([rows.c["key"]], ordered=False).distinct().limit(1_000)).scalars()
        known = {spelling(str(key)): str(key) for key in found}
        found_of = {name: self._find_dynamic(rows.function, name, known) for name in names}
        chosen = [key for keys in found_of.values() for key in keys]
        missing = [name for name, keys in found_of.items() if not keys]
        if missing and known:
            near = nearest(missing[0], [key for key in known.values() if key != rows.function.prose])
            self.findings.status = "unknown_key"
            self.findings.notes.append(f"nothing is known under {', '.join(missing)}")
            if near:
                self.findings.notes.append(f"what is known: {', '.join(near)}")
            if rows.function.prose in known:
                chosen.append(rows.function.prose)
        if known:
            rows.where.append(rows.c["key"].in_(chosen))

    def _find_dynamic(self, function: Function, name: str, known: Mapping[str, str]) -> list[str]:
        wanted = spelling(name)
        synonyms = {spelling(said): spelling(key) for said, key in function.spellings.items()}
        for one in (wanted, synonyms.get(wanted, ""), wanted.removesuffix("s"), wanted + "s"):
            if one and one in known:
                return [known[one]]
        # elevation_m and elevation_ft for "elevation", or for a synonym of it.
        synonym = function.spellings.get("_".join(words_of(name)), "")
        for words in (words_of(name), words_of(synonym)):
            if words and (longer := [key for key in known.values() if set(words) <= set(words_of(key))]):
                return sorted(longer, key=len)[:2]
        return []

    def _clause(self, rows: Rows, condition: BoundCondition) -> ColumnElement[bool]:
        key, operator = condition.key, condition.operator
        column = rows.c[key.name]
        if operator == "isnull":
            return cast(ColumnElement[bool], column.is_(None))
        if operator == "notnull":
            return cast(ColumnElement[bool], column.is_not(None))
        if condition.other is not None:
            return compare(column, operator, rows.c[condition.other.name])
        if any(isinstance(value, Reference | Query) for value in condition.values):
            return self._in_reference(rows, condition)
        values = tuple(plain(value) for value in condition.values)
        if key.compare is not None:
            return key.compare(rows.c, cast(Any, operator), values)
        if operator == "like":
            return func.lower(column).contains(str(values[0]).strip("%").lower(), autoescape=True)
        if key.kind == "date":
            return self._on_date(column, operator, values)
        if key.kind in NUMERIC:
            numbers = [truth(value) if key.kind == "flag" else number(value, key) for value in values]
            if operator == "between":
                return cast(ColumnElement[bool], column.between(numbers[0], numbers[1]))
            if operator == "in" or len(numbers) > 1:
                return cast(ColumnElement[bool], column.in_(numbers))
            return compare(column, operator, numbers[0])
        texts = [str(value).lower() for value in values]
        if operator in ("ge", "le", "gt", "lt"):
            return compare(func.lower(column), operator, texts[0])
        if operator == "between":
            return cast(ColumnElement[bool], func.lower(column).between(texts[0], texts[1]))
        clause: ColumnElement[bool] = func.lower(column).in_(texts)
        if key.entity or key.id_column:
            # A person writes part of a name: lakers for Los Angeles Lakers.
            for text in texts:
                clause |= func.lower(column).contains(text, autoescape=True)
        return ~clause if operator == "neq" else clause

    def _in_reference(self, rows: Rows, condition: BoundCondition) -> ColumnElement[bool]:
        value = condition.values[0]
        if isinstance(value, Query):
            earlier, name = self.compile(self.binder.query(value)), ""
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
        start, end = lower_bound(first.start), lower_bound(last.end)
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
        first = str(plain(values[0]))
        last = str(plain(other[0])) if other else (str(plain(values[1])) if len(values) > 1 else "")
        try:
            if last and last.lower() != "none":
                return resolve_span(first, last, self._now, self._calendar)
            return resolve_time(first, self._now, self._calendar)
        except UnknownTime as error:
            raise LanguageError(str(error)) from None


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


def _filter(rows: Rows, parameter: Parameter, ids: Select[Any] | tuple[str, ...]) -> ColumnElement[bool]:
    if parameter.clause is not None:
        return parameter.clause(rows.c, cast(Any, ids))
    return cast(ColumnElement[bool], rows.c[parameter.column].in_(ids))


def _parts(text: str, resolve: Callable[[str], Resolution]) -> list[tuple[str, ...]]:
    """Entities of "A, B and C", whole first."""
    whole = resolve(text)
    if whole.status == "ok":
        return [tuple(whole.entities)]
    found = [resolve(part) for part in re.split(r",|&|;|\band\b", text) if part.strip()]
    return [tuple(one.entities) for one in found if one.status == "ok"]
