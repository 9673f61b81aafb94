"""A SELECT that a model wrote as a program of the graph, strictly: tables and columns are those of the catalogue."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from services.kg.generate.rules.calls import call_of, project, sorted_call
from services.kg.generate.rules.question import quote
from services.kg.generate.rules.roles import subject_of
from services.kg.generate.sql.schema import table_name
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key, Parameter
from services.kg.load.errors import BadRow
from services.kg.load.values import truth

MAX_CHARS = 600
MAX_COLUMNS = 4
# Of a row with the largest value, keys that are told beside its name and the value.
SHOWN = 2
_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "neq",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.LT: "lt",
    exp.LTE: "le",
}
_MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
_AGGREGATES: Mapping[type[exp.Expr], str] = {exp.Sum: "SUM", exp.Avg: "AVG", exp.Max: "MAX", exp.Min: "MIN"}
# What a SELECT may consist of.
_CLAUSES = frozenset(("expressions", "from_", "joins", "where", "group", "order", "limit", "distinct"))
# What may stand around a column and changes nothing here: the year of a day is compared as the day's beginning.
_AROUND = (exp.Lower, exp.Upper, exp.Date, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeToStr, exp.Year, exp.Paren)
_BEGINNING_OF_DAY = re.compile(r"(\d{4}(?:-\d{2}){0,2})-?%")


class Untranslatable(ValueError):
    """The text is no SELECT, names what the domain does not have, or no program says the same."""


def parse_select(sql: str) -> exp.Select:
    """The tree of a SELECT.

    Raises:
        Untranslatable: the text is something else, or too long.
    """
    if len(sql) > MAX_CHARS:
        raise Untranslatable("it is too long")
    try:
        statement = sqlglot.parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError) as error:
        raise Untranslatable(str(error).partition("\n")[0]) from error
    if not isinstance(statement, exp.Select):
        raise Untranslatable("it is no SELECT")
    return statement


def translate(select: exp.Select, catalogue: Catalogue, domain: str) -> str:
    """The program of a SELECT over one of the domain's functions, or over several that one function has joined.

    Raises:
        Untranslatable: it names what the domain does not have, or no program says the same.
    """
    functions = {table_name(one): one for one in catalogue.domains[domain].shown}
    return "\n".join(_over_tables(select, functions)[1])


@dataclass(frozen=True, slots=True)
class _Tables:
    """The function that a SELECT is over, and the tables that it joins, whose columns the function has as well."""

    function: Function
    joined: Mapping[str, Function] = field(default_factory=dict)  # by the names that the statement has for them

    def key(self, column: exp.Expr) -> Key:
        """The key of a column, whatever stands around it."""
        while isinstance(column, _AROUND):
            column = column.this
        if not isinstance(column, exp.Column):
            raise Untranslatable(f"{column.sql()} is no column")
        other = self.joined.get(column.table.lower())
        name = column.name.lower()
        for one in self._names(name, other or self.function):
            if (key := self.function.exact_keys.get(one)) is not None:
                return key
        # The model of a driver is that of the van, where a driver has nothing else with one.
        ending = [key for key in self.function.keys if key.name.endswith(f"_{name}")]
        if len(ending) != 1:
            raise Untranslatable(f"{self.function.name} has no column {column.sql()}")
        return ending[0]

    def _names(self, name: str, table: Function) -> Iterator[str]:
        """What the function may call a column of a table; of another one where that table has no such column."""
        others = [table] if name in table.exact_keys else [self.function, *self.joined.values()]
        for other in others:
            if other is self.function:
                yield name
            else:
                yield from self._names_here(other, name)

    def _names_here(self, other: Function, name: str) -> Iterator[str]:
        """What the function calls a column of a table that it joins: `van_fuel`, the fuel of its van."""
        subject = subject_of(other)
        for key in self.function.keys:
            if key.entity and key.entity == subject.entity:
                yield key.name if name == subject.name else f"{key.name}_{name}"


@dataclass(slots=True)
class _Filter:
    """The conditions of a statement in the graph's language."""

    names: dict[str, list[str]] = field(default_factory=dict)  # by parameter
    conditions: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # statements that this one goes on with
    order: tuple[Key, bool] | None = None  # of "x = (SELECT MAX(x) ...)": the key, and whether descending


def _over_tables(select: exp.Select, functions: Mapping[str, Function]) -> tuple[_Tables, list[str]]:
    """The tables that a SELECT is over and its statements, those first that it goes on with."""
    if unknown := {name for name, value in select.args.items() if value} - _CLAUSES:
        raise Untranslatable(f"it has {', '.join(sorted(unknown))}")
    faults: list[str] = []
    for tables in _bases(select, functions):
        try:
            return tables, _statements(tables, select, functions)
        except Untranslatable as error:
            faults.append(str(error))
    raise Untranslatable(faults[0] if faults else "there is no such table")


