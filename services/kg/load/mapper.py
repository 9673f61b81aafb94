"""A mapping at work: records become rows, each value read as its column is declared."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table

from services.kg.load.errors import BadRow
from services.kg.load.graph import Row
from services.kg.load.mapping import Constant, Entity, From, Occurrence, Part, Rule, Slug, Text, Value
from services.kg.load.reading import (
    Read,
    Record,
    Scope,
    Writer,
    as_moment,
    converter,
    elements,
    field_of,
    field_of_record,
    holds,
    is_there,
    occurrence_of,
    place_of,
    required,
    slug_of,
    text_of,
)
from services.kg.load.registry import KindTable, Mention
from services.kg.load.transforms import Transform
from services.kg.load.values import leniently, text, whole

# What `values` calls a value when it is told no better.
_CONVERTED = frozenset({"value", "date", "at"})

# What a function of a domain makes of a record's columns.
Put = Callable[[Writer, Row], None]


@dataclass(frozen=True, slots=True)
class Action:
    """A rule, ready: in which pass it is, which records it takes, and what it does with one."""

    domain: str
    order: int
    when: Mapping[str, tuple[Any, ...]]
    deciding: Sequence[tuple[str, Callable[[Record], Any]]]
    lets: Mapping[str, Read]
    parts: Sequence[Callable[[Scope], None]]

    @property
    def domains(self) -> frozenset[str]:
        return frozenset({self.domain})

    def domain_of(self, record: Record) -> str:
        return self.domain

    def fits(self, record: Record) -> bool:
        """Whether `when` fits a record."""
        return all(read(record) in self.when[name] for name, read in self.deciding)

    def apply(self, writer: Writer, record: Record) -> None:
        """Put the rows of a record; where one raises BadRow, those before it may have been put."""
        scope = Scope(writer, record, self.lets)
        for part in self.parts:
            part(scope)


class Misplaced(ValueError):
    """A rule names what is not there; `place` is where in the rule."""

    def __init__(self, reason: str, *place: str | int) -> None:
        super().__init__(reason)
        self.place: tuple[str | int, ...] = place


@contextmanager
def _within_rule(*place: str | int) -> Iterator[None]:
    try:
        yield
    except Misplaced as error:
        error.place = (*place, *error.place)
        raise


@dataclass(frozen=True, slots=True)
class Compiler:
    """Makes actions of the rules of a domain."""

    domain: str  # its name
    tables: Mapping[str, Table]  # by name
    kinds: Mapping[str, KindTable]  # of entities, by name
    transforms: Mapping[str, Transform]  # by name, those of the domain among them
    records: Mapping[str, Put]  # functions of the domain, by name

    def action(self, rule: Rule) -> Action:
        """The action of a rule.

        Raises:
            Misplaced: it names a table, column, kind, transform, function or variable that is not there.
        """
        when = {name: value if isinstance(value, tuple) else (value,) for name, value in rule.when.items()}
        deciding = [(name, leniently(field_of_record(name))) for name in when]
        lets: dict[str, Read] = {}
        for name, value in rule.let.items():
            with _within_rule("let", name):
                lets[name] = self.value(value, rule)
        parts: list[Callable[[Scope], None]] = []
        for number, part in enumerate(rule.rows):
            with _within_rule("rows", number):
                parts.append(self._part(part, rule))
        return Action(self.domain, rule.order, when, deciding, lets, parts)

    def value(self, value: Value, rule: Rule) -> Read:
        """How a value is read."""
        match value:
            case Constant():
                constant = value.value
                return lambda scope: constant
            case Slug():
                return slug_of(value, self._fields(value.slug, rule))
            case Text():
                return text_of(value, self._fields(value.fields, rule))
            case Occurrence():
                return occurrence_of(self._fields(value.occurrence, rule))
            case Entity():
                return self._entity(value, rule)
            case From():
                return self._from(value, rule)
        raise TypeError(type(value).__name__)

    def _fields(self, names: Sequence[str], rule: Rule) -> list[Read]:
        for name in names:
            if name.startswith("$") and name != "$place" and name[1:] not in rule.let:
                raise Misplaced(f"there is no {name}: `let` names {', '.join(rule.let) or 'nothing'}")
        return [field_of(name) for name in names]

    def _perhaps(self, value: Value | None, rule: Rule) -> Read | None:
        return self.value(value, rule) if value else None

    def _from(self, value: From, rule: Rule) -> Read:
        reads = self._fields(value.fields, rule)
        transforms: list[Transform] = []
        for name in value.transforms:
            if name not in self.transforms:
                raise Misplaced(f"there is no transform {name!r}: {', '.join(self.transforms)}")
            transforms.append(self.transforms[name])
        condition = self._perhaps(value.condition, rule)
        name, otherwise = value.fields[0], value.otherwise
        if len(reads) == 1 and not transforms and not condition and otherwise is None:
            return reads[0]

        def read(scope: Scope) -> Any:
            if condition is not None and not is_there(condition(scope)):
                return None
            result = next((one for one in (read(scope) for read in reads) if one is not None), None)
            for transform in transforms:
                try:
                    result = transform(result)
                except BadRow as error:
                    raise BadRow(name, error.reason) from None
            return otherwise if result is None else result

        return read

    def _entity(self, value: Entity, rule: Rule) -> Read:
        if value.kind not in self.kinds:
            raise Misplaced(f"there is no kind {value.kind!r}: {', '.join(self.kinds)}")
        kind = self.kinds[value.kind]
        table = self.tables[kind.table]
        title = table.c[kind.title]
        name = self._typed(title, value.name, rule)
        given = self._typed(table.c[kind.id], value.id, rule) if value.id else None
        apart_column = kind.identity.apart
        apart = self._typed(table.c[apart_column], value.apart, rule) if value.apart and apart_column else None
        near, of = self._perhaps(value.near, rule), self._perhaps(value.of, rule)
        columns = {key: self._typed(self._column(table, key), one, rule) for key, one in value.columns.items()}
        find = value.find is not None

        def read(scope: Scope) -> str | None:
            plain = name(scope)
            if plain is None:
                raise BadRow(place_of(value.name), "is missing")
            mention = Mention(
                kind.name,
                plain,
                given(scope) if given else None,
                apart(scope) if apart else None,
                whole(near(scope), "year") if near else None,
                text(of(scope)) if of else None,
                value.fill,
                {key: one(scope) for key, one in columns.items()},
            )
            registry = scope.writer.registry
            try:
                return registry.find(mention) if find else registry.make(mention)
            except BadRow as error:
                raise BadRow(place_of(value.name), error.reason) from None

        return read

    def _column(self, table: Table, name: str) -> Column[Any]:
        if name not in table.c:
            raise Misplaced(f"table {table.name} has no column {name!r}: {', '.join(table.c.keys())}")
        return table.c[name]

    def _typed(self, column: Column[Any], value: Value, rule: Rule) -> Read:
        """The value in the column's type."""
        convert = converter(column)
        read, place = self.value(value, rule), place_of(value) or column.name

        def typed(scope: Scope) -> Any:
            try:
                return convert(read(scope))
            except BadRow as error:
                raise BadRow(place if error.field in _CONVERTED else error.field, error.reason) from None

        return typed

    def _part(self, part: Part, rule: Rule) -> Callable[[Scope], None]:
        put = self._table(part, rule) if part.table else self._record(part, rule)
        condition, exception = self._perhaps(part.condition, rule), self._perhaps(part.exception, rule)
        as_of, each = self._perhaps(part.as_of, rule), self._perhaps(part.each, rule)
        place = place_of(part.each) if part.each else ""
        state = place_of(part.as_of) if part.as_of else ""
        split = self._split(part, rule)

        def one(scope: Scope) -> None:
            if condition is not None and not is_there(condition(scope)):
                return
            if exception is not None and is_there(exception(scope)):
                return
            put(scope)
            if as_of is not None:
                scope.writer.graph.state(self.domain, as_moment(as_of(scope), state))

        if each is None and split is None:
            return one

        def many(scope: Scope) -> None:
            found = elements(each(scope), place) if each else split(scope) if split else ()
            for scope.place, scope.element in enumerate(found):
                one(scope)
            scope.element = None

        return many

    def _split(self, part: Part, rule: Rule) -> Read | None:
        for name in part.splits:
            value = part.columns[name]
            if isinstance(value, From) and value.split:
                read, sign = self._from(value, rule), value.split
                return lambda scope: [piece for piece in map(str.strip, str(read(scope) or "").split(sign)) if piece]
        return None

    def _table(self, part: Part, rule: Rule) -> Callable[[Scope], None]:
        table = self._named(part.table or "")
        element = From(fields=(".",))
        columns: dict[str, Read] = {}
        for name, value in part.columns.items():
            with _within_rule("columns", name):
                columns[name] = self._typed(self._column(table, name), element if name in part.splits else value, rule)
        own = self._own(table, part, rule)
        needed = required(table)
        missing = [name for name in needed if name not in columns and not (own and own[0].title == name)]
        if missing:
            raise Misplaced(f"table {table.name} needs {', '.join(missing)}")
        places = {name: place_of(part.columns[name]) or name for name in needed if name in part.columns}
        absent = [(self._named(name), names) for name, names in part.absent.items()]
        name, fill = table.name, part.fill

        def put(scope: Scope) -> None:
            row = {column: read(scope) for column, read in columns.items()}
            doubtful = fill
            if own:
                kind, title = own
                row[kind.title] = scope.writer.registry.name(kind, row[kind.id], title(scope))
                doubtful = fill or (kind.identity.of and row[kind.title].islower())
            for column in needed:
                if row[column] is None:
                    raise BadRow(places.get(column, column), "is missing")
            if not any(holds(scope.writer.graph, other, {key: row[key] for key in keys}) for other, keys in absent):
                scope.writer.graph.put(name, row, fill=doubtful)

        return put

    def _named(self, name: str) -> Table:
        if name not in self.tables:
            raise Misplaced(f"domain {self.domain} has no table {name!r}: {', '.join(self.tables)}")
        return self.tables[name]

    def _own(self, table: Table, part: Part, rule: Rule) -> tuple[KindTable, Read] | None:
        """The kind of an entity's own row, whose name the registry spells, and the name as the source has it."""
        for column, value in part.columns.items():
            is_variable = isinstance(value, From) and len(value.fields) == 1 and value.fields[0][0] == "$"
            entity = rule.let.get(value.fields[0][1:]) if isinstance(value, From) and is_variable else value
            if isinstance(entity, Entity):
                kind = self.kinds[entity.kind]
                if kind.table == table.name and kind.id == column and kind.title not in part.columns:
                    return kind, self._typed(table.c[kind.title], entity.name, rule)
        return None

    def _record(self, part: Part, rule: Rule) -> Callable[[Scope], None]:
        if part.record not in self.records:
            raise Misplaced(f"domain {self.domain} has no record {part.record!r}: {', '.join(self.records)}")
        function = self.records[part.record or ""]
        columns = {name: self.value(value, rule) for name, value in part.columns.items()}
        fill = {"fill": part.fill}
        return lambda scope: function(scope.writer, {name: read(scope) for name, read in columns.items()} | fill)
