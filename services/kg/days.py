"""Days in SQL: texts as they are stored, and the days from one to another as one expression, which each database is
told in its own words."""

from datetime import date

from sqlglot import exp

from services.kg.errors import ParseError

# Where strftime's formats stand in a day as it is stored: first character and length.
_FORMATS = {"%Y": (1, 4), "%m": (6, 2), "%d": (9, 2), "%Y-%m": (1, 7), "%m-%d": (6, 5), "%Y-%m-%d": (1, 10)}
_PARTS = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d"}
_UNITS = {exp.Year: "%Y", exp.Month: "%m", exp.Day: "%d"}
AROUND_DAYS = (exp.TsOrDsToTimestamp, exp.TsOrDsToDate, exp.Date, exp.Cast, exp.Paren)
_JULIAN_DAY = "JULIANDAY"
NOW = "now"


def read_differences(tree: exp.Expr) -> None:
    """Read `JULIANDAY(a) - JULIANDAY(b)`, as SQLite is told it, and whole days of it, as the days from b to a."""
    for node in list(tree.find_all(exp.Sub)):
        sides = [_of_julian_day(side) for side in (node.left, node.right)]
        if all(sides):
            node.replace(difference(*filter(None, sides)))
    for cast in list(tree.find_all(exp.Cast)):
        if cast.to.is_type("int") and isinstance(cast.this.unnest(), exp.DateDiff):
            cast.replace(cast.this.unnest())


def _of_julian_day(node: exp.Expr) -> exp.Expr | None:
    """The day of which it is the number; None where it is something else."""
    call = node.unnest()
    if not isinstance(call, exp.Anonymous) or call.name.upper() != _JULIAN_DAY or len(call.expressions) != 1:
        return None
    (day,) = call.expressions
    return exp.CurrentDate() if day.is_string and day.name.lower() == NOW else day


def difference(last: exp.Expr, first: exp.Expr) -> exp.DateDiff:
    """The number of days from the first to the last, as an expression."""
    return exp.DateDiff(this=last.copy(), expression=first.copy())


def words_of(node: exp.DateDiff) -> str:
    """How it is told: `number of days from reported to finished`."""
    return f"number of days from {_told(node.expression)} to {_told(node.this)}"


def _told(day: exp.Expr) -> str:
    column = day.find(exp.Column)
    return column.name.replace("_", " ") if column is not None else day.name


def write_days(tree: exp.Query, today: date) -> None:
    """Put the day itself in place of what says today, and the part of a day's text in place of strftime's.

    Raises:
        ParseError: it computes something else of a day.
    """
    day = exp.Literal.string(today.isoformat())
    for node in list(tree.find_all(exp.CurrentDate, exp.CurrentTimestamp)):
        node.replace(day.copy())
    for node in list(tree.find_all(exp.TimeToStr, exp.Extract, *_UNITS)):
        name = _PARTS.get(node.name.upper(), "") if isinstance(node, exp.Extract) else ""
        form = node.text("format") if isinstance(node, exp.TimeToStr) else _UNITS.get(type(node), name)
        value = node.expression if isinstance(node, exp.Extract) else node.this
        while isinstance(value, AROUND_DAYS):
            value = value.this
        if value.name.lower() == NOW:
            value = day
        if form not in _FORMATS or not isinstance(value, exp.Column | exp.Literal):
            raise ParseError("it computes something of a day")
        start, length = map(exp.Literal.number, _FORMATS[form])
        part = exp.Substring(this=value.copy(), start=start, length=length)
        node.replace(part if isinstance(node, exp.TimeToStr) else exp.cast(part, "INTEGER"))
    for node in list(tree.find_all(*AROUND_DAYS[:3])):
        inner = node.this
        if isinstance(inner, exp.Column):
            node.replace(inner.copy())
        elif isinstance(inner, exp.Literal) and not node.expressions:
            node.replace(day.copy() if inner.name == NOW else inner.copy())
        else:
            raise ParseError("it computes something of a day")
