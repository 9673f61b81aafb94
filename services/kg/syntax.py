"""The text of a SELECT as a tree, in one form whoever wrote it."""

import unicodedata
from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from services.kg.days import read_differences
from services.kg.errors import ParseError

MAX_CHARS = 600
# Control characters, those that end a line, and halves of others.
_UNPRINTED = frozenset(("Cc", "Cs", "Zl", "Zp"))
# What a comparison is with its sides exchanged.
_TURNED: Mapping[type[exp.Binary], type[exp.Binary]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


def parse_select(sql: str) -> exp.Query:
    """The tree of one SELECT, or of a UNION.

    Raises:
        ParseError: the text is something else, or too long.
    """
    if len(sql) > MAX_CHARS:
        raise ParseError(f"a SELECT has at most {MAX_CHARS} characters")
    if any(unicodedata.category(one) in _UNPRINTED and one not in "\t\n\r" for one in sql):
        raise ParseError("a SELECT has no control characters")
    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError) as error:
        raise ParseError(str(error).partition("\n")[0]) from error
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Subquery):
        raise ParseError("it is no SELECT")
    _check_sides(tree)
    for select in tree.find_all(exp.Select):
        if not select.expressions:
            raise ParseError("a SELECT tells something")
        distinct = select.args.get("distinct")
        if select.args.get("qualify") or (distinct is not None and distinct.args.get("on")):
            raise ParseError("a SELECT has no QUALIFY and no DISTINCT ON")
    read_differences(tree)
    _write_alike(tree)
    return tree


def _check_sides(tree: exp.Query) -> None:
    """Take the sides of a UNION out of brackets, which SQLite does not know there.

    Raises:
        ParseError: the brackets matter.
    """
    for union in list(tree.find_all(exp.SetOperation)):
        for name in ("this", "expression"):
            side = union.args[name]
            inner = side.unnest()
            matters = any(inner.args.get(part) for part in ("order", "limit", "offset"))
            if not isinstance(inner, exp.Query) or (inner is not side and matters):
                raise ParseError("the sides of a UNION are SELECTs")
            if isinstance(inner, exp.SetOperation) and name == "expression":
                raise ParseError("what a UNION adds is one SELECT")
            union.set(name, inner)


def _write_alike(tree: exp.Query) -> None:
    """Write tables' names before columns in small letters, values behind their columns, and NOT before a LIKE."""
    for table in tree.find_all(exp.Table):
        if table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias.lower())))
    for column in tree.find_all(exp.Column):
        if column.table:
            column.set("table", exp.to_identifier(column.table.lower()))
    for node in list(tree.find_all(*_TURNED)):
        if isinstance(node.left, exp.Literal) and not isinstance(node.right, exp.Literal):
            node.replace(_TURNED[type(node)](this=node.right, expression=node.left))
    for like in [one for one in tree.find_all(exp.Like) if one.args.get("negate")]:
        like.set("negate", None)
        like.replace(exp.Not(this=like.copy()))


def columns_of(select: exp.Select) -> list[exp.Column]:
    """The columns of a SELECT, without those of another one within it."""
    return [one for one in list(select.find_all(exp.Column)) if one.find_ancestor(exp.Select) is select]


def expand_aliases(select: exp.Select) -> None:
    """Put what is computed in place of its name where a SELECT sorts or narrows its groups by it.

    What is called as a column that it is computed of has no name afterwards, so that nothing is put in its place again.
    """
    aliases = [one for one in select.expressions if isinstance(one, exp.Alias)]
    computed = {one.alias.lower(): one.this for one in aliases}
    own = {
        name
        for name, value in computed.items()
        if any(each.name.lower() == name for each in value.find_all(exp.Column))
    }
    for column in columns_of(select):
        name = column.name.lower()
        value = computed.get(name) if not column.table else None
        part = column.find_ancestor(exp.Order, exp.Having)
        if value is None or part is None or (value.find(exp.AggFunc) and column.find_ancestor(exp.AggFunc)):
            continue
        # Within an expression it is the column: ORDER BY 2 * price.
        if name not in own or isinstance(column.parent, exp.Ordered) or isinstance(part, exp.Having):
            is_part = isinstance(column.parent, exp.Binary) and not isinstance(column.parent, exp.Predicate)
            column.replace(exp.paren(value) if is_part and isinstance(value, exp.Binary) else value.copy())
    for one in aliases:
        if one.alias.lower() in own:
            one.replace(one.this)


def first_of(tree: exp.Query) -> exp.Select:
    """The SELECT, or the first of those that a UNION joins.

    Raises:
        ParseError: there is none.
    """
    while isinstance(tree, exp.SetOperation):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        raise ParseError("it is no SELECT")
    return tree
