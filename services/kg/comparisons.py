"""Comparisons of a SELECT: what it keeps of its tables' rows, in words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from sqlglot import exp

from services.kg.language.catalogue import Function, Key
from services.kit.text.vocabulary import MONTH_NAMES

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Is, exp.Like, exp.Between)
# What stands between a key's words and a value in a text.
_BETWEEN: Mapping[type[exp.Expr], str] = {
    exp.NEQ: "not ",
    exp.GT: "over ",
    exp.GTE: "from ",
    exp.LT: "under ",
    exp.LTE: "up to ",
}
_PERIOD = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2]))?")
_BETWEEN_DATES = {**_BETWEEN, exp.GT: "after ", exp.LT: "before "}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column beside literals, or beside NULL."""

    node: exp.Expr
    function: Function
    key: Key
    literals: Sequence[exp.Literal]

    @property
    def texts(self) -> list[str]:
        return [str(one.this) for one in self.literals if one.is_string]

    @property
    def is_name(self) -> bool:
        """Whether the column has names of entities."""
        return bool(self.key.entity)

    @property
    def finds_names(self) -> bool:
        """Whether it keeps the rows of the names that it has."""
        return self.is_name and isinstance(self.node, exp.EQ | exp.In) and not is_negated(self.node)

    @property
    def words(self) -> str:
        """The comparison in words: `length over 20`."""
        if isinstance(self.node, exp.Is):
            return f"{'with' if is_negated(self.node) else 'without'} {self.key.words}"
        between = (_BETWEEN_DATES if self.key.kind == "date" else _BETWEEN).get(type(self.node), "")
        joining = " to " if isinstance(self.node, exp.Between) else " or "
        values = joining.join(str(one.this).strip("%").removesuffix("-") for one in self.literals)
        return f"{self.key.words} {'not ' if is_negated(self.node) else between}{values}"


def in_words(compared: Sequence[Comparison]) -> Iterator[str]:
    """Comparisons in words; a first day and the one behind the last as the month or year that they bound."""
    spans: dict[int, str] = {}
    ends: set[int] = set()
    for first, last in permutations(compared, 2):
        if first.key is last.key and (span := _span(first, last)):
            spans[id(first)] = span
            ends.add(id(last))
    for one in compared:
        if id(one) not in ends:
            yield f"{one.key.words} in {spans[id(one)]}" if id(one) in spans else one.words


def _span(first: Comparison, last: Comparison) -> str:
    """The month or year from one day on and before another one; empty where they bound no such."""
    is_pair = isinstance(first.node, exp.GTE) and isinstance(last.node, exp.LT)
    if not is_pair or first.key.kind != "date" or is_negated(first.node) or is_negated(last.node):
        return ""
    (start,), (end,) = first.texts or ("",), last.texts or ("",)
    if not (_PERIOD.fullmatch(start) and _PERIOD.fullmatch(end)):
        return ""
    year, month = int(start[:4]), int(start[5:7] or 0)
    if start[5:] and end == (f"{year}-{month + 1:02}" if month < len(MONTH_NAMES) else f"{year + 1}-01"):
        return f"{MONTH_NAMES[month - 1].title()} {year}"
    return start if not month and end == str(year + 1) else ""


def is_negated(condition: exp.Expr) -> bool:
    """Whether NOT stands before a condition, in parentheses or not."""
    around = condition.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return isinstance(around, exp.Not)


def place_of(column: exp.Column, functions: Mapping[str, Function]) -> tuple[Function, Key] | None:
    """The function and the key that a column is, of its own SELECT's tables or of one's around it.

    What a SELECT tells is of its own tables: `isbn IN (SELECT isbn FROM contract)`, of contracts without one, would be
    true of every row.
    """
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for table in tables_of(select):
            function = functions[table.name]
            if column.table in ("", table.alias_or_name) and column.name in function.exact_keys:
                return function, function.exact_keys[column.name]
        if not column.table and _is_told_by(select, column):
            return None
        select = select.find_ancestor(exp.Select)
    return None


def _is_told_by(select: exp.Select, column: exp.Column) -> bool:
    part: exp.Expr = column
    while part.parent is not None and part.parent is not select:
        part = part.parent
    return part.arg_key == "expressions"


def comparisons(tree: exp.Expr, functions: Mapping[str, Function]) -> Iterator[Comparison]:
    """The comparisons of columns with literals and with NULL."""
    for node in list(tree.find_all(*_COMPARISONS)):
        column = _bare(node.this)
        place = place_of(column, functions) if isinstance(column, exp.Column) else None
        values = node.expressions if isinstance(node, exp.In) else [node.expression]
        if isinstance(node, exp.Between):
            values = [node.args["low"], node.args["high"]]
        literals = [inner for one in values if isinstance(inner := _bare(one), exp.Literal)]
        is_null = isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)
        if place is not None and (is_null or (literals and len(literals) == len(values))):
            yield Comparison(node, *place, literals)


def _bare(value: exp.Expr) -> exp.Expr:
    """A value without what changes its case."""
    while isinstance(value, exp.Lower | exp.Upper | exp.Paren):
        value = value.this
    return value


def tables_of(select: exp.Select) -> list[exp.Table]:
    """The tables that a SELECT itself is over, without those of another one within it."""
    return [one for one in select.find_all(exp.Table) if one.find_ancestor(exp.Select) is select]
