"""The conditions of a SELECT as those of a statement in the graph's language."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from sqlglot import exp

from services.kg.generate.rules.question import quote
from services.kg.generate.sql.schema import FLAG
from services.kg.generate.sql.tables import Tables, Untranslatable, bases, joined_conditions, parameter_of
from services.kg.language.catalogue import NUMERIC, Function, Key
from services.kg.load.errors import BadRow
from services.kg.load.values import truth

# A SELECT within another one, and the functions of the domain -> its tables and its statements.
Translate = Callable[[exp.Select, Mapping[str, Function]], tuple[Tables, list[str]]]
_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "neq",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.LT: "lt",
    exp.LTE: "le",
}
_FLAGS = FLAG.split(", ")
_MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
# A month or a day of whatever year.
ANY_YEAR = re.compile(r"%?-(\d{2})-(?:(\d{2})%?|%)")
_BEGINNING_OF_DAY = re.compile(r"(\d{4}(?:-\d{2}){0,2})-?%")


@dataclass(slots=True)
class Filter:
    """The conditions of a statement in the graph's language."""

    names: dict[str, list[str]] = field(default_factory=dict)  # by parameter
    conditions: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # statements that this one goes on with
    order: tuple[Key, bool] | None = None  # of "x = (SELECT MAX(x) ...)": the key, and whether descending


def conditions_of(select: exp.Select) -> list[exp.Expr]:
    """The conditions of a SELECT that hold together."""
    where = select.args.get("where")
    return list(joined_conditions(where.this)) if where else []


def filtered(
    tables: Tables, select: exp.Select, translate: Translate, names: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Filter:
    """The rows that a SELECT keeps.

    Args:
        translate: what translates a SELECT within a condition.
        names: by parameter, those of an earlier statement.

    Raises:
        Untranslatable: no condition of the language says one of them.
    """
    rows = Filter({name: [*values] for name, values in names.items()})
    for condition in _once(tables, conditions_of(select), translate):
        _add(rows, tables, condition, translate)
    return rows


def _once(tables: Tables, conditions: Sequence[exp.Expr], translate: Translate) -> Iterator[exp.Expr]:
    """The conditions without those on columns of other tables that have the value of another condition."""
    for condition in conditions:
        others = [one for one in conditions if one is not condition and one.find(exp.Column)]
        literal = condition.expression if isinstance(condition, exp.EQ) else None
        is_text = isinstance(literal, exp.Literal) and literal.is_string and literal.name.lower() not in _FLAGS
        is_twice = is_text and any(literal == one.args.get("expression") for one in others)
        if not is_twice or resolves(tables, condition, translate):
            yield condition


def resolves(tables: Tables, condition: exp.Expr, translate: Translate) -> bool:
    """Whether a condition is one on columns of these tables."""
    try:
        _add(Filter(), tables, condition, translate)
    except Untranslatable:
        return False
    return True


def _add(rows: Filter, tables: Tables, condition: exp.Expr, translate: Translate) -> None:
    """Add one condition."""
    if isinstance(condition, exp.Or):
        key, values = _alternatives(tables, condition)
        _narrow(rows, tables, key, "in" if len(values) > 1 else "eq", values)
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
            _add_inner(rows, tables, tables.key(left), operator, right.this, translate)
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


def _alternatives(tables: Tables, condition: exp.Or) -> tuple[Key, list[str]]:
    """The column and the values of "x = 1 OR x = 2"."""
    sides = list(_sides(condition))
    if not all(isinstance(one, exp.EQ) for one in sides):
        raise Untranslatable("alternatives that are no values")
    values = list(dict.fromkeys(_value(one.expression) for one in sides))
    if len(values) == 1 and values[0].lower() not in _FLAGS:
        # The statement does not know which column has the text, and may name one of another table.
        sides = [one for one in sides if _has(tables, one.this)] or sides
    keys = [tables.key(one.this) for one in sides]
    # "Who is or reports to Ann": of several columns that have it the first is taken.
    is_one_text = len(values) == 1 and all(key.kind == "text" for key in keys)
    if len(set(keys)) > 1 and not is_one_text:
        raise Untranslatable("alternatives of two columns")
    return keys[0], values


def _sides(condition: exp.Expr) -> Iterator[exp.Expr]:
    """What an OR joins, of however many."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.Or):
        yield from _sides(condition.left)
        yield from _sides(condition.right)
    else:
        yield condition


def _has(tables: Tables, column: exp.Expr) -> bool:
    """Whether these tables have a column."""
    try:
        tables.key(column)
    except Untranslatable:
        return False
    return True


def _add_like(rows: Filter, key: Key, pattern: str) -> None:
    """Add the condition of a part of a text, or of the beginning of a day."""
    text = pattern.strip("%")
    if key.kind == "date" and (beginning := _BEGINNING_OF_DAY.fullmatch(pattern)):
        rows.conditions.append(f"eq({key.name}, {quote(beginning[1])})")
    elif key.kind == "date" and (month := ANY_YEAR.fullmatch(pattern)):
        part = quote(f"-{month[1]}-{month[2] or ''}")
        rows.conditions.append(f"like({key.name}, {part})")
    elif key.kind in NUMERIC or key.kind == "date" or not text:
        raise Untranslatable(f"{key.name} is no text")
    else:
        rows.conditions.append(f"like({key.name}, {quote(text)})")


def _add_inner(
    rows: Filter,
    tables: Tables,
    key: Key,
    operator: str,
    inner: exp.Expr,
    translate: Translate,
) -> None:
    """Add a condition on what another SELECT finds: the largest value of the column, or the name of a thing."""
    if operator != "eq" or not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        raise Untranslatable("a value that another statement computes")
    (item,) = inner.expressions
    if isinstance(item, exp.Max | exp.Min):
        if inner.args.get("where") or next(bases(inner, tables.functions)).key(item.this) != key:
            raise Untranslatable("a value that another statement computes")
        rows.order = key, isinstance(item, exp.Max)
        return
    parameter = parameter_of(tables.function, key)
    if parameter is None or rows.before:
        raise Untranslatable("a value that another statement finds")
    others, statements = translate(inner, tables.functions)
    rows.before += statements
    rows.names[parameter.name] = [f'*["{others.key(item).name}"]']


def _narrow(rows: Filter, tables: Tables, key: Key, operator: str, values: Sequence[str]) -> None:
    """Add a comparison: names become arguments of the call, which finds them as people spell them."""
    parameter = parameter_of(tables.function, key)
    if parameter is not None and operator in ("eq", "in"):
        rows.names.setdefault(parameter.name, []).extend(values)
    else:
        rows.conditions.append(f"{operator}({key.name}, {', '.join(_literal(key, one) for one in values)})")


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
