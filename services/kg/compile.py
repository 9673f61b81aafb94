"""From bound statements to SELECTs: names and times are resolved here, and no facts are fetched.

SQL is an expression tree over the views of the catalogue, with bound parameters: no text of a program becomes SQL.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, select

from services.kg.entities import NameIndex
from services.kg.errors import LanguageError, NoEntity, ParseError
from services.kg.language import bind
from services.kg.language.bind import Binder, BoundCall, BoundCondition, BoundQuery
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key, Parameter, nearest, spelling
from services.kg.language.tree import Literal_, Query, Reference, Slice, Value
from services.kg.outcome import Scalar
from services.kg.rows import Rows, view_of
from services.kg.scope import Findings, Scope
from services.kg.store.names import name_table, normalise
from services.kg.store.texts import lowered
from services.kg.values import compare, integer, lower_bound, number, plain, within, words_of
from services.kit.text.times import UnknownTime, Window, resolve_span, resolve_time

# Rows of a statement that are returned; the count is of all.
MAX_ROWS = 50
# Values of a statement that a later one looks up by their names, or tells.
MAX_FAN_OUT = 50
# References from statement to statement in a row.
MAX_HOPS = 3

Clause = ColumnElement[bool]


class Compiler:
    """Compiles the statements of one program in order; `done` are the rows of those before, None where one has none.

    Events after `now` are hidden; functions of `domain` come before those of others.
    """

    def __init__(
        self, connection: Connection, names: NameIndex, catalogue: Catalogue, domain: str, now: datetime
    ) -> None:
        self._connection = connection
        self._names = names
        self._catalogue = catalogue
        self.domain = catalogue.domains[domain]
        self._now = now
        self.binder = Binder(catalogue, domain)
        self.done: list[Rows | None] = []
        self.findings = Findings()

    @property
    def tomorrow(self) -> str:
        """The day after the asker's: what happens from it on is not known yet."""
        return (self._now.date() + timedelta(days=1)).isoformat()

    def compile(self, query: BoundQuery) -> Rows:
        """The rows of a query.

        Raises:
            KgError: a name, time, key or value in it is unknown.
        """
        rows = self._source(query)
        for step in query.steps:
            self._step(rows, step)
        if query.head is not None:
            rows.slice(0, query.head)
        if query.facet and rows.shown:
            rows.facet_keys = {spelling(query.facet): rows.shown[0].name}
        return rows

    def _source(self, query: BoundQuery) -> Rows:
        if isinstance(query.source, BoundCall):
            projects = [step for step in query.steps if isinstance(step, bind.BoundProject)]
            projected = frozenset(key.name for step in projects for key in step.keys)
            return self._call(query.source, projected, every=query.every)
        earlier = bind.earlier(query.source, self.done)
        rows = Rows(earlier.function, earlier.select(list(earlier.source.c)).subquery(), identity=earlier.identity)
        rows.default, rows.hops, rows.ranked = earlier.default, earlier.hops, earlier.ranked
        named = [(getattr(column, "name", ""), descending) for column, descending in earlier.order]
        rows.order = [(rows.c[name], descending) for name, descending in named if name]
        return rows

    def _call(self, call: BoundCall, projected: frozenset[str], *, every: bool = False, instead_of: str = "") -> Rows:
        function = call.function
        rows = Rows(function, view_of(function.view), limit=function.limit)
        tables = self._catalogue.domains[function.domain].tables
        scope = Scope(self._connection, rows, self.findings, projected, self._now, tables, instead_of)
        rows.where = [self._clause(rows, condition) for condition in bind.fixed(function, function.presets)]
        for parameter in function.parameters:
            if values := call.arguments.get(parameter.name):
                self._argument(scope, call, parameter, values, series=every and parameter.series)
        rows.where += [self._clause(rows, condition) for condition in call.conditions]
        if function.pair is not None:
            _pair(rows, function, scope.entities)
        rows.order = order = [(rows.c[name.removeprefix("-")], name.startswith("-")) for name in function.order]
        self.findings.status, self.findings.summary, self.findings.stated = None, {}, False
        if function.refine is not None:
            function.refine(scope)
            if scope.replacement and not instead_of:
                other = self._catalogue.function(scope.replacement, function.domain)
                return self._call(BoundCall(other, call.arguments, ()), projected, instead_of=function.name)
        elif function.event and scope.entities and _hides_future(call):
            rows.where.append((rows.c[function.event] < self.tomorrow) | rows.c[function.event].is_(None))
        if rows.limit is not None:
            rows.nest()
            rows.order = [(rows.c[column.name], descending) for column, descending in order]
        return rows

    def _argument(
        self, scope: Scope, call: BoundCall, parameter: Parameter, values: tuple[Value, ...], *, series: bool
    ) -> None:
        rows, span = scope.rows, call.function.span
        other = call.arguments.get(span[1]) if span is not None else None
        if parameter.kind in ("time", "integer") and span is not None and parameter.name == span[1]:
            return
        if series:
            scope.entities[parameter.name] = self._series(str(plain(values[0])), parameter)
            rows.where.append(_filter(rows, parameter, scope.entities[parameter.name]))
        elif parameter.kind == "entity":
            self._entity_argument(scope, parameter, values)
        elif parameter.kind == "time":
            window = scope.windows[parameter.name] = self._window(values, other)
            self.findings.windows.append(window.label)
            if call.function.refine is None:
                rows.where += within(rows.c[parameter.column], window)
        elif parameter.kind == "integer":
            numbers = [integer(plain(value)) for value in values]
            column = rows.c[parameter.column]
            rows.where.append(column.between(numbers[0], integer(plain(other[0]))) if other else column.in_(numbers))
        elif parameter.clause is not None:
            rows.where.append(parameter.clause(rows.c, tuple(plain(value) for value in values)))
        else:
            rows.where.append(rows.c[parameter.column].in_([str(plain(value)) for value in values]))

    def _entity_argument(self, scope: Scope, parameter: Parameter, values: tuple[Value, ...]) -> None:
        rows, function = scope.rows, scope.function
        groups: list[tuple[str, ...]] = []
        for value in values:
            if isinstance(value, Reference | Query):
                identifiers = self._referred(rows, value, parameter)
                if isinstance(identifiers, Select):
                    rows.where.append(_filter(rows, parameter, identifiers))
                    scope.entities[parameter.name] = tuple(map(str, self._connection.scalars(identifiers)))
                    return
                groups.append(identifiers)
                continue
            name = str(plain(value))
            try:
                groups.append(self._resolve(name, parameter.entities))
            except NoEntity:
                if len(values) > 1 or not self._is_named(rows, parameter, name):
                    raise
                return
        scope.entities[parameter.name] = tuple(dict.fromkeys(one for group in groups for one in group))
        if parameter.column:
            rows.evidence += [(parameter.column, group) for group in groups]
        rows.where.append(_filter(rows, parameter, scope.entities[parameter.name]))
        if len(groups) > 1 and function.pair is not None and parameter.name in function.pair:
            # Several names mean what all of them share: films of both actors, actors of both films.
            other = next(p for p in function.parameters if p.name in function.pair and p.name != parameter.name)
            view = view_of(function.view).alias()
            for group in groups:
                shared = select(view.c[other.column]).where(view.c[parameter.column].in_(group))
                rows.where.append(rows.c[other.column].in_(shared))

    def _is_named(self, rows: Rows, parameter: Parameter, name: str) -> bool:
        """Whether rows have the name as text, and narrow to those: a film of which only the Oscars are known."""
        if not parameter.text_column:
            return False
        plain_name = name.strip().lower()
        column = rows.c[parameter.text_column]
        clause = lowered(column, plain_name).in_({plain_name, f"the {plain_name}", plain_name.removeprefix("the ")})
        surface = self._connection.scalar(select(column).select_from(rows.source).where(clause).limit(1))
        if surface is None:
            return False
        rows.where.append(clause)
        self.findings.take(name, parameter.entities[0], str(surface), "text")
        return True

    def _series(self, name: str, parameter: Parameter) -> tuple[str, ...]:
        """Entities whose names begin with this one: the films of a series."""
        start, norm = normalise(name), name_table.c.norm
        of_kind = name_table.c.kind.in_(parameter.entities)
        series = select(name_table.c.entity_id).where(of_kind, norm >= start, norm < f"{start}\U0010ffff")
        identifiers = tuple(self._connection.scalars(series.distinct().limit(MAX_ROWS))) if start else ()
        if not identifiers:
            raise NoEntity(name)
        self.findings.take(name, parameter.entities[0], name, "series", identifiers)
        return identifiers

    def _resolve(self, name: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
        resolution = self._names.resolve(name, kinds)
        if resolution.status != "ok":
            near = tuple(dict.fromkeys(candidate.surface for candidate in resolution.candidates))
            raise NoEntity(name, candidates=near, ambiguous=resolution.status == "ambiguous")
        best = resolution.candidates[0]
        kind = kinds[0] if kinds else ""
        self.findings.take(name, kind, best.surface, best.how, resolution.entities, best.score)
        return resolution.entities

    def _referred(self, rows: Rows, value: Reference | Query, parameter: Parameter) -> Select[Any] | tuple[str, ...]:
        """Identifiers of an earlier statement's values: a subquery where its rows have them, else by their names."""
        earlier, name = self._rows_of(value)
        rows.hops = max(rows.hops, earlier.hops + 1)
        if rows.hops > MAX_HOPS:
            raise ParseError(f"a program may go on from statement to statement {MAX_HOPS} times")
        key = _key_of(earlier, name)
        if key.entity in parameter.entities and key.id_column:
            column = earlier.c[key.id_column]
            pairs = list(self._connection.execute(earlier.select([column, earlier.c[key.name]]).limit(MAX_FAN_OUT)))
            if pairs and all(identifier is not None for identifier, _ in pairs):
                named = dict.fromkeys(str(text) for _, text in pairs)
                more = " and others" if len(pairs) == MAX_FAN_OUT else ""
                self.findings.notes.append(f"{key.words}: {', '.join(named)}{more}")
                return earlier.select([column], ordered=False)
        inner = earlier.select([earlier.c[key.name].label("text")]).subquery()
        known = select(inner.c.text).where(inner.c.text.is_not(None)).distinct().limit(MAX_FAN_OUT + 1)
        names = [str(text) for text in self._connection.scalars(known)]
        if not names:
            raise NoEntity(name or key.name)
        if len(names) > MAX_FAN_OUT:
            raise ParseError(f"more than {MAX_FAN_OUT} values of {key.words} cannot be gone on with: narrow them")
        self.findings.notes.append(f"{key.words}: {', '.join(names)}")
        identifiers = dict.fromkeys(one for text in names for one in self._listed(text, parameter.entities))
        if not identifiers:
            raise NoEntity(names[0])
        return tuple(identifiers)

    def _rows_of(self, value: Reference | Query) -> tuple[Rows, str]:
        """The rows of a reference or a query, and the name of the key that is taken of them."""
        if isinstance(value, Query):
            return self.compile(self.binder.query(value)), ""
        return bind.earlier(value, self.done), value.key

    def _listed(self, text: str, kinds: tuple[str, ...]) -> list[str]:
        """Entities of "A, B and C", whole first."""
        whole = self._names.resolve(text, kinds).entities
        parts = [] if whole else [part for part in re.split(r",|&|;|\band\b", text) if part.strip()]
        return list(whole) or [one for part in parts for one in self._names.resolve(part, kinds).entities]

    def _step(self, rows: Rows, step: bind.BoundStep) -> None:
        if rows.limit is not None and isinstance(step, bind.BoundWhere | bind.BoundSort):
            rows.nest()
        match step:
            case bind.BoundWhere(conditions):
                rows.where += [self._clause(rows, condition) for condition in conditions]
            case bind.BoundSort(key, descending):
                rest = [one for one in rows.order if one[0].name != key.name]
                rows.order, rows.ranked = [(rows.c[key.name], descending), *rest], True
            case Slice(start, stop):
                rows.slice(start, MAX_ROWS if stop is None else max(0, stop - start))
            case bind.BoundProject(keys, dynamic):
                rows.shown = keys
                if dynamic:
                    self._dynamic(rows, dynamic)
            case bind.BoundGroup(keys):
                rows.group(keys)

    def _dynamic(self, rows: Rows, names: tuple[str, ...]) -> None:
        """Narrow to rows whose `key` is one of the names: as spelt, by the domain's synonyms, or the nearest."""
        keys = self._connection.scalars(rows.select([rows.c["key"]], ordered=False).distinct().limit(1_000))
        by_spelling = {spelling(str(key)): str(key) for key in keys}
        if not by_spelling:
            return
        prose = rows.function.prose
        matches = {name: _dynamic_keys(rows.function, name, by_spelling) for name in names}
        chosen = [key for keys in matches.values() for key in keys]
        if missing := [name for name, keys in matches.items() if not keys]:
            near = nearest(missing[0], [key for key in by_spelling.values() if key != prose])
            self.findings.status = "unknown_key"
            self.findings.notes.append(f"nothing is known under {', '.join(missing)}")
            self.findings.notes += [f"what is known: {', '.join(near)}"] if near else []
            chosen += [prose] if prose in by_spelling else []
        rows.where.append(rows.c["key"].in_(chosen))

    def _clause(self, rows: Rows, condition: BoundCondition) -> Clause:
        key, operator = condition.key, condition.operator
        column = rows.c[key.name]
        if operator in ("isnull", "notnull"):
            return cast(Clause, column.is_(None) if operator == "isnull" else column.is_not(None))
        if condition.other is not None:
            return compare(column, operator, rows.c[condition.other.name])
        if any(isinstance(value, Reference | Query) for value in condition.values):
            earlier, name = self._rows_of(cast(Reference | Query, condition.values[0]))
            shown = earlier.c[_key_of(earlier, name).name]
            inner = earlier.select([shown], ordered=False)
            return cast(Clause, column.not_in(inner) if operator == "neq" else column.in_(inner))
        values = tuple(plain(value) for value in condition.values)
        if key.compare is not None:
            return key.compare(rows.c, cast(Any, operator), values)
        if operator == "like":
            part = str(values[0]).strip("%").lower()
            return lowered(column, part).contains(part, autoescape=True)
        if key.kind == "date":
            return self._on_date(rows, key.name, operator, values)
        compared: list[Any] = [number(value, key) if key.kind in NUMERIC else str(value).lower() for value in values]
        column = column if key.kind in NUMERIC else lowered(column, *compared)
        if operator == "between":
            return cast(Clause, column.between(compared[0], compared[1]))
        if key.kind in NUMERIC:
            several = operator == "in" or len(compared) > 1
            return cast(Clause, column.in_(compared)) if several else compare(column, operator, compared[0])
        if operator in ("ge", "le", "gt", "lt"):
            return compare(column, operator, compared[0])
        clause = cast(Clause, column.in_(compared))
        # People write part of a name: lakers for Los Angeles Lakers.
        for text in compared if key.entity or key.id_column else ():
            clause |= column.contains(text, autoescape=True)
        return ~clause if operator == "neq" else clause

    def _on_date(self, rows: Rows, key: str, operator: str, values: tuple[Scalar, ...]) -> Clause:
        """Comparison with a stretch of time; a partial date counts as a whole: 2023 is in 2023, not before 2023-05."""
        first, last = (self._window((Literal_(value),), None) for value in (values[0], values[-1]))
        column, start, end = rows.c[key], lower_bound(first.start), lower_bound(last.end)
        if operator in ("ge", "gt"):
            return cast(Clause, column >= (start if operator == "ge" else end))
        if operator in ("lt", "le"):
            return cast(Clause, column < (start if operator == "lt" else end))
        inside = (column >= start) & (column < end)
        if operator == "neq":
            return cast(Clause, ~inside)
        if not self._catalogue.domains[rows.function.domain].bundled:
            rows.periods.append((key, end))
        return cast(Clause, inside)

    def _window(self, values: tuple[Value, ...], other: tuple[Value, ...] | None) -> Window:
        first = str(plain(values[0]))
        last = str(plain(other[0])) if other else (str(plain(values[1])) if len(values) > 1 else "")
        try:
            if last and last.lower() != "none":
                return resolve_span(first, last, self._now, self.domain.calendar)
            return resolve_time(first, self._now, self.domain.calendar)
        except UnknownTime as error:
            raise LanguageError(str(error)) from None


def _hides_future(call: BoundCall) -> bool:
    """Whether later events are hidden: unless the program has a condition on their time, or names one film."""
    function = call.function
    if any(condition.key.name == function.event for condition in call.conditions):
        return False
    named = [name for name in call.arguments if name in (function.pair or ())]
    return function.pair is None or named == [function.pair[1]]


def _pair(rows: Rows, function: Function, entities: Mapping[str, tuple[str, ...]]) -> None:
    """Count the other side of what the rows link, where the program names one side."""
    first, second = cast(tuple[str, str], function.pair)
    named = [name for name in (first, second) if name in entities]
    if len(named) == 1:
        other = second if named == [first] else first
        rows.identity = next(p.column for p in function.parameters if p.name == other)
        rows.default = function.default_of.get(named[0], ())


def _key_of(rows: Rows, name: str) -> Key:
    """The key of the rows that a later statement calls so."""
    function = rows.function
    if not name:
        return rows.shown[0] if rows.shown else function.key(function.default[0])
    if spelling(name) in rows.facet_keys:
        return function.key(rows.facet_keys[spelling(name)])
    if function.dynamic:
        return function.key("value")
    return rows.shown[0] if len(rows.shown) == 1 and function.find_key(name) is None else function.key(name)


def _dynamic_keys(function: Function, name: str, by_spelling: Mapping[str, str]) -> list[str]:
    """The keys that a name means of those that an entity has; none where nothing is near."""
    own = spelling(name)
    synonyms = {spelling(word): spelling(key) for word, key in function.spellings.items()}
    for one in (own, synonyms.get(own, ""), own.removesuffix("s"), own + "s"):
        if one and one in by_spelling:
            return [by_spelling[one]]
    # elevation_m and elevation_ft for "elevation", or for a synonym of it.
    synonym = function.spellings.get("_".join(words_of(name)), "")
    for words in (words_of(name), words_of(synonym)):
        if words and (longer := [key for key in by_spelling.values() if set(words) <= set(words_of(key))]):
            return sorted(longer, key=len)[:2]
    return []


def _filter(rows: Rows, parameter: Parameter, ids: Select[Any] | tuple[str, ...]) -> Clause:
    if parameter.clause is not None:
        return parameter.clause(rows.c, cast(Any, ids))
    return cast(Clause, rows.c[parameter.column].in_(ids))
