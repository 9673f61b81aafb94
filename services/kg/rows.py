"""A statement's rows between the program and SQL."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, TextualSelect, func, or_, select

from services.kg.language.catalogue import Function, Key


@dataclass
class Rows:
    """Rows as a SELECT in the making."""

    function: Function  # whose view they come from
    source: FromClause  # the view, or a subquery over it once a limit has been applied
    where: list[ColumnElement[bool]] = field(default_factory=list)  # conditions
    # Columns to sort by, with whether descending.
    order: list[tuple[ColumnElement[Any], bool]] = field(default_factory=list)
    ranked: bool = False  # whether the program sorts them, so that the first are some and not others
    limit: int | None = None  # rows at most
    offset: int = 0  # rows left out before
    identity: str = ""  # column that is counted: with one of a linked pair given, the entities of the other
    # A facet's name -> the key that it shows, for later statements.
    facet_keys: dict[str, str] = field(default_factory=dict)
    shown: tuple[Key, ...] = ()  # keys that are projected
    default: tuple[str, ...] = ()  # keys that are shown when none is projected, where not the function's
    # Column and identifiers of each entity that the program names.
    evidence: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    # Date keys of an added domain that must lie within a stretch of time, with its end as dates are stored, excluded.
    periods: list[tuple[str, str]] = field(default_factory=list)
    hops: int = 0  # statements before, of which each goes on with the rows of another

    @property
    def c(self) -> Any:
        return self.source.c

    def nest(self) -> None:
        """Make a subquery of the rows so far, so that later steps apply to its result."""
        inner = self.select(list(self.source.c))
        self.source, self.where, self.order, self.limit, self.offset = inner.subquery(), [], [], None, 0
        self.ranked = False

    def slice(self, start: int, rows: int) -> None:
        """Keep so many rows from this one on."""
        if self.limit is not None or self.offset:
            self.nest()
        self.offset, self.limit = start, rows

    def group(self, keys: tuple[Key, ...]) -> None:
        """Put one row in place of all with the same keys, with their count, the largest first.

        Rows that none of the keys is known of are no group.
        """
        columns = [self.c[key.name] for key in keys]
        known = or_(*(column.is_not(None) for column in columns))
        count = func.count().label("count")
        inner = select(*columns, count).select_from(self.source).where(*self.where, known).group_by(*columns)
        names = tuple(key.name for key in keys)
        whole, counted = self.function, Key("count", "integer", ("len", "n"))
        self.function = Function(
            *(whole.name, whole.domain, whole.summary, (), whole.view, (*keys, counted)),
            subject=names,
            default=(*names, counted.name),
            grouped=True,
        )
        self.source, self.where, self.identity, self.limit, self.offset = inner.subquery(), [], "", None, 0
        self.order, self.ranked, self.shown = [(self.c[counted.name], True)], True, (*keys, counted)

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
