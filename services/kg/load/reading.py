"""Readers of single values of a record: fields, identifiers and texts made of them, and the types of columns."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Boolean, Column, Float, Integer, Table, select

from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph, Key, Row
from services.kg.load.identity import slug
from services.kg.load.mapping import Entity, Slug, Text, Value, fields_of
from services.kg.load.registry import Registry
from services.kg.load.values import day, moment, name, number, text, truth, whole

Record = Mapping[str, Any]
Read = Callable[["Scope"], Any]


@dataclass(frozen=True, slots=True)
class Merge:
    """A record whose row has the key of an earlier one of its file and other values: they are one row."""

    line: int
    earlier: int
    table: str
    key: Key


@dataclass(slots=True)
class Writer:
    """What rows are put with: the tables, and the entities in them."""

    graph: Graph
    registry: Registry
    # Of the record whose rows are put.
    line: int = 0
    # Whether a record is a row of its own, so that one that merges with another is to be told.
    is_strict: bool = False
    # Records of the file so far, by their values.
    occurrences: Counter[tuple[str, ...]] = field(default_factory=Counter)
    merges: list[Merge] = field(default_factory=list)
    # By table and key, the line of the record that put the row, and a hash of its values.
    _said: dict[tuple[str, Key], tuple[int, int]] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin a pass over a file."""
        self.line = 0
        for memory in (self.occurrences, self.merges, self._said):
            memory.clear()

    def put(self, table: str, row: Row, *, fill: bool = False) -> None:
        """Merge one row of the record at `line`, of values in the columns' types, as `Graph.put` does."""
        key = self.graph.put(table, row, fill=fill)
        if self.is_strict:
            said = hash(tuple(row.items()))
            earlier, before = self._said.setdefault((table, key), (self.line, said))
            if said != before and earlier != self.line:
                self.merges.append(Merge(self.line, earlier, table, key))


@dataclass(slots=True)
class Scope:
    """One record while its rows are made: the current element of a list, and variables, computed once."""

    writer: Writer
    record: Record
    lets: Mapping[str, Read]
    element: Any = None
    place: int = 0
    cache: dict[str, Any] = field(default_factory=dict)

    def variable(self, name: str) -> Any:
        if name not in self.cache:
            self.cache[name] = self.lets[name](self)
        return self.cache[name]


def converter(column: Column[Any]) -> Callable[[Any], Any]:
    """The reader of values of a column.

    Words that mean nothing ("none", "n/a") are null if the column may be; in a required one "Null" is a name.
    """
    if column.info.get("type") == "date":
        return day
    if isinstance(column.type, Boolean):
        required = not column.nullable
        return lambda value: None if value is None or (value == "" and not required) else truth(value)
    if isinstance(column.type, Integer):
        return whole
    if isinstance(column.type, Float):
        return number
    return text if column.nullable else name


def required(table: Table) -> list[str]:
    """Columns that each row must have a value for."""
    return [one.name for one in table.c if not one.nullable and one.default is None]


def is_there(value: object) -> bool:
    return value is not None and value not in ("", [], {}) and (not isinstance(value, str) or text(value) is not None)


def elements(value: object, place: str) -> Iterator[Any]:
    """Elements of a list, members of an object as {"key", "value"}, nothing of null.

    Raises:
        BadRow: the value is something else.
    """
    if isinstance(value, Mapping):
        return iter([{"key": key, "value": one} for key, one in value.items()])
    if value is not None and not isinstance(value, (list, tuple)):
        raise BadRow(place, "is no list")
    return iter(value or ())


def as_moment(value: object, place: str) -> str | None:
    """The day or moment that a source states, in ISO 8601, so that they compare."""
    plain = text(value)
    return moment(plain, place) if plain and ":" in plain else day(plain, place)


def place_of(value: Value) -> str:
    """The main field of a value, which problems name."""
    return place_of(value.name) if isinstance(value, Entity) else next(iter(fields_of(value)), "")


def is_variable(name: str) -> bool:
    """Whether a field's name is that of a variable, as `$film` is; a column may be called `$ amount`."""
    return name.startswith("$") and name[1:].isidentifier()


def field_of(name: str) -> Read:
    """The reader of a field: `a.b` of the record, `.b` of the element, `$b` of the variables; null if it is missing."""
    if name == "$place":
        return lambda scope: scope.place
    if is_variable(name):
        variable = name[1:]
        return lambda scope: scope.variable(variable)
    if name == ".":
        return lambda scope: scope.element
    if name.startswith("."):
        keys = name[1:].split(".")
        if len(keys) == 1:
            key = keys[0]
            return lambda scope: scope.element.get(key) if isinstance(scope.element, dict) else None
        return lambda scope: _within(scope.element, keys, name)
    read = field_of_record(name)
    return lambda scope: read(scope.record)


def field_of_record(name: str) -> Callable[[Record], Any]:
    """The reader of a field of a record, `a` or `a.b`; it raises BadRow if `a` is no object."""
    keys = name.split(".")
    if len(keys) == 1:
        return lambda record: record.get(name)
    outer, *rest = keys

    def read(record: Record) -> Any:
        value = record.get(outer)
        if len(rest) == 1 and isinstance(value, dict):
            return value.get(rest[0])
        return record[name] if name in record else _within(value, rest, name)

    return read


def _within(value: Any, keys: Sequence[str], name: str) -> Any:
    for key in keys:
        if value is None:
            return None
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, (list, tuple)) and key.isdecimal():
            value = value[int(key)] if int(key) < len(value) else None
        else:
            raise BadRow(name, "is within what is no object")
    return value


def slug_of(value: Slug, reads: list[Read]) -> Read:
    def read(scope: Scope) -> str | None:
        parts = [text(one(scope)) for one in reads]
        return value.prefix + slug("-".join(part for part in parts if part)) if parts[0] else None

    return read


def text_of(value: Text, reads: list[Read]) -> Read:
    pattern = re.compile(r"\{[^{}]+\}")

    def read(scope: Scope) -> str | None:
        pieces = [text(one(scope)) for one in reads]
        return None if None in pieces else pattern.sub(lambda _: str(pieces.pop(0)), value.text)

    return read


def occurrence_of(reads: list[Read]) -> Read:
    def read(scope: Scope) -> int:
        alike = tuple(str(one(scope)) for one in reads)
        scope.writer.occurrences[alike] += 1
        return scope.writer.occurrences[alike]

    return read


def holds(graph: Graph, table: Table, row: Row) -> bool:
    graph.flush()
    statement = select(*table.primary_key.columns).where(*(table.c[name] == value for name, value in row.items()))
    return graph.connection.execute(statement.limit(1)).first() is not None
