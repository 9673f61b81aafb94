"""After a load: entities that a source names and another numbers are one, whichever came first.

A source without identifiers names a film "heat-1995-12-15"; another numbers it 949. The first becomes the second here,
with all that refers to it: the columns of the domain's tables that are called as the kind's identifier is.
"""

from collections.abc import Iterator

from sqlalchemy import Column, Table, and_, exists, func, select, update

from services.kg.load.graph import Graph
from services.kg.load.identity import slug
from services.kg.load.registry import KindTable
from services.kg.load.schema import Schema
from services.kg.store.tables import stated_total


def merge(graph: Graph, schema: Schema) -> None:
    """Make one of those that belong together in a domain."""
    for kind in schema.kinds.values():
        if kind.identity.merge:
            for old, new in list(_pairs(graph, kind)):
                _become(graph, schema, kind, old, new)


def _pairs(graph: Graph, kind: KindTable) -> Iterator[tuple[str, str]]:
    """Identifiers made of names, with the one that a source gave to the entity of that name, where there is but one."""
    table = graph.tables[kind.table]
    key = table.c[kind.id]
    numbered = graph.connection.scalars(select(key).where(func.substr(key, 1, 1).between("0", "9")))
    if not any(one.isdecimal() for one in numbered):
        return
    apart = table.c[kind.identity.apart] if kind.identity.apart else None
    columns = [key, table.c[kind.title], *([apart] if apart is not None else [])]
    given: dict[tuple[str, str | None], str] = {}
    named: list[tuple[str, tuple[str, str | None]]] = []
    for identifier, title, *more in graph.connection.execute(select(*columns)):
        name, value = slug(title), more[0] if more else None
        if identifier.isdecimal():
            if value is not None:
                given[name, value] = identifier
            # One without a date is whichever there is, if there is but one.
            given[name, None] = "" if (name, None) in given else identifier
        elif identifier in {name, f"{name}-{value}"}:
            named.append((identifier, (name, value)))
    for identifier, mark in named:
        if given.get(mark):
            yield identifier, given[mark]


def _become(graph: Graph, schema: Schema, kind: KindTable, old: str, new: str) -> None:
    """One entity becomes another: rows that both have stay as the other's, and what only it states fills gaps."""
    own = graph.tables[kind.table]
    for table in schema.tables.values():
        if table is not own and kind.id in table.c:
            _rename(graph, table.c[kind.id], table, old, new)
    mine = stated_total.c.relation.startswith(f"{schema.name}.")
    taken = select(stated_total.c.relation).where(stated_total.c.entity_id == new).scalar_subquery()
    execute = graph.connection.execute
    execute(stated_total.delete().where(stated_total.c.entity_id == old, mine, stated_total.c.relation.in_(taken)))
    execute(update(stated_total).where(stated_total.c.entity_id == old, mine).values(entity_id=new))
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


def _rename(graph: Graph, column: Column[str], table: Table, old: str, new: str) -> None:
    others = [other for other in table.primary_key if other.name != column.name]
    twin = table.alias()
    if column.primary_key:
        same = and_(twin.c[column.name] == new, *(twin.c[one.name] == table.c[one.name] for one in others))
        graph.connection.execute(table.delete().where(column == old, exists().where(same)))
    graph.connection.execute(update(table).where(column == old).values({column.name: new}))
