"""Numbers and days of a statement that its question must say."""

import re
from collections.abc import Collection, Iterator
from datetime import date, timedelta

from sqlglot import exp

from services.kg.generate.ground import says_year
from services.kit.text import quantities
from services.kit.text.numbers import numbers, ordinals
from services.kit.text.vocabulary import MONTH, MONTHS, UNITS

DAY = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?-?%?")
# A month or a day of whatever year.
ANY_YEAR = re.compile(r"%?-(\d{2})-(?:(\d{2})%?|%)")
# What a statement adds to a year that is compared with.
_FIRST, _LAST = ("01", "01"), ("12", "31")
RANGES = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_AFTER = re.compile(r"\b(?:after|later than)\b")
_END = re.compile(r"\bend of\b")
_OF_MONTH = re.compile(rf" (?:day )?of (?:{MONTH})\b")
_MONTH_BEFORE = re.compile(rf"\b(?:{MONTH}) (?:the )?$")
_OFTEN = {"once": 1, "twice": 2, "thrice": 3}
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


def numbers_of(query: str) -> set[float]:
    """The numbers that a question says, in digits or words; of ordinals in words those of days, the first of May."""
    text = query.lower()
    digits = {float(one) for one in _DIGITS.findall(text.replace(",", ""))}
    days = {
        float(rank)
        for start, end, rank in ordinals(text)
        if _OF_MONTH.match(text, end) or _MONTH_BEFORE.search(text[:start])
    }
    often = {float(number) for word, number in _OFTEN.items() if re.search(rf"\b{word}\b", text)}
    return digits | {float(one.value) for one in numbers(text)} | days | often


def months_of(query: str) -> set[int]:
    """The months that a question names."""
    return {number for name, number in MONTHS.items() if re.search(rf"\b{name}\b", query.lower())}


def unsaid(select: exp.Select, query: str, days: Collection[str] = ()) -> str:
    """A number or a day of the statement's conditions that the question does not say; empty where there is none.

    Args:
        days: that it says in other words.
    """
    return next((one for one in _unsaid(select, query.lower()) if one not in days), "")


def _unsaid(select: exp.Select, query: str) -> Iterator[str]:
    figures, months = numbers_of(query) | set(_in_other_units(query)), months_of(query)
    # Of groups "more than one" is two or more; both, and again, are two.
    of_groups = figures | {2.0, *(figure + 1 for figure in figures)}
    for literal in select.find_all(exp.Literal):
        is_of_rows = literal.find_ancestor(exp.Where, exp.Join) is not None
        if not is_of_rows and literal.find_ancestor(exp.Having) is None:
            continue
        said = figures if is_of_rows else of_groups
        if literal.is_string and (of_year := ANY_YEAR.fullmatch(str(literal.this))):
            if int(of_year[1]) not in months | said or (of_year[2] and int(of_year[2]) not in said):
                yield of_year[0]
            continue
        day = DAY.fullmatch(str(literal.this)) if literal.is_string else None
        if day:
            _, month, of_month = day.groups()
            year_said = says_year(day[1], query)
            day_said = month is None or int(month) in months | said
            day_said &= of_month is None or int(of_month) in said or _is_end_of_month(literal, day[0], query)
            is_whole_year = year_said and _is_end_of_year(literal, (month, of_month), query)
            if not is_whole_year and not (day_said and (year_said or months)):
                yield day[0]
        elif not literal.is_string and float(literal.this) not in said | {0.0, 1.0}:
            yield str(literal.this)


def _in_other_units(query: str) -> Iterator[float]:
    """The quantities of a question in all units of their dimensions: two hours are 120 minutes."""
    for one in quantities.find(query):
        factors = {factor for dimension, factor in UNITS.values() if dimension == one.dimension}
        yield from (round(float(one.value * one.factor / factor), 6) for factor in factors)


def _is_end_of_year(literal: exp.Literal, day: tuple[str, str], query: str) -> bool:
    """Whether a comparison with a day is one with its year: "since 2021" with January 1, "after 2021" not."""
    is_after = isinstance(literal.parent, exp.GT) and _AFTER.search(query) is not None
    return isinstance(literal.parent, RANGES) and (day == _LAST or (day == _FIRST and not is_after))


def _is_end_of_month(literal: exp.Literal, day: str, query: str) -> bool:
    """Whether a comparison with a day is one with its month: "since May" with the first, "by May" with the last."""
    try:
        when = date.fromisoformat(day)
    except ValueError:
        return False
    is_last, parent = (when + timedelta(days=1)).day == 1, literal.parent
    if isinstance(parent, exp.Between):
        return is_last if parent.args["high"] is literal else when.day == 1
    if isinstance(parent, exp.GT):
        return is_last or (when.day == 1 and not _AFTER.search(query))
    if isinstance(parent, exp.LT):
        return when.day == 1 or (is_last and _END.search(query) is not None)
    return (isinstance(parent, exp.GTE) and when.day == 1) or (isinstance(parent, exp.LTE) and is_last)
