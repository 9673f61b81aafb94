"""The row format: lines of JSON, each a row of a table; see docs/loading.md.

A CSV file that is named like a table, `movie.csv`, and whose header has columns of it, holds such rows too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlalchemy import Table

from services.kg.load.errors import BadRow
from services.kg.load.reading import Record, Writer, converter, required


@dataclass(slots=True)
class RowAction:
    """Puts rows as they are, checked against the tables."""

    tables: Mapping[str, Table]  # by name
    domain_by_table: Mapping[str, str]  # by the table's name
    table: str | None = None  # the table of all records, which then are the rows themselves
    order: ClassVar[int] = 30  # as entities in most mappings
    _columns: dict[str, tuple[dict[str, Any], list[str]]] = field(default_factory=dict)

    @property
    def deciding(self) -> Sequence[tuple[str, Callable[[Record], Any]]]:
        """The readers whose values decide whether a record is a row, by name."""
        return [] if self.table is not None else [("table and row", self.fits)]

    @property
    def domains(self) -> frozenset[str]:
        if self.table is not None:
            return frozenset({self.domain_by_table[self.table]})
        return frozenset(self.domain_by_table.values())

    def fits(self, record: Record) -> bool:
        return self.table is not None or ("table" in record and isinstance(record.get("row"), dict))

    def takes(self, table: str, columns: Sequence[str]) -> bool:
        """Whether a CSV file of that name and header holds rows of a table."""
        return table in self.domain_by_table and bool(columns) and set(columns) <= set(self.tables[table].c.keys())

    def domain_of(self, record: Record) -> str:
        table = self.table or str(record["table"])
        row = record.get("row")
        if table == "stated_total" and isinstance(row, dict):
            return str(row.get("relation", "")).split(".")[0]
        return self.domain_by_table.get(table, "")

    def apply(self, writer: Writer, record: Record) -> None:
        """Put the row of a record.

        Raises:
            BadRow: there is no such table or column, or a value is missing or of the wrong type.
        """
        name = self.table or str(record["table"])
        row: Mapping[str, Any] = record if self.table else record["row"]
        if name not in self.domain_by_table:
            raise BadRow("table", f"{name[:40]!r} is no table: {', '.join(self.domain_by_table)}")
        if name not in self._columns:
            columns = {column.name: converter(column) for column in self.tables[name].c}
            self._columns[name] = columns, required(self.tables[name])
        columns, needed = self._columns[name]
        typed: dict[str, Any] = {}
        for column, value in row.items():
            if column not in columns:
                raise BadRow(column, f"is no column of {name}: {', '.join(columns)}")
            try:
                typed[column] = columns[column](value)
            except BadRow as error:
                raise BadRow(column, error.reason) from None
        for column in needed:
            if typed.get(column) is None:
                raise BadRow(column, "is missing")
        writer.put(name, typed, fill=record.get("fill") is True)
