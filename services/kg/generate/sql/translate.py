"""A SELECT that a model wrote as a program of the graph, strictly: tables and columns are those of the catalogue."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from services.kg.generate.rules.calls import call_of, project, sorted_call
from services.kg.generate.rules.roles import subject_of
from services.kg.generate.sql.conditions import Filter, conditions_of, filtered, resolves
from services.kg.generate.sql.schema import table_name
from services.kg.generate.sql.tables import Tables, Untranslatable, bases, parameter_of, role_of, tables_of
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key

MAX_CHARS = 600
MAX_COLUMNS = 4
# Of a row with the largest value, keys that are told beside its name and the value.
SHOWN = 2
_AGGREGATES: Mapping[type[exp.Expr], str] = {exp.Sum: "SUM", exp.Avg: "AVG", exp.Max: "MAX", exp.Min: "MIN"}
# What a SELECT may consist of.
_CLAUSES = frozenset(("expressions", "from_", "joins", "where", "group", "order", "limit", "distinct"))


def parse_selects(sql: str) -> list[exp.Select]:
    """The trees of a SELECT, or of the sides of a UNION.

    Raises:
        Untranslatable: the text is something else, or too long.
    """
    if len(sql) > MAX_CHARS:
        raise Untranslatable("it is too long")
    try:
        statement = sqlglot.parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError) as error:
        raise Untranslatable(str(error).partition("\n")[0]) from error
    sides = [statement.left, statement.right] if type(statement) is exp.Union else [statement]
    selects = [one for one in sides if isinstance(one, exp.Select)]
    if len(selects) < len(sides):
        raise Untranslatable("it is no SELECT")
    return selects


def translate(select: exp.Select, catalogue: Catalogue, domain: str) -> str:
    """The program of a SELECT over one of the domain's functions, or over several that one function has joined.

    Raises:
        Untranslatable: it names what the domain does not have, or no program says the same.
    """
    functions = {table_name(one): one for one in catalogue.domains[domain].shown}
    return "\n".join(_over_tables(select, functions)[1])


def _over_tables(select: exp.Select, functions: Mapping[str, Function]) -> tuple[Tables, list[str]]:
    """The tables that a SELECT is over and its statements, those first that it goes on with."""
    if unknown := {name for name, value in select.args.items() if value} - _CLAUSES:
        raise Untranslatable(f"it has {', '.join(sorted(unknown))}")
    faults: list[str] = []
    for tables in bases(select, functions):
        try:
            return tables, _statements(tables, select)
        except Untranslatable as error:
            faults.append(str(error))
    for first, then in _chains(select, functions):
        try:
            return then, _chained(first, then, select)
        except Untranslatable as error:
            faults.append(str(error))
    raise Untranslatable(faults[0] if faults else "there is no such table")


def _chains(select: exp.Select, functions: Mapping[str, Function]) -> Iterator[tuple[Tables, Tables]]:
    """Pairs of tables one of which has names of the other's things, either way round, the first one named first."""
    named = [functions[one.name.lower()] for one in tables_of(select)]
    pairs = [
        (one, other)
        for one in functions.values()
        for other in functions.values()
        if one is not other and (role_of(one, other) or role_of(other, one)) and (one in named or other in named)
    ]
    yield from ((Tables(one, functions), Tables(other, functions)) for one, other in pairs)


def _chained(first: Tables, then: Tables, select: exp.Select) -> list[str]:
    """Two statements: what a table's rows of some conditions name, and what another one says of these.

    The keg price of the beer in order 5015 is that of what orders say of it.
    """
    conditions = conditions_of(select)
    inner = [one for one in conditions if not resolves(then, one, _over_tables)]
    role, target = _link(first.function, then.function)
    parameter = parameter_of(then.function, target) if target is not None else None
    if not inner or parameter is None or any(one.find(exp.Subquery) for one in conditions):
        raise Untranslatable("two tables that nothing joins")
    names = exp.Select(expressions=[exp.column(role.name)], where=exp.Where(this=exp.and_(*inner)))
    outer = select.copy()
    rest = [one for one in conditions if one not in inner]
    outer.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    outer.set("joins", None)
    chain = {parameter.name: [f'*["{role.name}"]']}
    return [*_statements(first, names), *_statements(then, outer, chain)]


