"""Arithmetic of calendar periods: weeks, months, quarters, years and seasons, and distances in them.

Rules: the current day's record is partial, so on business days an unfinished period ends before today ("this week" is
Monday to yesterday); on the period's first day it is that day. Weeks begin on the calendar's day; on business days only
their Monday to Friday count.
"""

from calendar import monthrange
from datetime import date, timedelta

from services.kit.text.times.calendar import Clock, Period
from services.kit.text.vocabulary import WEEKDAYS

FIRST_YEAR, LAST_YEAR = 1000, 2999
MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
# Bounds a loop over single days; no records are older.
MAX_BUSINESS_DAYS = 10_000


def add_months(day: date, months: int) -> date:
    """The same day some months later, or that month's last day.

    Raises:
        OverflowError: it lies outside the calendar.
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(f"year {year} is outside the calendar")
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def month_of(year: int, month: int) -> Period:
    start = date(year, month, 1)
    return Period(start, add_months(start, 1), "month")


def year_of(year: int) -> Period | None:
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    return Period(date(year, 1, 1), date(year + 1, 1, 1), "year")


def years_of(first: int, last: int) -> Period | None:
    """From one year to another, both included."""
    start, end = year_of(first), year_of(last)
    return Period(start.start, end.end, "range") if start and end and first <= last else None


def season_of(clock: Clock, year: int) -> Period:
    """The season that begins in that year."""
    start = date(year, clock.calendar.season_month, 1)
    return Period(start, add_months(start, 12), "range")


def yearless(clock: Clock, month: int, day: int = 1) -> int:
    """The year of a month, or of a day in it, without one."""

    def begins(year: int) -> date:
        return date(year, month, min(day, monthrange(year, month)[1]))

    year = clock.today.year
    if clock.calendar.nearest:
        return min((year, year - 1, year + 1), key=lambda candidate: abs(begins(candidate) - clock.today))
    return year if begins(year) <= clock.today else year - 1


def week_from(clock: Clock, begins: date) -> Period:
    """The week that begins on that day."""
    first, days = (clock.place_in_week(WEEKDAYS["monday"]), 5) if clock.business else (0, 7)
    start = begins + timedelta(days=first)
    return Period(start, start + timedelta(days=days), "week")


def unit_period(clock: Clock, unit: str, offset: int) -> Period | None:
    """The whole calendar week, month, quarter, year or decade at this offset from the current one."""
    today = clock.today
    match unit:
        case "week":
            return week_from(clock, (clock.week if offset < 0 else clock.spoken_week) + timedelta(days=7 * offset))
        case "month":
            start = add_months(today.replace(day=1), offset)
            return month_of(start.year, start.month)
        case "quarter":
            start = add_months(date(today.year, (today.month - 1) // 3 * 3 + 1, 1), 3 * offset)
            return Period(start, add_months(start, 3), "quarter")
        case "year":
            return year_of(today.year + offset)
        case "decade":
            first = (today.year // 10 + offset) * 10
            return Period(date(first, 1, 1), date(first + 10, 1, 1), "range")
    return None


def current(clock: Clock, unit: str) -> Period | None:
    """The period that today lies in; on business days up to yesterday."""
    period = unit_period(clock, unit, 0)
    if period is None or not clock.business or period.start is None:
        return period
    end = clock.today if period.start < clock.today else clock.tomorrow
    if unit == "week":
        end = min(end, period.start + timedelta(days=5))
    return Period(period.start, end, period.granularity)


def back(day: date, count: int, unit: str) -> date:
    """The day `count` units before another, or after it where the count is negative.

    Raises:
        OverflowError: it lies outside the calendar.
    """
    if unit == "business day" and count > 0:
        for _ in range(min(count, MAX_BUSINESS_DAYS)):
            day -= timedelta(days=1)
            while day.weekday() >= 5:
                day -= timedelta(days=1)
        return day
    if unit in ("day", "business day"):
        return day - timedelta(days=count)
    if unit == "week":
        return day - timedelta(days=7 * count)
    return add_months(day, -count * MONTHS_OF[unit])


def rolling(clock: Clock, count: int, unit: str) -> Period | None:
    """The last `count` units up to today."""
    if count < 1:
        return None
    start = back(clock.today, count, unit)
    if clock.business:
        return Period(start, clock.today, "range")
    return Period(start + timedelta(days=1), clock.tomorrow, "range")


def middle(period: Period, start: date, end: date) -> date | None:
    """The day that halves a period of whole months; half a month has 15 days. None for another period."""
    months = MONTHS_OF.get(period.granularity, 0)
    if not months and start.day == end.day == 1:
        months = 12 * (end.year - start.year) + end.month - start.month
    return add_months(start, months // 2) + timedelta(days=months % 2 * 15) if months else None


def span(first: Period, second: Period, clock: Clock, *, either_order: bool = True) -> Period | None:
    """From the start of one period to the end of the other, whichever is earlier, or only if it is the first."""
    if {first.kind, second.kind} & {"previous_event", "next_event"}:
        return None
    # Now is today; the first record ever leaves the span open.
    (start, end), (other_start, other_end) = (
        (clock.today, clock.tomorrow) if period.kind == "latest" else (period.start, period.end)
        for period in (first, second)
    )
    if either_order and start is not None and other_end is not None and start >= other_end:
        start, other_end = other_start, end
    if start is not None and other_end is not None and start >= other_end:
        return None
    return Period(start, other_end, "range")
