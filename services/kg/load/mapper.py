"""Compiles the rules of a mapping into actions, which make rows of records, each value in its column's type."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Column, Table

from services.kg.definition.folder import BrokenPart, check_name
from services.kg.language.catalogue import Kind
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph, Row
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
    is_variable,
    occurrence_of,
    place_of,
    required,
    slug_of,
    text_of,
)
from services.kg.load.registry import Mention
from services.kg.load.transforms import Transform
from services.kg.load.values import leniently, text, whole

T = TypeVar("T")

# A function of a domain, which puts rows made of a record's columns.
Put = Callable[[Writer, Row], None]
# A function of a domain, which reads all records of a file first and returns what changes each of them.
Filter = Callable[[Writer, Callable[[], Iterator[Record]]], Callable[[Row], Row]]


@dataclass(frozen=True, slots=True)
class Action:
    """A compiled rule: its pass (`order`), the records that it takes, and what it does with one."""

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
        """Put the rows of a record.

        Raises:
            BadRow: a row cannot be made; those before it may have been put.
        """
        scope = Scope(writer, record, self.lets)
        for part in self.parts:
            part(scope)


def named(options: Mapping[str, T], name: str, what: str) -> T:
    """The option of that name; BrokenPart if there is none."""
    check_name(name, options, what)
    return options[name]


def column_named(table: Table, name: str) -> Column[Any]:
    """The column of that name; BrokenPart if the table has none."""
    return named(dict(table.c.items()), name, f"column of {table.name}")


@contextmanager
def _within_rule(*place: str | int) -> Iterator[None]:
    try:
        yield
    except BrokenPart as error:
        raise BrokenPart(str(error), *place, *error.place) from None


@dataclass(frozen=True, slots=True)
class Schema:
    """A domain as loaders see it. Mappings are by name."""

    name: str
    tables: Mapping[str, Table]
    kinds: Mapping[str, Kind]
    transforms: Mapping[str, Transform]  # of the domain, and those that all have
    records: Mapping[str, Put]
    filters: Mapping[str, Filter]
    # Called after all files, with the latest moment that the source has data of.
    after: Callable[[Graph, str | None], None] | None


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles a rule of a domain into an action."""

    schema: Schema
    rule: Rule

    def action(self) -> Action:
        """The action of the rule.

        Raises:
            BrokenPart: it names a table, column, kind, transform, function or variable that does not exist.
        """
        when = {name: value if isinstance(value, tuple) else (value,) for name, value in self.rule.when.items()}
        deciding = [(name, leniently(field_of_record(name))) for name in when]
        lets: dict[str, Read] = {}
        for name, value in self.rule.let.items():
            with _within_rule("let", name):
                lets[name] = self.value(value)
        parts: list[Callable[[Scope], None]] = []
        for number, part in enumerate(self.rule.rows):
            with _within_rule("rows", number):
                parts.append(self._part(part))
        return Action(self.schema.name, self.rule.order, when, deciding, lets, parts)

    def value(self, value: Value) -> Read:
        """The reader of a value."""
        match value:
            case Constant(value=constant):
                return lambda scope: constant
            case Slug():
                return slug_of(value, self._fields(value.slug))
            case Text():
                return text_of(value, self._fields(value.fields))
            case Occurrence():
                return occurrence_of(self._fields(value.occurrence))
            case Entity():
                return self._entity(value)
        return self._from(value)

    def _fields(self, names: Sequence[str]) -> list[Read]:
        for name in names:
            if is_variable(name) and name != "$place" and name[1:] not in self.rule.let:
                raise BrokenPart(f"there is no {name}: `let` names {', '.join(self.rule.let) or 'nothing'}")
        return [field_of(name) for name in names]

    def _optional(self, value: Value | None) -> Read | None:
        return self.value(value) if value else None

    def _from(self, value: From) -> Read:
        reads = self._fields(value.fields)
        transforms = [named(self.schema.transforms, name, "transform") for name in value.transforms]
        condition = self._optional(value.condition)
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

    def _entity(self, value: Entity) -> Read:
        kind = named(self.schema.kinds, value.kind, "kind")
        table = self.schema.tables[kind.table]
        title = table.c[kind.key]
        name = self._typed(title, value.name)
        identifier = self._typed(table.c[kind.id], value.id) if value.id else None
        apart_column = kind.identity.apart
        apart = self._typed(table.c[apart_column], value.apart) if value.apart and apart_column else None
        near, of = self._optional(value.near), self._optional(value.of)
        columns = {key: self._typed(column_named(table, key), one) for key, one in value.columns.items()}

        def read(scope: Scope) -> str | None:
            plain = name(scope)
            if plain is None:
                raise BadRow(place_of(value.name), "is missing")
            mention = Mention(
                kind.name,
                plain,
                identifier(scope) if identifier else None,
                apart(scope) if apart else None,
                whole(near(scope), "year") if near else None,
                text(of(scope)) if of else None,
                value.fill,
                {key: one(scope) for key, one in columns.items()},
            )
            registry = scope.writer.registry
            try:
                return registry.find(mention) if value.find else registry.make(mention)
            except BadRow as error:
                raise BadRow(place_of(value.name), error.reason) from None

        return read

    def _typed(self, column: Column[Any], value: Value) -> Read:
        """The reader of a value in the column's type."""
        convert = converter(column)
        read, place = self.value(value), place_of(value) or column.name

        def typed(scope: Scope) -> Any:
            try:
                return convert(read(scope))
            except BadRow as error:
                raise BadRow(error.field or place, error.reason) from None

        return typed

    def _part(self, part: Part) -> Callable[[Scope], None]:
        put = self._table(part) if part.table else self._record(part)
        condition, exception = self._optional(part.condition), self._optional(part.exception)
        as_of, each = self._optional(part.as_of), self._optional(part.each)
        place = place_of(part.each) if part.each else ""
        as_of_place = place_of(part.as_of) if part.as_of else ""
        split = self._split(part)

        def put_one(scope: Scope) -> None:
            if condition is not None and not is_there(condition(scope)):
                return
            if exception is not None and is_there(exception(scope)):
                return
            put(scope)
            if as_of is not None:
                scope.writer.graph.state(self.schema.name, as_moment(as_of(scope), as_of_place))

        if each is None and split is None:
            return put_one

        def put_each(scope: Scope) -> None:
            items = elements(each(scope), place) if each else split(scope) if split else ()
            for scope.place, scope.element in enumerate(items):
                put_one(scope)
            scope.element = None

        return put_each

    def _split(self, part: Part) -> Read | None:
        for name in part.splits:
            value = part.columns[name]
            if isinstance(value, From) and value.split:
                read, sign = self._from(value), value.split
                return lambda scope: [piece for piece in map(str.strip, str(read(scope) or "").split(sign)) if piece]
        return None

    def _table(self, part: Part) -> Callable[[Scope], None]:
        table = self._table_named(part.table or "")
        element = From(fields=(".",))
        columns: dict[str, Read] = {}
        for name, value in part.columns.items():
            with _within_rule("columns", name):
                columns[name] = self._typed(column_named(table, name), element if name in part.splits else value)
        own = self._own_title(table, part)
        needed = required(table)
        missing = [name for name in needed if name not in columns and not (own and own[0].key == name)]
        if missing:
            raise BrokenPart(f"table {table.name} needs {', '.join(missing)}")
        places = {name: place_of(part.columns[name]) or name for name in needed if name in part.columns}
        absent = [(self._table_named(name), names) for name, names in part.absent.items()]
        name, fill = table.name, part.fill

        def put(scope: Scope) -> None:
            row = {column: read(scope) for column, read in columns.items()}
            doubtful = fill
            if own:
                kind, title = own
                row[kind.key] = scope.writer.registry.name(kind, row[kind.id], title(scope))
                doubtful = fill or (kind.identity.of and row[kind.key].islower())
            for column in needed:
                if row[column] is None:
                    raise BadRow(places.get(column, column), "is missing")
            if not any(holds(scope.writer.graph, other, {key: row[key] for key in keys}) for other, keys in absent):
                scope.writer.put(name, row, fill=doubtful)

        return put

    def _table_named(self, name: str) -> Table:
        return named(self.schema.tables, name, "table")

    def _own_title(self, table: Table, part: Part) -> tuple[Kind, Read] | None:
        """The kind of the entities whose own rows these are, and the reader of their names.

        None if the part states the name itself; else the registry spells it.
        """
        for column, value in part.columns.items():
            variable = value.fields[0] if isinstance(value, From) and len(value.fields) == 1 else ""
            entity = self.rule.let.get(variable[1:]) if is_variable(variable) else value
            if isinstance(entity, Entity):
                kind = self.schema.kinds[entity.kind]
                if kind.table == table.name and kind.id == column and kind.key not in part.columns:
                    return kind, self._typed(table.c[kind.key], entity.name)
        return None

    def _record(self, part: Part) -> Callable[[Scope], None]:
        function = named(self.schema.records, part.record or "", "record")
        columns = {name: self.value(value) for name, value in part.columns.items()}
        fill = {"fill": part.fill}
        return lambda scope: function(scope.writer, {name: read(scope) for name, read in columns.items()} | fill)