def _bases(select: exp.Select, functions: Mapping[str, Function]) -> Iterator[_Tables]:
    """Each table of a SELECT as the one that has the columns of the others."""
    tables = [one for one in select.find_all(exp.Table) if one.find_ancestor(exp.Select) is select]
    joined: dict[str, Function] = {}
    for table in tables:
        function = functions.get(table.name.lower())
        if function is None:
            raise Untranslatable(f"there is no table {table.name}")
        joined[table.alias_or_name.lower()] = function
    if not joined or not all(map(_is_by_columns, select.args.get("joins") or ())):
        raise Untranslatable("it is not over tables alone")
    for function in dict.fromkeys(joined.values()):
        yield _Tables(function, joined)
    if not any(isinstance(one, exp.AggFunc) for one in select.expressions):
        # "The fuel of the van whose driver is Ann": drivers have both.
        for function in functions.values():
            if function not in joined.values():
                yield _Tables(function)


def _is_by_columns(join: exp.Join) -> bool:
    """Whether two tables are joined by equal columns and by nothing else."""
    on = join.args.get("on")
    conditions = list(_joined_conditions(on)) if on is not None else []
    return bool(conditions) and all(
        isinstance(one, exp.EQ) and isinstance(one.left, exp.Column) and isinstance(one.right, exp.Column)
        for one in conditions
    )


def _statements(tables: _Tables, select: exp.Select, functions: Mapping[str, Function]) -> list[str]:
    function = tables.function
    rows = _Filter()
    if where := select.args.get("where"):
        for condition in _joined_conditions(where.this):
            _add(rows, tables, condition, functions)
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


def _order(tables: _Tables, select: exp.Select) -> tuple[Key, bool] | None:
    """The first key that rows are sorted by, and whether descending."""
    ordered = order.expressions[0] if (order := select.args.get("order")) else None
    return None if ordered is None else (tables.key(ordered.this), bool(ordered.args.get("desc")))


def _grouped(tables: _Tables, rows: _Filter, select: exp.Select, items: Sequence[exp.Expr], limit: int | None) -> str:
    """The values that most rows have, each with the number of its rows."""
    columns = select.args["group"].expressions
    ordered = select.args["order"].expressions[0] if select.args.get("order") else None
    others = [one for one in items if not isinstance(one, exp.Column | exp.Count)]
    counted = ordered is None or (isinstance(ordered.this, exp.Count) and ordered.args.get("desc"))
    if len(columns) != 1 or others or not counted:
        raise Untranslatable("groups that are not counted, the largest first")
    tail = f"[:{limit}]" if limit else ""
    return f"{call_of(tables.function, rows.names, rows.conditions)} group({tables.key(columns[0]).name}){tail}"


def _aggregated(tables: _Tables, rows: _Filter, item: exp.Expr) -> str:
    call = call_of(tables.function, rows.names, rows.conditions)
    if isinstance(item, exp.Count):
        parameter = _parameter(tables.function, subject_of(tables.function))
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


