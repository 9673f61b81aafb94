"""The rules of phrases of time, one a form, tried in the order of this file.

"last month" and "past month" are the calendar month before; "past 3 months" and "past year" end at the query day. A
month or day without a year is the most recent one that has begun, or the nearest, as the calendar has it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta

from services.kit.text.dates import date_of
from services.kit.text.times import periods
from services.kit.text.times.calendar import Clock, Period
from services.kit.text.times.patterns import COUNT, LAST, NEXT, NTH, OF, OPEN, THIS, UNIT, WHICH, count_of, rank_of
from services.kit.text.times.periods import FIRST_YEAR, LAST_YEAR
from services.kit.text.vocabulary import DAYS, EVER, LATEST, MONTH, MONTHS, ORDINAL_ENDING, WEEKDAY, WEEKDAYS

_UNITS = "week|month|quarter|year|decade"
_PERIOD = rf"(?P<unit>{_UNITS})"
_WEEKDAY = rf"(?P<weekday>{WEEKDAY})s?"
_MONTH = rf"(?P<month>{MONTH})"
_YEAR = r"(?P<year>\d{4})"
_DAY = rf"(?P<day>\d{{1,2}}){ORDINAL_ENDING}?"

Parts = dict[str, str]
Rule = Callable[[Parts, Clock], Period | None]
_RULES: list[tuple[re.Pattern[str], Rule]] = []


def _rule(*patterns: str) -> Callable[[Rule], Rule]:
    """Register a rule for the phrases that match one of the patterns."""

    def register(rule: Rule) -> Rule:
        _RULES.extend((re.compile(pattern), rule) for pattern in patterns)
        return rule

    return register


def period_of(text: str, clock: Clock) -> Period | None:
    """The period that a normalised phrase names; None when no rule reads it.

    Raises:
        ValueError: it names a date that no calendar has.
        OverflowError: it lies outside the calendar.
    """
    if text not in clock.memory:
        clock.memory[text] = _read(_with_year(text, clock), clock)
    return clock.memory[text]


def _read(text: str, clock: Clock) -> Period | None:
    if text in DAYS:
        offset = DAYS[text]
        return clock.day(clock.today + timedelta(days=offset), "previous" if offset <= 0 else "none")
    if text in LATEST:
        return clock.up_to_now("instant", "latest", clock.snap("previous"))
    if text in EVER:
        return clock.up_to_now()
    if text in clock.calendar.first_days:
        return clock.up_to_now("day", "first")
    for pattern, rule in _RULES:
        match = pattern.fullmatch(text)
        if match and (period := rule({key: value or "" for key, value in match.groupdict().items()}, clock)):
            return period
    return None


def _with_year(text: str, clock: Clock) -> str:
    """The phrase, with the number of a year in place of a "last year" at its end: "q4 last year" is "q4 2023"."""
    match = re.fullmatch(rf"(?P<head>.*\S) (?:(?:of|in|from) )?(?:{WHICH}|(?<=of )|(?<=in ))(?: )?year", text)
    if not match:
        return text
    head = re.sub(r" (?:of|in|from)$", "", match["head"])
    if re.fullmatch(
        rf"(?:{LAST}|{NEXT}|since|before|until|after|from|by|through|so|so far|earlier|later|half|end|start)?", head
    ):
        return text
    return f"{head} {clock.today.year + _offset(match.groupdict())}"


def _offset(parts: Mapping[str, str | None]) -> int:
    """Offset of the unit that `WHICH` names from the current one."""
    return -1 if parts["last"] else 1 if parts["next"] else 0


def _inner(parts: Parts, clock: Clock) -> tuple[Period, date, date] | None:
    """The period inside a phrase, such as "last month" in "first day of last month", with its start and its end."""
    period = period_of(parts["period"], clock)
    if period is None or period.kind != "window" or period.start is None or period.end is None:
        return None
    return period, period.start, period.end


@_rule(rf"(?:{LAST}|(?P<next>{NEXT})) (?P<event>.+)")
def _event(parts: Parts, clock: Clock) -> Period | None:
    if parts["event"] not in clock.calendar.events:
        return None
    if parts["next"]:
        return Period(clock.today, None, "instant", "next_event")
    return clock.up_to_now("instant", "previous_event")


@_rule(rf"(?:(?:{LAST} )?(?:full |complete )?|(?P<next>{NEXT}) )business day")
def _business_day(parts: Parts, clock: Clock) -> Period:
    if parts["next"]:
        return clock.day(clock.tomorrow, "next")
    return clock.day(clock.today - timedelta(days=1))


@_rule(rf"{_WEEKDAY} {OF}{WHICH} week", rf"{WHICH} week {OF}(?:on )?{_WEEKDAY}")
def _weekday_of_week(parts: Parts, clock: Clock) -> Period:
    weeks = _offset(parts)
    begins = clock.week if weeks < 0 else clock.spoken_week
    place = clock.place_in_week(WEEKDAYS[parts["weekday"]])
    return clock.day(begins + timedelta(days=7 * weeks + place), "next")


@_rule(rf"(?:(?P<which>last|previous|prior|preceding|this|{NEXT}|{LAST}) )?{_WEEKDAY}")
def _weekday(parts: Parts, clock: Clock) -> Period:
    """Bare or recent: the last one before today. "last" and "previous": the one of the week before."""
    weekday, which, today = WEEKDAYS[parts["weekday"]], parts["which"], clock.today
    before = today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    # The Monday of the working week: on a Sunday people speak of the coming one as this.
    monday = today + timedelta(days=1) if today.weekday() == 6 else today - timedelta(days=today.weekday())
    if which in ("last", "previous", "prior", "preceding"):
        day = monday + timedelta(days=weekday - 7)
        return clock.day(day if day < today else day - timedelta(days=7), "next")
    day = before
    if which == "this" and (weekday == today.weekday() or not clock.business):
        day = today if weekday == today.weekday() else monday + timedelta(days=weekday)
    elif re.fullmatch(NEXT, which):
        day += timedelta(days=14 if weekday == today.weekday() else 7)
    return clock.day(day, "next")


@_rule(rf"(?:(?P<last>{LAST}) |this |(?P<next>{NEXT}) )?weekend")
def _weekend(parts: Parts, clock: Clock) -> Period:
    # On a Sunday that which began the day before.
    saturday = clock.today + timedelta(days=WEEKDAYS["saturday"] - clock.today.weekday())
    start = saturday + timedelta(days=7 * _offset(parts))
    return Period(start, start + timedelta(days=2), "range")


@_rule(rf"(?:{THIS} )?{_PERIOD}")
def _this_unit(parts: Parts, clock: Clock) -> Period | None:
    return periods.current(clock, parts["unit"])


@_rule(
    r"(?P<period>.+) so far",
    rf"so far {OF}(?P<period>.+)",
    rf"(?:{THIS} )?(?P<period>{_UNITS}) to date",
    r"(?P<letter>[wmqy])td",
)
def _so_far(parts: Parts, clock: Clock) -> Period | None:
    """The days of a period until today."""
    letters = {"w": "week", "m": "month", "q": "quarter", "y": "year"}
    inner = _inner(parts if parts.get("period") else {"period": letters[parts["letter"]]}, clock)
    if inner is None:
        return None
    period, start, end = inner
    return replace(period, end=min(end, clock.tomorrow)) if start <= clock.today else None


@_rule(rf"(?:(?P<which>{LAST}) (?:calendar |full )?|{NEXT} ){_PERIOD}")
def _other_unit(parts: Parts, clock: Clock) -> Period | None:
    if not parts["which"]:
        return periods.unit_period(clock, parts["unit"], 1)
    if parts["unit"] in ("year", "decade") and parts["which"] in ("past", "this past"):
        return periods.rolling(clock, 1, parts["unit"])
    return periods.unit_period(clock, parts["unit"], -1)


@_rule(rf"(?:(?:{LAST}|trailing|final) )?{COUNT} {UNIT}")
def _past_units(parts: Parts, clock: Clock) -> Period | None:
    return periods.rolling(clock, count_of(parts["count"]), parts["unit"])


@_rule(rf"{NEXT} {COUNT} {UNIT}")
def _next_units(parts: Parts, clock: Clock) -> Period | None:
    count = count_of(parts["count"])
    return Period(clock.today, periods.back(clock.today, -count, parts["unit"]), "range") if count else None


@_rule(rf"{COUNT} {UNIT} (?:ago|back|earlier|before)")
def _units_ago(parts: Parts, clock: Clock) -> Period | None:
    """The day that long ago; without business days the week, month or year that it lies in."""
    count, unit = count_of(parts["count"]), parts["unit"]
    if clock.business or unit in ("day", "business day"):
        return clock.day(periods.back(clock.today, count, unit))
    return periods.unit_period(clock, unit, -count)


@_rule(rf"in {COUNT} {UNIT}", rf"{COUNT} {UNIT} (?:from now|later|ahead)")
def _units_ahead(parts: Parts, clock: Clock) -> Period | None:
    return clock.day(periods.back(clock.today, -count_of(parts["count"]), parts["unit"]), "none")


# The last half year may be the past six months or the second half of this year.
@_rule(
    rf"(?!(?:last|final) half {UNIT}$){NTH} (?P<length>week|half) {OF}(?P<period>.+)",
    rf"h(?P<nth>[12]) {OF}(?P<period>.+)",
)
def _part(parts: Parts, clock: Clock) -> Period | None:
    """The n-th seven days or the half of a period: "first week of january" is its days 1 to 7."""
    inner, nth = _inner(parts, clock), rank_of(parts["nth"])
    if inner is None:
        return None
    period, start, end = inner
    if parts.get("length", "half") == "half":
        middle = periods.middle(period, start, end)
        if nth not in (1, 2, -1) or middle is None or not start < middle < end:
            return None
        return Period(start, middle, "range") if nth == 1 else Period(middle, end, "range")
    if nth == -1:
        return Period(end - timedelta(days=7), end, "week")
    start += timedelta(days=7 * (nth - 1))
    return Period(start, min(start + timedelta(days=7), end), "week") if start < end else None


@_rule(
    rf"{NTH} (?:business )?day {OF}(?P<period>.+)",
    rf"(?P<edge>start|beginning|opening|open|end|close) {OF}(?P<period>.+)",
)
def _edge_day(parts: Parts, clock: Clock) -> Period | None:
    """The first or last day of a period that has a record; without business days that day itself."""
    inner = _inner(parts, clock)
    nth = rank_of(parts["nth"]) if parts.get("nth") else -1 if parts["edge"] in ("end", "close") else 1
    if inner is None or nth not in (1, -1):
        return None
    _, start, end = inner
    if clock.business:
        return Period(start, end, "day", "first" if nth == 1 else "last")
    return clock.day(start if nth == 1 else end - timedelta(days=1))


@_rule(
    rf"q(?P<nth>[1-4])(?: {OF}{_YEAR})?",
    rf"{_YEAR} ?-?q(?P<nth>[1-4])",
    rf"(?P<nth>first|second|third|fourth|last|final|[1-4]{ORDINAL_ENDING}?) quarter(?: {OF}{_YEAR})?",
    rf"quarter (?P<nth>[1-4])(?: {OF}{_YEAR})?",
)
def _quarter(parts: Parts, clock: Clock) -> Period:
    nth = 4 if rank_of(parts["nth"]) == -1 else rank_of(parts["nth"])
    month = 3 * nth - 2
    start = date(int(parts["year"]) if parts["year"] else periods.yearless(clock, month), month, 1)
    return Period(start, periods.add_months(start, 3), "quarter")


@_rule(rf"{_YEAR}[-/](?P<until>\d\d(?:\d\d)?)(?: season)?")
def _two_years(parts: Parts, clock: Clock) -> Period | None:
    """ "2022-23": two years in a row are a season where there are seasons; else both years and those between."""
    year, until = int(parts["year"]), int(parts["until"])
    short = len(parts["until"]) == 2
    until += year // 100 * 100 if short else 0
    if clock.calendar.season_month and (until - year) % 100 == 1:
        return periods.season_of(clock, year)
    # "2010-12" is a month.
    return None if until <= year or (short and int(parts["until"]) <= 12) else periods.years_of(year, until)


@_rule(rf"{WHICH} season")
def _season(parts: Parts, clock: Clock) -> Period | None:
    if not clock.calendar.season_month:
        return None
    year = clock.today.year - (clock.today.month < clock.calendar.season_month)
    return periods.season_of(clock, year + _offset(parts))


@_rule(rf"(?:month {OF})?(?P<date>.+)")
def _date(parts: Parts, clock: Clock) -> Period | None:
    """A day or a month in any common form."""
    day = date_of(parts["date"])
    if day is None or (day.year and not FIRST_YEAR <= day.year <= LAST_YEAR):
        return None
    year = day.year or periods.yearless(clock, day.month, day.day or 1)
    return clock.day(date(year, day.month, day.day)) if day.day else periods.month_of(year, day.month)


@_rule(rf"(?:(?P<this>this)|(?P<next>{NEXT})|{LAST}) {_MONTH}")
def _other_month(parts: Parts, clock: Clock) -> Period:
    month, today = MONTHS[parts["month"]], clock.today
    if parts["this"]:
        return periods.month_of(today.year, month)
    if parts["next"]:
        return periods.month_of(today.year + (month <= today.month), month)
    return periods.month_of(today.year - (month >= today.month), month)


@_rule(rf"{_YEAR}-?w(?P<week>\d\d)")
def _iso_week(parts: Parts, clock: Clock) -> Period:
    monday = date.fromisocalendar(int(parts["year"]), int(parts["week"]), 1)
    # Unlike other weeks it begins on Monday, also where it has seven days.
    return periods.week_from(clock, monday - timedelta(days=1 if clock.business else 0))


@_rule(rf"(?:calendar |fiscal )?(?:year )?{_YEAR}(?: season| calendar year)?")
def _year(parts: Parts, _: Clock) -> Period | None:
    return periods.year_of(int(parts["year"]))


@_rule(rf"{_MONTH} {_DAY} ?(?:-|to|through|until|and) ?(?P<until>\d{{1,2}}){ORDINAL_ENDING}?(?: {OF}{_YEAR})?")
def _days_of_month(parts: Parts, clock: Clock) -> Period | None:
    month, day = MONTHS[parts["month"]], int(parts["day"])
    year = int(parts["year"]) if parts["year"] else periods.yearless(clock, month, day)
    first, last = (clock.day(date(year, month, one)) for one in (day, int(parts["until"])))
    return periods.span(first, last, clock, either_order=False)


@_rule(rf"(?P<day>\d{{1,2}}){ORDINAL_ENDING}")
def _day_of_month(parts: Parts, clock: Clock) -> Period | None:
    day = int(parts["day"])
    month = clock.today if day <= clock.today.day else periods.add_months(clock.today.replace(day=1), -1)
    return clock.day(month.replace(day=day))


@_rule(r"(?P<decade>(?:\d\d)?\d0)s")
def _decade(parts: Parts, clock: Clock) -> Period | None:
    year = int(parts["decade"])
    if len(parts["decade"]) == 2:
        year += clock.today.year // 100 * 100
        year -= 100 if year > clock.today.year else 0
    return periods.years_of(year, year + 9)


@_rule(rf"(?P<century>\d{{1,2}}){ORDINAL_ENDING} century")
def _century(parts: Parts, _: Clock) -> Period | None:
    first = (int(parts["century"]) - 1) * 100 + 1
    return periods.years_of(first, first + 99)


@_rule(r"week (?:of|beginning|starting|from|commencing) (?P<period>.+)")
def _week_of(parts: Parts, clock: Clock) -> Period | None:
    day = period_of(parts["period"], clock)
    if day is None or day.granularity != "day" or day.start is None or day.kind != "window":
        return None
    return periods.week_from(clock, clock.week_of(day.start))


@_rule(
    r"between (?P<first>.+?) and (?P<second>.+)",
    r"(?:between|from) (?P<first>.+?) (?:-|to|until|till|through) (?P<second>.+)",
    r"(?P<first>.+?) (?:-|to|until|till|through) (?P<second>.+)",
    r"(?:between |from )?(?P<first>\d{4}) ?- ?(?P<second>\d{4})",
    r"(?P<first>\d[\d-]+)(?:/|\.\.)(?P<second>\d[\d-]+)",
    r"(?P<first>[a-z]{3,9})-(?P<second>[a-z]{3,9} \d{4})",
)
def _between(parts: Parts, clock: Clock) -> Period | None:
    return span_of(parts["first"].strip(), parts["second"].strip(), clock)


def span_of(first: str, second: str, clock: Clock) -> Period | None:
    """The period from one normalised phrase to another; None when no rule reads one of them, or the end is earlier.

    Only complete ends may come in either order.
    """
    are_open = [OPEN.fullmatch(phrase) is not None for phrase in (first, second)]
    end = period_of(second, clock)
    if end is None:
        return None
    # November to February 2023 begins in the year before.
    start = period_of(first, clock.at_the_end(end.end) if are_open[0] else clock)
    # June 2022 to March ends in the year after.
    is_dated = start is not None and start.granularity in ("day", "month", "quarter")
    if are_open == [False, True] and is_dated and start and start.start and not re.match(WEEKDAY, second):
        end = period_of(second, clock.at_the_end(periods.back(start.start, -12, "month"))) or end
    return periods.span(start, end, clock, either_order=not any(are_open)) if start else None


@_rule(
    r"(?:since|starting(?: from| in| on)?|from|beginning(?: in| on)?) (?P<period>.+?)(?: (?:onwards?|on|up to now))?",
    r"(?P<period>.+?) (?:onwards?|or later|and later|and after)",
    r"(?P<after>after|following|later than) (?P<period>.+)",
)
def _since(parts: Parts, clock: Clock) -> Period | None:
    period = period_of(parts["period"], clock)
    if period is None or period.kind not in ("window", "first", "last"):
        return None
    if period.kind == "first" and period.start is None:
        return clock.up_to_now()
    start = period.end if parts.get("after") or period.kind == "last" else period.start
    if start is None:
        return None
    return Period(start, clock.tomorrow if start <= clock.today else None, "range")


@_rule(
    r"(?P<before>before|prior to|earlier than|preceding) (?P<period>.+)",
    r"(?:until|till|up to|up until|through|by|no later than) (?P<period>.+)",
    r"(?P<period>.+?) (?:or earlier|and earlier|and before|or before)",
)
def _before(parts: Parts, clock: Clock) -> Period | None:
    period = period_of(parts["period"], clock)
    if period is None or period.kind in ("previous_event", "next_event"):
        return None
    end = period.start if parts.get("before") else period.end
    return Period(None, end, "range") if end else None
