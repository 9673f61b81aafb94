"""The time that a question says, in place of what a model reckons from today: last month is not the last 30 days."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from sqlglot import exp

from services.kg.generate.ground import says_year
from services.kg.generate.rules.question import Question
from services.kg.generate.spans import Spot
from services.kg.generate.sql.figures import DAY
from services.kit.text.times import Calendar, Window, resolve_time

# "Since last month" has another end.
_OTHERWISE = re.compile(r"\b(?:after|before|by|from|not|since|than|till|to|until|within)(?: the)?\W*$", re.IGNORECASE)
_COMPARED = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Like)
_TODAY = (exp.CurrentDate, exp.CurrentTimestamp)


def window_of(query: str, spots: Sequence[Spot], now: datetime, calendar: Calendar) -> Window | None:
    """The only time that a question says, where it is reckoned from today: last month, this year; else None."""
    times = Question(query, calendar, now, tuple(spots)).times
    if len(times) != 1 or any(map(str.isdigit, times[0].text)) or _OTHERWISE.search(query[: times[0].start]):
        return None
    window = resolve_time(times[0].text, now, calendar)
    return window if window.kind == "window" and window.start and window.end else None


def ask_of_the_window(
    select: exp.Select, query: str, window: Window, is_day: Callable[[exp.Column], bool]
) -> tuple[str, ...]:
    """Put the days of a question's window in place of those that a statement reckons for a column of days.

    Args:
        is_day: whether a column has days.

    Returns:
        the first day of the window and the first behind it, as the statement has them; empty where it reckons none.
    """
    reckoned = list(_reckoned(select, query, is_day))
    columns = {column.sql() for one in reckoned for column in one.find_all(exp.Column)}
    if len(columns) != 1 or any(one.find_ancestor(exp.Or, exp.Not) for one in reckoned):
        return ()
    days = (str(window.start), str(window.end))
    column = next(reckoned[0].find_all(exp.Column))
    first, behind = map(exp.Literal.string, days)
    within = exp.and_(exp.GTE(this=column.copy(), expression=first), exp.LT(this=column.copy(), expression=behind))
    for one in reckoned:
        one.replace(within.copy())
    return days


def _reckoned(select: exp.Select, query: str, is_day: Callable[[exp.Column], bool]) -> Iterator[exp.Expr]:
    """The comparisons of columns of days with today, or with days of years that the question does not say."""
    where = select.args.get("where")
    for one in where.find_all(*_COMPARED) if where is not None else ():
        columns = list(one.find_all(exp.Column))
        if len(columns) != 1 or not is_day(columns[0]):
            continue
        texts = [str(text.this) for text in one.find_all(exp.Literal) if text.is_string]
        days = filter(None, map(DAY.fullmatch, texts))
        if one.find(*_TODAY) or "now" in map(str.lower, texts) or any(not says_year(day[1], query) for day in days):
            yield one