def _joined_conditions(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that hold together."""
    if isinstance(condition, exp.Paren):
        yield from _joined_conditions(condition.this)
    elif isinstance(condition, exp.And):
        yield from _joined_conditions(condition.left)
        yield from _joined_conditions(condition.right)
    else:
        yield condition


def _add(rows: _Filter, tables: _Tables, condition: exp.Expr, functions: Mapping[str, Function]) -> None:
    """Add one condition."""
    if isinstance(condition, exp.Or):
        key, values = _alternatives(tables, condition)
        _narrow(rows, tables, key, "in", values)
    elif isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is):
        rows.conditions.append(f"notnull({tables.key(condition.this.this).name})")
    elif isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
        rows.conditions.append(f"isnull({tables.key(condition.this).name})")
    elif isinstance(condition, exp.Like):
        _add_like(rows, tables.key(condition.this), _value(condition.expression))
    elif isinstance(condition, exp.In) and condition.expressions:
        _narrow(rows, tables, tables.key(condition.this), "in", [_value(one) for one in condition.expressions])
    elif isinstance(condition, exp.Between):
        key = tables.key(condition.this)
        for operator, side in (("ge", "low"), ("le", "high")):
            _narrow(rows, tables, key, operator, [_value(condition.args[side])])
    elif isinstance(condition, exp.Binary) and type(condition) in _OPERATORS:
        operator, left, right = _OPERATORS[type(condition)], condition.left, condition.right
        if isinstance(left, exp.Literal):
            operator, left, right = _MIRRORED.get(operator, operator), right, left
        if isinstance(right, exp.Subquery):
            _add_inner(rows, tables, tables.key(left), operator, right.this, functions)
        elif isinstance(right, exp.Column) and right.table:
            raise Untranslatable("two columns")
        else:
            _narrow(rows, tables, tables.key(left), operator, [_value(right)])
    elif isinstance(condition, exp.Column | exp.Not):
        # A flag by itself.
        negated = isinstance(condition, exp.Not)
        key = tables.key(condition.this if negated else condition)
        if key.kind != "flag":
            raise Untranslatable(f"{key.name} is no flag")
        _narrow(rows, tables, key, "eq", ["no" if negated else "yes"])
    else:
        raise Untranslatable(f"the condition {condition.sql()}")


def _alternatives(tables: _Tables, condition: exp.Or) -> tuple[Key, list[str]]:
    """The column and the values of "x = 1 OR x = 2"."""
    sides = [one.this if isinstance(one, exp.Paren) else one for one in (condition.left, condition.right)]
    keys: list[Key] = []
    values: list[str] = []
    for side in sides:
        if isinstance(side, exp.Or):
            key, some = _alternatives(tables, side)
        elif isinstance(side, exp.EQ):
            key, some = tables.key(side.left), [_value(side.right)]
        else:
            raise Untranslatable("alternatives that are no values")
        keys.append(key)
        values += some
    if keys[0] != keys[1]:
        raise Untranslatable("alternatives of two columns")
    return keys[0], values


def _add_like(rows: _Filter, key: Key, pattern: str) -> None:
    """Add the condition of a part of a text, or of the beginning of a day."""
    text = pattern.strip("%")
    if key.kind == "date" and (beginning := _BEGINNING_OF_DAY.fullmatch(pattern)):
        rows.conditions.append(f"eq({key.name}, {quote(beginning[1])})")
    elif key.kind in NUMERIC or key.kind == "date" or not text:
        raise Untranslatable(f"{key.name} is no text")
    else:
        rows.conditions.append(f"like({key.name}, {quote(text)})")


def _add_inner(
    rows: _Filter,
    tables: _Tables,
    key: Key,
    operator: str,
    inner: exp.Expr,
    functions: Mapping[str, Function],
) -> None:
    """Add a condition on what another SELECT finds: the largest value of the column, or the name of a thing."""
    if operator != "eq" or not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        raise Untranslatable("a value that another statement computes")
    (item,) = inner.expressions
    if isinstance(item, exp.Max | exp.Min):
        if inner.args.get("where") or next(_bases(inner, functions)).key(item.this) != key:
            raise Untranslatable("a value that another statement computes")
        rows.order = key, isinstance(item, exp.Max)
        return
    parameter = _parameter(tables.function, key)
    if parameter is None or rows.before:
        raise Untranslatable("a value that another statement finds")
    others, statements = _over_tables(inner, functions)
    rows.before += statements
    rows.names[parameter.name] = [f'*["{others.key(item).name}"]']


def _narrow(rows: _Filter, tables: _Tables, key: Key, operator: str, values: Sequence[str]) -> None:
    """Add a comparison: names become arguments of the call, which finds them as people spell them."""
    parameter = _parameter(tables.function, key)
    if parameter is not None and operator in ("eq", "in"):
        rows.names.setdefault(parameter.name, []).extend(values)
    else:
        rows.conditions.append(f"{operator}({key.name}, {', '.join(_literal(key, one) for one in values)})")


def _parameter(function: Function, key: Key) -> Parameter | None:
    """The parameter that takes the names of a key; None where its values are no names."""
    parameters = (one for one in function.parameters if one.kind == "entity" and one.column == key.id_column)
    return next(parameters, None) if key.entity else None


def _value(value: exp.Expr) -> str:
    """A literal as a text."""
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.this}"
    if isinstance(value, exp.Boolean):
        return str(value.this).lower()
    while isinstance(value, exp.Lower | exp.Upper | exp.Paren):
        value = value.this
    if not isinstance(value, exp.Literal):
        raise Untranslatable(f"{value.sql()} is no value")
    return str(value.this)


def _literal(key: Key, value: str) -> str:
    """A value as the key's kind has it."""
    if key.kind not in NUMERIC:
        return quote(value)
    try:
        if key.kind == "flag":
            return str(truth(value)).lower()
        number = float(value)
    except (BadRow, ValueError):
        raise Untranslatable(f"{key.name} has no such values") from None
    return str(int(number)) if number.is_integer() else str(number)
