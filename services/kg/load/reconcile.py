"""Merges entities after a load: one that a source names becomes the one that another source numbers.

A source without identifiers names a film "heat-1995-12-15"; another numbers it 949. The first becomes the second, with
all references to it: the columns of the domain's tables that have the name of the kind's identifier.
"""

from collections.abc import Iterator

from sqlalchemy import Column, Table, and_, exists, func, select, update

from services.kg.language.catalogue import Kind
from services.kg.load.graph import Graph
from services.kg.load.identity import slug
from services.kg.load.mapper import Schema
from services.kg.store.tables import stated_total


def merge(graph: Graph, schema: Schema) -> None:
    """Merge the entities of a domain."""
    for kind in schema.kinds.values():
        if kind.identity.merge:
            for old, new in list(_pairs(graph, kind)):
                _replace(graph, schema, kind, old, new)


def _pairs(graph: Graph, kind: Kind) -> Iterator[tuple[str, str]]:
    """Identifiers made of names, each with the number of the entity of that name, if there is only one."""
    table = graph.tables[kind.table]
    key = table.c[kind.id]
    with_digit = graph.connection.scalars(select(key).where(func.substr(key, 1, 1).between("0", "9")))
    if not any(one.isdecimal() for one in with_digit):
        return
    apart = table.c[kind.identity.apart] if kind.identity.apart else None
    columns = [key, table.c[kind.key], *([apart] if apart is not None else [])]
    numbered: dict[tuple[str, str | None], str] = {}
    named: list[tuple[str, tuple[str, str | None]]] = []
    for identifier, title, *more in graph.connection.execute(select(*columns)):
        name, value = slug(title), more[0] if more else None
        if identifier.isdecimal():
            if value is not None:
                numbered[name, value] = identifier
            # A name without a date means the only entity of that name.
            numbered[name, None] = "" if (name, None) in numbered else identifier
        elif identifier in {name, f"{name}-{value}"}:
            named.append((identifier, (name, value)))
    for identifier, name_and_value in named:
        if number := numbered.get(name_and_value):
            yield identifier, number


def _replace(graph: Graph, schema: Schema, kind: Kind, old: str, new: str) -> None:
    """Replace an entity by another: of rows that both have the other's stay, and columns that it lacks are filled."""
    own = graph.tables[kind.table]
    for table in schema.tables.values():
        if table is not own and kind.id in table.c:
            _refer(graph, table.c[kind.id], table, old, new)
    own_total = (stated_total.c.entity_id == old) & stated_total.c.relation.startswith(f"{schema.name}.")
    totals_of_new = select(stated_total.c.relation).where(stated_total.c.entity_id == new).scalar_subquery()
    execute = graph.connection.execute
    execute(stated_total.delete().where(own_total, stated_total.c.relation.in_(totals_of_new)))
    execute(update(stated_total).where(own_total).values(entity_id=new))
    key = own.c[kind.id]
    row = execute(select(own).where(key == old)).mappings().one()
    gaps = {
        column.name: func.coalesce(column, row[column.name])
        for column in own.c
        if column.nullable and row[column.name] is not None
    }
    if gaps:
        execute(update(own).where(key == new).values(gaps))
    execute(own.delete().where(key == old))


def _refer(graph: Graph, column: Column[str], table: Table, old: str, new: str) -> None:
    """Let a table's references to the old entity be to the new one."""
    others = [other for other in table.primary_key if other.name != column.name]
    twin = table.alias()
    if column.primary_key:
        same = and_(twin.c[column.name] == new, *(twin.c[one.name] == table.c[one.name] for one in others))
        graph.connection.execute(table.delete().where(column == old, exists().where(same)))
    graph.connection.execute(update(table).where(column == old).values({column.name: new}))
