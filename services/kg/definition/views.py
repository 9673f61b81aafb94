"""SQL of a domain's files as SQLAlchemy's selectables: read once, checked, and written anew for each database.

The text is SQLite's SQL: one SELECT over the domain's own tables that does nothing but compute. The databases run the
parser's tree of it, never the text itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import sqlglot
from sqlalchemy import BigInteger, Boolean, Float, Integer, Table, Text, TextClause, TextualSelect, column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import NULLTYPE, TypeEngine
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from services.kg.definition.folder import BrokenPart

# Functions that both databases have, that only compute, and that make no text longer than its inputs.
PLAIN: tuple[type[exp.Expr], ...] = (
    *(exp.Abs, exp.And, exp.Avg, exp.Case, exp.Cast, exp.Coalesce, exp.Count, exp.Exists, exp.If, exp.Length),
    *(exp.Lower, exp.Max, exp.Min, exp.Nullif, exp.Or, exp.Round, exp.Substring, exp.Sum, exp.Trim, exp.Upper),
)
# Those that a view may call.
FUNCTIONS = (*PLAIN, exp.Ceil, exp.Concat, exp.Floor, exp.GroupConcat, exp.Replace, exp.RowNumber, exp.Xor)
_REFUSED: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Placeholder, exp.Parameter, exp.SessionParameter), "a parameter"),
    (exp.Into, "INTO"),
    (exp.Lock, "a lock"),
    (exp.Command, "a command"),
)
_OF_TYPE: Mapping[exp.DType, TypeEngine[Any]] = {
    exp.DType.TEXT: Text(),
    exp.DType.VARCHAR: Text(),
    exp.DType.INT: Integer(),
    exp.DType.BIGINT: BigInteger(),
    exp.DType.DOUBLE: Float(),
    exp.DType.FLOAT: Float(),
    exp.DType.DECIMAL: Float(),
    exp.DType.BOOLEAN: Boolean(),
}


class _Text(TextClause):
    """SQL in two dialects: SQLite's text, and PostgreSQL's on the first use."""

    inherit_cache = True
    query: exp.Query

    @cached_property
    def postgresql(self) -> TextClause:
        return TextClause(_escaped(self.query.sql("postgres", comments=False)))


@compiles(_Text, "postgresql")
def _postgresql(element: _Text, compiler: Any, **options: Any) -> str:
    return str(compiler.visit_textclause(element.postgresql, **options))


@dataclass(frozen=True)
class Sources:
    """The tables and views that a domain's SQL may select from."""

    tables: Mapping[str, Table]  # its own
    views: Mapping[str, exp.Query]  # name -> SELECT, expanded where it is named

    @cached_property
    def schema(self) -> MappingSchema:
        """The tables as the parser knows them."""
        tables: dict[str, object] = {
            name: {one.name: str(one.type) for one in table.c} for name, table in self.tables.items()
        }
        return MappingSchema(tables, dialect="sqlite")


def read_query(sql: str, sources: Sources) -> exp.Query:
    """One SELECT, or several by UNION, over those sources, with views expanded.

    Raises:
        BrokenPart: the text is anything else, which the reason names.
    """
    try:
        statements = [one for one in sqlglot.parse(sql, read="sqlite") if one is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        where = f' at "{first["highlight"]}"' if first.get("highlight") else ""
        raise BrokenPart(f"{first.get('description', error)}{where}", line=(first.get("line") or 1) - 1) from None
    except SqlglotError as error:
        raise BrokenPart(str(error).splitlines()[0]) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise BrokenPart("it must be one SELECT")
    query = statements[0]
    check(query, sources)
    named = {table.name for table in query.find_all(exp.Table)} & sources.views.keys()
    views: dict[str, exp.Query | Callable[[], exp.Query]] = {name: sources.views[name].copy() for name in named}
    return cast(exp.Query, exp.expand(query, views, dialect="sqlite", copy=False)) if views else query


def tree_of(view: TextualSelect) -> exp.Query:
    """The parser's tree of a view."""
    return cast(_Text, view.element).query.copy()


def select_of(query: exp.Query, sources: Sources, flags: Sequence[str] = ()) -> TextualSelect:
    """A query for SQLAlchemy, every column named and of a type.

    `flags` are columns of true and false that become 1 and 0, to be compared and summed alike in both databases.

    Raises:
        BrokenPart: a column is unknown, has no name, or the name of another.
    """
    try:
        qualified = qualify(query.copy(), schema=sources.schema, dialect="sqlite")
        typed = annotate_types(qualified, schema=sources.schema, dialect="sqlite")
    except OptimizeError as error:
        reason, _, place = str(error).splitlines()[0].partition(" Line: ")
        raise BrokenPart(reason, line=int(place.partition(",")[0] or 1) - 1) from None
    names = [one.alias_or_name for one in typed.selects]
    for one, name in zip(query.selects, names, strict=False):
        if not name or name.startswith("_col_"):
            raise BrokenPart(f"{one.sql('sqlite')} needs a name: AS ...", line=_line(one))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BrokenPart(f"{twice} is selected twice")
    types = {one.alias_or_name: one.type.this if one.type else None for one in typed.selects}
    if booleans := [name for name in flags if types.get(name) == exp.DType.BOOLEAN]:
        _as_numbers(typed, booleans)
        types |= dict.fromkeys(booleans, exp.DType.INT)
    text = _Text(_escaped(typed.sql("sqlite", comments=False)))
    text.query = typed
    columns = [column(name, _OF_TYPE.get(types[name], NULLTYPE)) for name in names]  # type: ignore[arg-type]
    return text.columns(*columns)


def check(query: exp.Query, sources: Sources, functions: tuple[type[exp.Expr], ...] = FUNCTIONS) -> None:
    """Refuse what is no SELECT over those sources, or calls other functions.

    Raises:
        BrokenPart: with the reason.
    """
    known = {*sources.tables, *sources.views, *(cte.alias for cte in query.find_all(exp.CTE))}
    for node in query.walk():
        for kind, words in _REFUSED:
            if isinstance(node, kind):
                raise BrokenPart(f"{words} has no place in a view", line=_line(node))
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise BrokenPart("WITH RECURSIVE has no place in a view", line=_line(node))
        if isinstance(node, exp.Table):
            if not isinstance(node.this, exp.Identifier) or node.args.get("db") or node.args.get("catalog"):
                raise BrokenPart(f"{node.sql('sqlite')} is no table of this domain", line=_line(node))
            if node.name not in known:
                there = ", ".join(sorted(known))
                raise BrokenPart(f"there is no table {node.name}; there are {there}", line=_line(node))
        elif isinstance(node, exp.Func) and not isinstance(node, functions):
            name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
            raise BrokenPart(f"{name} is not among the functions that a view may call", line=_line(node))


def _as_numbers(query: exp.Expr, names: Sequence[str]) -> None:
    for select in query.find_all(exp.Select):
        if select.parent_select is not None and not isinstance(select.parent, exp.SetOperation):
            continue
        for one in select.selects:
            if one.alias_or_name in names:
                value = one.this if isinstance(one, exp.Alias) else one
                number = exp.case().when(value.copy(), "1").when(exp.not_(value.copy()), "0")
                one.replace(exp.alias_(number, one.alias_or_name, quoted=True))


def _line(node: exp.Expr) -> int:
    return int(next((one.meta["line"] for one in node.walk() if "line" in one.meta), 1)) - 1


def _escaped(sql: str) -> str:
    """Colons of literals and casts, which SQLAlchemy would read as parameters."""
    return sql.replace(":", "\\:")
