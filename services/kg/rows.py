"""A statement's rows between the program and SQL."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, TextualSelect, select

from services.kg.language.catalogue import Function, Key


@dataclass
class Rows:
    """Rows as a SELECT in the making.

    Args:
        function: whose view they come from.
        source: the view, or a subquery over it once a limit has been applied.
        where: conditions.
        order: columns to sort by, with whether descending.
        limit: rows at most.
        offset: rows left out before.
        identity: column by which rows are counted: with one of a linked pair given, the entities of the other.
        spoken: names by which later statements may call a key: a facet's name -> the key that it shows.
        shown: keys that are projected.
        default: keys that are shown when none is projected, where not the function's.
        evidence: column and identifiers of each entity that was named.
        hops: statements that these rows go on from, one after the other.
    """

    function: Function
    source: FromClause
    where: list[ColumnElement[bool]] = field(default_factory=list)
    order: list[tuple[ColumnElement[Any], bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    identity: str = ""
    spoken: dict[str, str] = field(default_factory=dict)
    shown: tuple[Key, ...] = ()
    default: tuple[str, ...] = ()
    evidence: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    hops: int = 0

    @property
    def c(self) -> Any:
        return self.source.c

    def nest(self) -> None:
        """Freeze what was done so far, so that what follows applies to its result."""
        inner = self.select([column for column in self.source.c])
        self.source, self.where, self.order, self.limit, self.offset = inner.subquery(), [], [], None, 0

    def select(self, columns: Sequence[ColumnElement[Any]], *, ordered: bool = True) -> Select[Any]:
        """These columns of the rows; the order is left out where only the set matters."""
        statement = select(*columns).select_from(self.source).where(*self.where)
        if ordered or self.limit is not None:
            for column, descending in self.order:
                statement = statement.order_by(column.desc().nulls_last() if descending else column.asc().nulls_last())
        if self.limit is not None:
            statement = statement.limit(self.limit)
        return statement.offset(self.offset) if self.offset else statement


@cache
def view_of(view: TextualSelect) -> FromClause:
    """A function's view as a subquery, made once."""
    return view.subquery()
