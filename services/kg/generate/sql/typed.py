"""Values of a statement as the columns beside them have theirs: flags, days, numbers, texts in any case."""

import re

from sqlglot import exp

from services.kg.comparisons import Comparison
from services.kg.errors import ParseError
from services.kg.language.catalogue import NUMERIC
from services.kg.load.errors import BadRow
from services.kg.load.values import truth
from services.kg.selects import FLAGS

_PART_OF_DATE = re.compile(r"\d{4}(?:-\d{2})?")
# Sorts behind every day of a year or month.
_AFTER_ALL = "-99"


def type_comparison(one: Comparison) -> None:
    """Write the literals of a comparison as its column has them.

    Raises:
        ParseError: they are none of its values.
    """
    kind, node = one.key.kind, one.node
    for literal in one.literals:
        text = str(literal.this)
        if kind == "flag":
            try:
                literal.replace(exp.Literal.string(FLAGS[not truth(text)]))
            except BadRow:
                raise ParseError(f"{one.key.name} has no such values") from None
        elif kind == "date":
            if _PART_OF_DATE.fullmatch(text):
                if isinstance(node, exp.EQ | exp.NEQ | exp.In):
                    node.replace(_within(one))
                    return
                if isinstance(node, exp.GT | exp.LTE) or literal is node.args.get("high"):
                    literal.replace(exp.Literal.string(text + _AFTER_ALL))
                else:
                    literal.replace(exp.Literal.string(text))
        elif kind in NUMERIC and literal.is_string and not isinstance(node, exp.Like):
            try:
                literal.replace(exp.Literal.number(str(float(text)).removesuffix(".0")))
            except ValueError:
                raise ParseError(f"{one.key.name} has no such values") from None
    # In PostgreSQL LIKE looks at case too.
    is_text = kind == "text" and isinstance(node, exp.EQ | exp.NEQ | exp.In | exp.Like)
    if is_text and all(literal.is_string for literal in one.literals):
        for value in (node.this, *one.literals):
            if not isinstance(value, exp.Lower) and not isinstance(value.parent, exp.Lower):
                value.replace(exp.Lower(this=value.copy()))


def _within(one: Comparison) -> exp.Expr:
    """That a day is of one of the years, months or days, or is not where the comparison says so."""
    texts = [str(literal.this) for literal in one.literals]
    patterns = [f"{text}-%" if _PART_OF_DATE.fullmatch(text) else text for text in texts]
    likes = [exp.Like(this=one.node.this.copy(), expression=exp.Literal.string(pattern)) for pattern in patterns]
    within = exp.paren(exp.or_(*likes)) if len(likes) > 1 else likes[0]
    return exp.Not(this=within) if isinstance(one.node, exp.NEQ) else within


def type_flag(column: exp.Column) -> None:
    """Write a flag that stands alone as what it says: 1 and 0 where it is added up, else that it is so.

    Raises:
        ParseError: something else is computed with it.
    """
    parent, is_so = column.parent, exp.EQ(this=column.copy(), expression=exp.Literal.string(FLAGS[0]))
    if isinstance(parent, exp.Sum | exp.Avg):
        is_not_so = exp.EQ(this=column.copy(), expression=exp.Literal.string(FLAGS[1]))
        one, none = exp.Literal.number(1), exp.Literal.number(0)
        column.replace(exp.case().when(is_so, one).when(is_not_so, none))
    elif isinstance(parent, exp.Where | exp.And | exp.Or | exp.Not | exp.Paren) or (
        isinstance(parent, exp.If) and column.arg_key == "this"
    ):
        column.replace(is_so)
    elif isinstance(parent, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Neg | exp.Coalesce | exp.Case | exp.Tuple):
        raise ParseError("it computes something with yes and no")
