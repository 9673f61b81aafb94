"""A statement beside its question: the numbers, days and names that both must have, and what `longest` is of days."""

import re
from collections.abc import Collection, Iterator, Sequence

from sqlglot import exp

from services.kg.generate.ground import says_year
from services.kg.generate.spans import Spot
from services.kg.store.names import normalise
from services.kit.text.numbers import numbers
from services.kit.text.vocabulary import MONTHS

_DAY = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?-?%?")
# What a statement adds to a year that is compared with.
_FIRST, _LAST = ("01", "01"), ("12", "31")
_RANGES = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_AFTER = re.compile(r"\b(?:after|later than)\b")
_LONGEST = re.compile(r"\blongest\b")
_ARTICLES = ("a", "an", "the")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


def order_longest_first(select: exp.Select, query: str, dates: Collection[str]) -> None:
    """Sort by days ascending where the question asks for the longest: who joined first has been there longest.

    Args:
        dates: columns of days, in lower case.
    """
    order = select.args.get("order")
    if order is None or not _LONGEST.search(query.lower()):
        return
    for ordered in order.expressions:
        if isinstance(ordered.this, exp.Column) and ordered.this.name.lower() in dates:
            ordered.set("desc", False)


def unsaid(select: exp.Select, query: str) -> str:
    """A number or a day of the statement's conditions that the question does not say; empty where there is none."""
    where = select.find(exp.Where)
    return next(_unsaid(where, query.lower()), "") if where is not None else ""


def _unsaid(where: exp.Where, query: str) -> Iterator[str]:
    figures = {float(one) for one in _DIGITS.findall(query.replace(",", ""))}
    figures |= {float(one.value) for one in numbers(query)}
    months = {number for name, number in MONTHS.items() if re.search(rf"\b{name}\b", query)}
    for literal in where.find_all(exp.Literal):
        day = _DAY.fullmatch(str(literal.this)) if literal.is_string else None
        if day:
            _, month, of_month = day.groups()
            year_said = says_year(day[1], query)
            day_said = month is None or int(month) in months | figures
            day_said &= of_month is None or int(of_month) in figures
            is_whole_year = year_said and _is_end_of_year(literal, (month, of_month), query)
            if not is_whole_year and not (day_said and (year_said or months)):
                yield day[0]
        elif not literal.is_string and float(literal.this) not in figures | {0.0, 1.0}:
            yield str(literal.this)


def _is_end_of_year(literal: exp.Literal, day: tuple[str, str], query: str) -> bool:
    """Whether a comparison with a day is one with its year: "since 2021" with January 1, "after 2021" not."""
    is_after = isinstance(literal.parent, exp.GT) and _AFTER.search(query) is not None
    return isinstance(literal.parent, _RANGES) and (day == _LAST or (day == _FIRST and not is_after))


def left_out(program: str, spots: Sequence[Spot]) -> str:
    """A name of the question that the program does not have; empty where it has all of them, with an article or not."""
    words = {*normalise(program).split(), *_ARTICLES}
    return next((spot.text for spot in spots if not words.issuperset(normalise(spot.text).split())), "")
