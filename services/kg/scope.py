"""The part of a statement on its way to SQL that a domain's own rules read and change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, Table

from proto.kg import KgEntity, KgStatus
from services.kg.language.catalogue import Function
from services.kg.outcome import Scalar
from services.kg.rows import Rows
from services.kit.text.times import Window


@dataclass
class Findings:
    """Facts about a statement that compiling it brings, for its outcome."""

    entities: list[KgEntity] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)  # of a SELECT, in words
    notes: list[str] = field(default_factory=list)  # for the reader, in words
    status: KgStatus | None = None  # of the statement, when it is neither ok nor empty
    # Totals of the window for the reader; `stated` where they stand for rows that the source does not list.
    summary: dict[str, Scalar] = field(default_factory=dict)
    stated: bool = False

    def take(self, name: str, kind: str, surface: str, how: str, ids: tuple[str, ...] = (), score: float = 1.0) -> None:
        """Note what a name of the program is taken for."""
        self.entities.append(KgEntity(name=name, kind=kind, surface=surface, entity_ids=ids, score=score, how=how))

    def fields(self) -> dict[str, Any]:
        """The fields of an outcome that are the same for every kind of statement."""
        return {name: tuple(getattr(self, name)) for name in ("entities", "windows", "conditions", "notes")}


@dataclass
class Scope:
    """One call before it is run; a rule narrows, sorts and limits its `rows`."""

    connection: Connection  # to look at the data that a rule depends on, as a calendar with holidays
    rows: Rows
    findings: Findings
    projected: frozenset[str]  # names of the keys that are projected or aggregated; empty for the default ones
    now: datetime  # the query time in its own zone
    tables: Mapping[str, Table]  # of the function's domain
    instead_of: str = ""  # the function that was called, where a rule put this one in its place
    replacement: str = ""
    entities: dict[str, tuple[str, ...]] = field(default_factory=dict)  # parameter -> identifiers of its names
    windows: dict[str, Window] = field(default_factory=dict)  # parameter -> its time

    @property
    def function(self) -> Function:
        return self.rows.function

    @property
    def columns(self) -> Any:
        return self.rows.c

    @property
    def today(self) -> date:
        return self.now.date()

    def scalar(self, statement: Select[Any]) -> Any:
        return self.connection.execute(statement).scalar()

    def all(self, statement: Select[Any]) -> list[Row[Any]]:
        return list(self.connection.execute(statement))

    def narrow(self, *clauses: Any) -> None:
        """Keep only the rows for which the clauses hold."""
        self.rows.where += clauses

    def only(self, column: Any, *, last: bool) -> None:
        """Keep only the first row by a column, or the last."""
        self.rows.order, self.rows.limit = [(column, last)], 1

    def replace(self, function: str) -> None:
        """Run this function instead, of the same keys, with the same arguments."""
        self.replacement = function
