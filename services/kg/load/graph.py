"""The tables as a load writes them: rows merged by primary key, in batches.

Rows of one key become one: the values of a later row replace those of an earlier one, its nulls do not. A row with
`fill` sets only what is null, for sources that guess or write names in lower case.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, Table, func
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.schema import ScalarElementColumnDefault

BATCH_ROWS = 1_000

Row = dict[str, Any]
Key = tuple[Any, ...]  # the values of a row's primary key


class Graph:
    """Writes to the tables of one open transaction, which the caller commits. Not safe for threads."""

    def __init__(self, connection: Connection, tables: Mapping[str, Table]) -> None:
        self.connection = connection
        self.tables = tables
        # The latest moment that the source has data of, by domain; days to come do not count.
        self.as_of: dict[str, str] = {}
        self._pending: dict[tuple[str, bool], dict[Key, Row]] = defaultdict(dict)
        self._keys = {name: [column.name for column in table.primary_key] for name, table in tables.items()}
        self._insert: Callable[[Table], Any] = (
            postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        )

    def put(self, table: str, row: Row, *, fill: bool = False) -> Key:
        """Merge one row, of values in the columns' types, and return its key.

        Columns left out stay as they are, or get their default.
        """
        key = tuple([row[name] for name in self._keys[table]])
        rows = self._pending[table, fill]
        earlier = rows.get(key)
        if earlier is None:
            rows[key] = row
        elif fill:
            rows[key] = row | {name: value for name, value in earlier.items() if value is not None}
        else:
            earlier.update({name: value for name, value in row.items() if value is not None})
        if len(rows) >= BATCH_ROWS:
            self.flush()
        return key

    def state(self, domain: str, moment: str | None) -> None:
        """Note that the source has data of this moment."""
        if moment:
            self.as_of[domain] = max(moment, self.as_of.get(domain, ""))

    def flush(self) -> None:
        """Write the pending rows."""
        for (table, fill), rows in sorted(self._pending.items(), key=lambda item: item[0][1]):
            if rows:
                self._upsert(self.tables[table], list(rows.values()), fill=fill)
        self._pending.clear()

    def _upsert(self, table: Table, rows: list[Row], *, fill: bool) -> None:
        names = [column.name for column in table.columns]
        used = [name for name in names if any(name in row for row in rows)]
        defaults: Row = {}
        for column in table.columns:
            default = column.default
            defaults[column.name] = default.arg if isinstance(default, ScalarElementColumnDefault) else None
            # The driver sends null for a missing value, so the statement itself brings a required column's default.
            if not column.nullable and column.name not in used:
                used.append(column.name)
        complete = [{name: defaults[name] if row.get(name) is None else row[name] for name in used} for row in rows]
        statement = self._insert(table)
        keys = self._keys[table.name]
        pairs = {
            name: (statement.excluded[name], table.c[name])
            for name in used
            if name not in keys and any(row.get(name) is not None for row in rows)
        }
        merged = {name: func.coalesce(*(reversed(pair) if fill else pair)) for name, pair in pairs.items()}
        if merged:
            statement = statement.on_conflict_do_update(index_elements=keys, set_=merged)
        else:
            statement = statement.on_conflict_do_nothing(index_elements=keys)
        self.connection.execute(statement, complete)
