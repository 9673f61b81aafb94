"""Tables of the store whose definition in a domain's folder has changed since they were made."""

from sqlalchemy import Connection, Inspector, Table, delete, inspect, select
from sqlalchemy.types import NullType

from services.kg.language.catalogue import Catalogue
from services.kg.store.tables import source as source_table


def rebuild_changed(connection: Connection, catalogue: Catalogue) -> frozenset[str]:
    """Drop the tables with other columns, types or keys than their domains say, with all that was loaded there.

    Returns:
        The names of the files that had filled the tables of these domains, which are to be loaded again.
    """
    inspector = inspect(connection)
    there = set(inspector.get_table_names())
    forgotten: set[str] = set()
    for domain in catalogue.domains.values():
        stale = [one for one in domain.tables.values() if one.name in there and _has_changed(one, inspector)]
        if not stale:
            continue
        # Rows of one file may be in several tables.
        for table in domain.tables.values():
            if table.name in there:
                table.drop(connection)
        of_domain = source_table.c.domain == domain.name
        forgotten |= set(connection.scalars(select(source_table.c.name).where(of_domain)))
        connection.execute(delete(source_table).where(of_domain))
    return frozenset(forgotten)


def _has_changed(table: Table, inspector: Inspector) -> bool:
    stored = {column["name"]: column["type"] for column in inspector.get_columns(table.name)}
    key = inspector.get_pk_constraint(table.name)["constrained_columns"]
    if stored.keys() != set(table.c.keys()) or set(key) != {column.name for column in table.primary_key}:
        return True
    # Integers of two lengths are alike; a text that is to be a number is not.
    return any(
        not isinstance(stored[column.name], NullType) and stored[column.name].python_type is not column.type.python_type
        for column in table.c
    )
