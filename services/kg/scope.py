"""What a domain's own rules see of a statement on its way to SQL, and may change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table

from proto.kg import KgStatus
from services.kg.language.catalogue import Function
from services.kit.text.times import Window


@dataclass
class Scope:
    """One call before it is run."""

    connection: Connection  # to look at the data that a rule depends on, as a calendar with holidays
    function: Function  # the one that is called; a rule may put another of the same keys in its place by `replace`
    columns: Any  # of its view
    asked: frozenset[str]  # names of the keys that are projected or aggregated; empty for the default ones
    entities: Mapping[str, tuple[str, ...]]  # parameter -> identifiers that its names were resolved to
    windows: Mapping[str, Window]  # parameter -> the time that was asked for
    now: datetime  # the query time in its own zone; `today` is its date
    today: date
    where: list[ColumnElement[bool]] = field(default_factory=list)  # conditions so far
    # Columns to sort by unless the program sorts, with whether descending.
    order: list[tuple[ColumnElement[Any], bool]] = field(default_factory=list)
    limit: int | None = None  # rows at most
    notes: list[str] = field(default_factory=list)  # what the reader must be told, in words
    status: KgStatus | None = None  # of the statement, when it is not simply ok or empty
    replacement: str = ""
    instead_of: str = ""  # the function that was called, where a rule put this one in its place
    tables: Mapping[str, Table] = field(default_factory=dict)  # of the function's domain
    # Totals of the window for the reader; `stated` when the source gives them without their parts.
    summary: dict[str, Any] = field(default_factory=dict)
    stated: bool = False

    def scalar(self, statement: Select[Any]) -> Any:
        return self.connection.execute(statement).scalar()

    def rows(self, statement: Select[Any]) -> list[Row[Any]]:
        return list(self.connection.execute(statement))

    def replace(self, function: str) -> None:
        """Run this function instead, with the same arguments."""
        self.replacement = function