def _link(first: Function, then: Function) -> tuple[Key, Key | None]:
    """The keys of two functions that have the same names, one of them that of its rows; None where there is none."""
    if role := role_of(first, then):
        return role, subject_of(then)
    return subject_of(first), role_of(then, first)


def _statements(
    tables: Tables, select: exp.Select, names: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> list[str]:
    """The statements over one table; `names` by parameter are those of an earlier one."""
    function = tables.function
    rows = filtered(tables, select, _over_tables, names)
    limit = _limit(select)
    items = [one.this if isinstance(one, exp.Alias) else one for one in select.expressions]
    if select.args.get("group"):
        return [*rows.before, _grouped(tables, rows, select, items, limit)]
    order = rows.order or _order(tables, select)
    if rows.order:
        limit = 1
    counts = [one for one in items if isinstance(one, exp.Count)]
    aggregates = [one for one in items if type(one) in _AGGREGATES]
    if counts or (aggregates and not isinstance(aggregates[0], exp.Max | exp.Min)):
        if len(items) > 1:
            raise Untranslatable("an aggregate beside others")
        return [*rows.before, _aggregated(tables, rows, items[0])]
    plain = [one for one in items if one not in aggregates and not isinstance(one, exp.Star)]
    columns = [tables.key(one).name for one in plain]
    if aggregates:
        # The largest weight is told with what weighs so much.
        order, limit = (tables.key(aggregates[0].this), isinstance(aggregates[0], exp.Max)), 1
        columns = [*function.subject[:1], *function.default[:SHOWN], order[0].name]
    if order is None:
        call = call_of(function, rows.names, rows.conditions)
    else:
        key, descending = order
        call = sorted_call(function, rows.names, rows.conditions, key.name, descending=descending)
        columns = columns if columns not in ([], [key.name]) else [*function.subject[:1], key.name]
    tail = f"[:{limit}]" if limit else ""
    return [*rows.before, f"{call}{project(list(dict.fromkeys(columns))[:MAX_COLUMNS])}{tail}"]


def _limit(select: exp.Select) -> int | None:
    limit = select.args.get("limit")
    if limit is None:
        return None
    if not isinstance(limit.expression, exp.Literal) or not limit.expression.this.isdigit():
        raise Untranslatable("a limit that is no number")
    return int(limit.expression.this)


def _order(tables: Tables, select: exp.Select) -> tuple[Key, bool] | None:
    """The first key that rows are sorted by, and whether descending."""
    ordered = order.expressions[0] if (order := select.args.get("order")) else None
    return None if ordered is None else (tables.key(ordered.this), bool(ordered.args.get("desc")))


def _grouped(tables: Tables, rows: Filter, select: exp.Select, items: Sequence[exp.Expr], limit: int | None) -> str:
    """The values that most rows have, each with the number of its rows."""
    columns = select.args["group"].expressions
    ordered = select.args["order"].expressions[0] if select.args.get("order") else None
    others = [one for one in items if not isinstance(one, exp.Column | exp.Count)]
    counted = ordered is None or (isinstance(ordered.this, exp.Count) and ordered.args.get("desc"))
    if len(columns) != 1 or others or not counted:
        raise Untranslatable("groups that are not counted, the largest first")
    tail = f"[:{limit}]" if limit else ""
    return f"{call_of(tables.function, rows.names, rows.conditions)} group({tables.key(columns[0]).name}){tail}"


def _aggregated(tables: Tables, rows: Filter, item: exp.Expr) -> str:
    call = call_of(tables.function, rows.names, rows.conditions)
    if isinstance(item, exp.Count):
        parameter = parameter_of(tables.function, subject_of(tables.function))
        if parameter is not None and parameter.name in rows.names:
            raise Untranslatable("a count of what is named")
        counted = item.this.expressions[0] if isinstance(item.this, exp.Distinct) else None
        if counted is None or (key := tables.key(counted)).name in tables.function.subject:
            return f"LEN {call}"
        return f"LEN {call} group({key.name})"
    key = tables.key(item.this)
    if key.kind not in NUMERIC:
        raise Untranslatable(f"{key.name} is no number")
    return f"{_AGGREGATES[type(item)]} {call}{project([key.name])}"
