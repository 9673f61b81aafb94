"""Time words to half-open windows of days, in the calendar of the domain that is asked.

A question carries the moment when it was asked; its program carries words such as "last friday" or "q4 2023". Both
together name a window. Markets keep New York time, everything else the asker's (Pacific) date, so one moment can fall
on two days. Rules of windows:

- The query day's row of a daily series is partial. For finance a period that is not over ends before the query day
  ("this week" is Monday to yesterday); on the period's first day that would be nothing, so the day itself is taken.
- Weeks run from Sunday to Saturday; for finance only their Monday to Friday count.
- "last month" and "past month" are the calendar month before; "past 3 months" and "past year" end at the query day.
- A month or day without a year is the most recent one that has begun; for sports, whose fixtures lie ahead as often as
  behind, the nearest.
"""

import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from threading import Lock
from typing import Any, Literal
from zoneinfo import ZoneInfo

from proto.base import parse_query_time as parse_contract_time

Granularity = Literal["instant", "day", "week", "month", "quarter", "year", "range"]
Kind = Literal["window", "latest", "previous_event", "next_event", "first", "last"]
Snap = Literal["none", "previous", "next"]

MAX_PHRASE_CHARS = 80
# What is echoed of a phrase that is too long.
ECHO_CHARS = 40
MARKET_ZONE = ZoneInfo("America/New_York")
ASKER_ZONE = ZoneInfo("America/Los_Angeles")
FIRST_YEAR, LAST_YEAR = 1000, 2999
UNDERSTOOD = (
    "yesterday",
    "last friday",
    "this week",
    "past 3 months",
    "last trading day",
    "first trading day of 2024",
    "first week of january",
    "q4 2023",
    "2024-02-13",
    "2024-02",
    "since 2020",
    "2000-2010",
    "latest",
    "ipo",
    "last game",
    "next game",
)


class UnknownTime(ValueError):
    """A phrase that names no time. `phrase` is what was asked, `understood` are phrases that would do."""

    def __init__(self, phrase: str, reason: str = "names no time that is understood") -> None:
        self.phrase = phrase
        self.understood = UNDERSTOOD
        super().__init__(f"{phrase!r} {reason}; understood are such as {', '.join(UNDERSTOOD)}")


@dataclass(frozen=True, slots=True)
class Window:
    """Days [start, end) in the domain's calendar; None is unbounded.

    `kind` says which records of the window are meant: all of it (`window`), the newest at or before `now` (`latest`),
    the event before or after `now`, or the first or last day of the window that has a record. `snap` says where to look
    when a single day has no record: a weekday's name moves to the next day that has one, other days to the previous.
    """

    start: date | None
    end: date | None
    granularity: Granularity
    kind: Kind
    snap: Snap
    now: datetime
    phrase: str
    label: str


@dataclass(frozen=True, slots=True)
class _Period:
    """A window without its words."""

    start: date | None
    end: date | None
    granularity: Granularity
    kind: Kind = "window"
    snap: Snap = "none"


@dataclass(frozen=True, slots=True)
class _Clock:
    """The query time as the domain sees it."""

    now: datetime
    domain: str

    @property
    def today(self) -> date:
        return self.now.date()

    @property
    def finance(self) -> bool:
        return self.domain == "finance"

    @property
    def sunday(self) -> date:
        """The Sunday that begins the current week."""
        return self.today - timedelta(days=(self.today.weekday() + 1) % 7)

    @property
    def spoken_sunday(self) -> date:
        """The same, but on a Sunday the trading week spoken of as this one is the week that began last Monday."""
        return self.sunday - timedelta(days=7) if self.finance and self.today == self.sunday else self.sunday

    @property
    def tomorrow(self) -> date:
        return self.today + timedelta(days=1)

    def snap(self, where: Snap) -> Snap:
        """Only a trading calendar snaps: a team without a game on a day is a fact, not a gap."""
        return where if self.finance else "none"

    def day(self, day: date, snap: Snap = "previous") -> _Period:
        return _Period(day, day + timedelta(days=1), "day", "window", self.snap(snap))


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NUMBERS = {"": 1, "a": 1, "an": 1, "couple": 2, "a couple": 2, "few": 3, "a few": 3, "several": 3} | {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1
    )
}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1, "final": -1}

_DAYS = {
    "today": 0,
    "tonight": 0,
    "this day": 0,
    "current day": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "yesterday": -1,
    "day before": -1,
    "last day": -1,
    "latest day": -1,
    "previous day": -1,
    "prior day": -1,
    "past day": -1,
    "recent day": -1,
    "most recent day": -1,
    "last night": -1,
    "day before yesterday": -2,
    "tomorrow": 1,
    "next day": 1,
    "day after": 1,
    "day after tomorrow": 2,
}


def _phrases(joined: str) -> frozenset[str]:
    return frozenset(joined.split("|"))


_LATEST = _phrases(
    "latest|most recent|recent|last|now|right now|current|currently|at moment|present|at present|real time|realtime|"
    "up to date|most current|newest|live|latest available|most recent available|most up to date|last available|"
    "latest price|current price|now price|this moment|this instant"
)
_EVER = _phrases("ever|all time|all|whole history|entire history|history|all history|to date|until now|so far")
_IPO = _phrases(
    "ipo|ipo day|ipo date|its ipo|initial public offering|listing|listing day|inception|first trading day|"
    "first trading day ever|debut|market debut"
)

_WEEKDAY = r"(?P<weekday>mon|tues?|wed|thu(?:rs?)?|fri|sat|sun|" + "|".join(_WEEKDAYS) + ")s?"
_MONTH = r"(?P<month>jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|" + "|".join(_MONTHS) + ")"
_YEAR = r"(?P<year>\d{4})"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_LAST = r"(?:last|latest|most recent|recent|previous|past|prior|preceding|this past)"
_NEXT = r"(?:next|upcoming|coming|following|this coming)"
_OF = r"(?:(?:of|in|from|for|during) )?"
_COUNT = r"(?P<count>\d{1,5}|a couple|a few|" + "|".join(word for word in _NUMBERS if word and " " not in word) + ")"
_UNIT = r"(?P<unit>trading day|day|week|month|quarter|year|decade)s?"
_NTH = r"(?P<nth>first|second|third|fourth|fifth|last|final|[1-5](?:st|nd|rd|th)?)"
_EVENT = (
    r"(?:time|game|match|fixture|meeting|matchup|match up|appearance|contest|outing|game day|matchday|event|"
    r"league (?:game|match)|time (?:they )?played)"
)

_Rule = Callable[[dict[str, str], _Clock], _Period | None]
_RULES: list[tuple[re.Pattern[str], _Rule]] = []


def _rule(*patterns: str) -> Callable[[_Rule], _Rule]:
    """Register a reading of whole phrases; rules are tried in the order of this file."""

    def register(rule: _Rule) -> _Rule:
        _RULES.extend((re.compile(pattern), rule) for pattern in patterns)
        return rule

    return register


def parse_query_time(text: str | datetime | None, *, fallback: datetime) -> datetime:
    """The moment of a question: CRAG's `02/28/2024, 08:12:36 PT` or ISO 8601; `fallback` when there is none.

    Raises:
        ValueError: the text is neither.
    """
    if text is None or (isinstance(text, str) and not text.strip()):
        return fallback
    return parse_contract_time(text)


def resolve_time(phrase: str, query_time: datetime, *, domain: str) -> Window:
    """The window that a phrase names, asked at `query_time` (without a zone: UTC).

    Raises:
        UnknownTime: the phrase names no time, or one outside the calendar.
    """
    text = _normalise(phrase)
    clock = _clock(query_time, domain, text)
    return _window(_found(text, clock), clock, text)


def resolve_span(first: str, second: str, query_time: datetime, *, domain: str) -> Window:
    """The window from the start of one phrase to the end of another, both included, in either order.

    Raises:
        UnknownTime: one of them names no time, or one without an end such as the next game.
    """
    start, end = _normalise(first), _normalise(second)
    text = f"{start} to {end}"
    clock = _clock(query_time, domain, text)
    try:
        period = _span(_found(start, clock), _found(end, clock), clock)
    except OverflowError:
        period = None
    if period is None:
        raise UnknownTime(text)
    return _window(period, clock, text)


def _clock(query_time: datetime, domain: str, text: str) -> _Clock:
    try:
        moment = query_time if query_time.tzinfo else query_time.replace(tzinfo=ZoneInfo("UTC"))
        return _Clock(moment.astimezone(MARKET_ZONE if domain == "finance" else ASKER_ZONE), domain)
    except OverflowError as error:
        raise UnknownTime(text, "is asked at the calendar's end") from error


# "in 2 days" keeps its "in", without which it would lie in the past; "at the moment" is a phrase of its own.
_LEADING = re.compile(
    r"^(?:(?:on|in(?! (?:\d+|a|an|one|two|three) )|at(?! moment| present)|during|for|over|of|as of|within|throughout|"
    r"around) )+"
)


def _normalise(phrase: str) -> str:
    """Lower case, plain quotes and dashes, no articles, leading prepositions or punctuation around.

    Raises:
        UnknownTime: nothing is left, or it is longer than any time.
    """
    if len(phrase) > MAX_PHRASE_CHARS:
        raise UnknownTime(f"{phrase[:ECHO_CHARS]}...", f"is longer than {MAX_PHRASE_CHARS} characters")
    text = unicodedata.normalize("NFKC", phrase).casefold()
    text = re.sub(r"[‐-―−]", "-", text)
    text = re.sub(r"['’`´]s\b|[\"'’‘“”`´?!;()\[\]{}]", "", text)
    text = re.sub(r"[,_\s]+|(?<=[a-z])\.(?= |$)|\.+$", " ", text)
    text = " ".join(re.sub(r"\bthe\b", " ", text).split())
    text = re.sub(r"\bqtr\b", "quarter", text)
    text = re.sub(r"\b(?:trading session|day of trading|business day|market day|session)\b", "trading day", text)
    text = re.sub(r"\bday (?:that |when )?market (?:was|is) open\b", "trading day", text)
    text = _LEADING.sub("", text)
    text = re.sub(r"^(?:their|its|his|her) ", "", text)
    text = re.sub(r"^trading day$", "last trading day", text)
    if not text:
        raise UnknownTime(phrase)
    return text


def _found(text: str, clock: _Clock) -> _Period:
    """The period of a normalised phrase.

    Raises:
        UnknownTime: there is none.
    """
    try:
        period = _resolve(text, clock) or _parse_loosely(text, clock)
    except (ValueError, OverflowError):
        # An impossible date such as 2024-02-30, or one before year 1 or after year 9999.
        period = None
    if period is None or (period.start and period.end and period.start >= period.end):
        raise UnknownTime(text)
    return period


def _resolve(text: str, clock: _Clock) -> _Period | None:
    text = _with_year(text, clock)
    if text in _DAYS:
        ago = _DAYS[text]
        return clock.day(clock.today + timedelta(days=ago), "previous" if ago <= 0 else "none")
    if text in _LATEST:
        return _Period(None, clock.tomorrow, "instant", "latest", clock.snap("previous"))
    if text in _EVER:
        return _Period(None, clock.tomorrow, "range")
    if text in _IPO:
        return _Period(None, clock.tomorrow, "day", "first")
    for pattern, rule in _RULES:
        match = pattern.fullmatch(text)
        if match:
            period = rule({key: value or "" for key, value in match.groupdict().items()}, clock)
            if period is not None:
                return period
    return None


def _with_year(text: str, clock: _Clock) -> str:
    """A phrase that ends in "last year" and the like with that year's number: "q4 last year" is "q4 2023"."""
    match = re.fullmatch(
        rf"(.*\S) (?:(?:of|in|from) )?(?:({_LAST})|(this|current)|({_NEXT})|(?<=of )|(?<=in ))(?: )?year", text
    )
    if not match:
        return text
    head = re.sub(r" (?:of|in|from)$", "", match[1])
    if re.fullmatch(
        rf"(?:{_LAST}|{_NEXT}|since|before|until|after|from|by|through|so|so far|earlier|later|half|end|start)?", head
    ):
        return text
    return f"{head} {clock.today.year + (-1 if match[2] else 1 if match[4] else 0)}"


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBERS[word]


def _weekday_of(word: str) -> int:
    return next(index for index, name in enumerate(_WEEKDAYS) if name.startswith(word[:3]))


def _month_of(word: str) -> int:
    return next(index for index, name in enumerate(_MONTHS, 1) if name.startswith(word[:3]))


def _add_months(day: date, months: int) -> date:
    """The same day some months later, or that month's last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(f"year {year} is outside the calendar")
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _month(year: int, month: int) -> _Period:
    start = date(year, month, 1)
    return _Period(start, _add_months(start, 1), "month")


def _year(year: int) -> _Period | None:
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    return _Period(date(year, 1, 1), date(year + 1, 1, 1), "year")


def _yearless(clock: _Clock, month: int, day: int = 1) -> int:
    """The year that a month or a day of one is meant in."""

    def begins(year: int) -> date:
        return date(year, month, min(day, monthrange(year, month)[1]))

    year = clock.today.year
    if clock.domain == "sports":
        return min((year, year - 1, year + 1), key=lambda near: abs(begins(near) - clock.today))
    return year if begins(year) <= clock.today else year - 1


def _week(clock: _Clock, sunday: date) -> _Period:
    """The week that begins on that Sunday: for finance its Monday to Friday."""
    if clock.finance:
        return _Period(sunday + timedelta(days=1), sunday + timedelta(days=6), "week")
    return _Period(sunday, sunday + timedelta(days=7), "week")


def _unit_period(clock: _Clock, unit: str, offset: int) -> _Period | None:
    """The calendar week, month, quarter, year or decade that lies `offset` from the current one; never cut."""
    today = clock.today
    if unit == "week":
        return _week(clock, (clock.sunday if offset < 0 else clock.spoken_sunday) + timedelta(days=7 * offset))
    if unit == "month":
        start = _add_months(today.replace(day=1), offset)
        return _month(start.year, start.month)
    if unit == "quarter":
        start = _add_months(date(today.year, (today.month - 1) // 3 * 3 + 1, 1), 3 * offset)
        return _Period(start, _add_months(start, 3), "quarter")
    if unit == "year":
        return _year(today.year + offset)
    if unit == "decade":
        first = (today.year // 10 + offset) * 10
        return _Period(date(first, 1, 1), date(first + 10, 1, 1), "range")
    return None


def _current(clock: _Clock, unit: str) -> _Period | None:
    """The period that today lies in; for finance up to yesterday, since today's row is partial."""
    period = _unit_period(clock, unit, 0)
    if period is None or not clock.finance or period.start is None:
        return period
    start = clock.spoken_sunday + timedelta(days=1) if unit == "week" else period.start
    end = clock.today if start < clock.today else clock.tomorrow
    if unit == "week":
        end = min(end, start + timedelta(days=5))
    return _Period(start, end, period.granularity)


def _back(day: date, count: int, unit: str) -> date:
    if unit == "trading day":
        for _ in range(min(count, 10_000)):
            day -= timedelta(days=1)
            while day.weekday() >= 5:
                day -= timedelta(days=1)
        return day
    if unit == "day":
        return day - timedelta(days=count)
    if unit == "week":
        return day - timedelta(days=7 * count)
    return _add_months(day, -count * {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit])


@_rule(rf"{_LAST} {_EVENT}", r"last played", r"last game played")
def _previous_event(_: dict[str, str], clock: _Clock) -> _Period:
    return _Period(None, clock.tomorrow, "instant", "previous_event")


@_rule(rf"{_NEXT} {_EVENT}")
def _next_event(_: dict[str, str], clock: _Clock) -> _Period:
    return _Period(clock.today, None, "instant", "next_event")


@_rule(rf"(?:{_LAST} )?(?:full |complete )?trading day|close of trading|last (?:market )?close|previous close")
def _last_trading_day(_: dict[str, str], clock: _Clock) -> _Period:
    return clock.day(clock.today - timedelta(days=1))


@_rule(rf"{_NEXT} trading day")
def _next_trading_day(_: dict[str, str], clock: _Clock) -> _Period:
    return clock.day(clock.tomorrow, "next")


@_rule(
    rf"{_WEEKDAY} {_OF}(?:{_LAST}|(?P<this>this|current)|(?P<next>{_NEXT})) week",
    rf"(?:{_LAST}|(?P<this>this|current)|(?P<next>{_NEXT})) week {_OF}(?:on )?{_WEEKDAY}",
)
def _weekday_of_week(found: dict[str, str], clock: _Clock) -> _Period:
    weeks = 0 if found["this"] else 1 if found["next"] else -1
    sunday = clock.sunday if weeks < 0 else clock.spoken_sunday
    return clock.day(sunday + timedelta(days=7 * weeks + (_weekday_of(found["weekday"]) + 1) % 7), "next")


@_rule(rf"(?:(?P<which>last|previous|prior|preceding|this|{_NEXT}|{_LAST}) )?{_WEEKDAY}")
def _weekday(found: dict[str, str], clock: _Clock) -> _Period:
    """Bare or recent: the last one before today. "last" and "previous": the one of the week before."""
    weekday, which, today = _weekday_of(found["weekday"]), found["which"], clock.today
    before = today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    # The Monday of the working week: on a Sunday people speak of the coming one as this.
    monday = today + timedelta(days=1) if today.weekday() == 6 else today - timedelta(days=today.weekday())
    if which in ("last", "previous", "prior", "preceding"):
        day = monday + timedelta(days=weekday - 7)
        return clock.day(day if day < today else day - timedelta(days=7), "next")
    if which == "this":
        if weekday == today.weekday():
            return clock.day(today, "next")
        return clock.day(before if clock.finance else monday + timedelta(days=weekday), "next")
    if re.fullmatch(_NEXT, which):
        return clock.day(before + timedelta(days=14 if weekday == today.weekday() else 7), "next")
    return clock.day(before, "next")


@_rule(rf"(?:(?P<which>{_LAST}|this|{_NEXT}) )?weekend")
def _weekend(found: dict[str, str], clock: _Clock) -> _Period:
    this = clock.sunday if clock.today.weekday() == 6 else clock.sunday + timedelta(days=7)
    weeks = 0 if found["which"] in ("this", "") else 1 if re.fullmatch(_NEXT, found["which"]) else -1
    start = this + timedelta(days=7 * weeks - 1)
    return _Period(start, start + timedelta(days=2), "range")


@_rule(
    r"(?:(?P<this>this|current) )?(?P<unit>week|month|quarter|year|decade)(?: so far| to date)?",
    r"(?:so far )(?:this )(?P<unit>week|month|quarter|year|decade)",
    r"(?P<abbreviation>[wmqy])td",
)
def _this_unit(found: dict[str, str], clock: _Clock) -> _Period | None:
    units = {"w": "week", "m": "month", "q": "quarter", "y": "year"}
    return _current(clock, found.get("unit") or units[found["abbreviation"]])


@_rule(rf"(?P<which>{_LAST}) (?:calendar |full )?(?P<unit>week|month|quarter|year|decade)")
def _last_unit(found: dict[str, str], clock: _Clock) -> _Period | None:
    if found["unit"] in ("year", "decade") and found["which"] in ("past", "this past"):
        return _rolling(1, found["unit"], clock)
    return _unit_period(clock, found["unit"], -1)


@_rule(rf"{_NEXT} (?P<unit>week|month|quarter|year|decade)")
def _next_unit(found: dict[str, str], clock: _Clock) -> _Period | None:
    return _unit_period(clock, found["unit"], 1)


def _rolling(count: int, unit: str, clock: _Clock) -> _Period | None:
    if count < 1:
        return None
    return _Period(_back(clock.today, count, unit), clock.today if clock.finance else clock.tomorrow, "range")


@_rule(rf"(?:(?:{_LAST}|trailing|final) )?{_COUNT}(?: of)? {_UNIT}")
def _past_units(found: dict[str, str], clock: _Clock) -> _Period | None:
    return _rolling(_number(found["count"]), found["unit"], clock)


@_rule(rf"{_NEXT} {_COUNT}(?: of)? {_UNIT}")
def _next_units(found: dict[str, str], clock: _Clock) -> _Period | None:
    count = _number(found["count"])
    if count < 1:
        return None
    return _Period(clock.today, _back(clock.today, -count, found["unit"].replace("trading ", "")), "range")


@_rule(rf"{_COUNT}(?: of)? {_UNIT} (?:ago|back|earlier|before)")
def _units_ago(found: dict[str, str], clock: _Clock) -> _Period | None:
    """The day that long ago; outside finance the week, month or year that it lies in."""
    count, unit = _number(found["count"]), found["unit"]
    if clock.finance or unit in ("day", "trading day"):
        return clock.day(_back(clock.today, count, unit))
    return _unit_period(clock, unit, -count)


@_rule(rf"in {_COUNT}(?: of)? {_UNIT}", rf"{_COUNT}(?: of)? {_UNIT} (?:from now|later|ahead)")
def _units_ahead(found: dict[str, str], clock: _Clock) -> _Period | None:
    return clock.day(_back(clock.today, -_number(found["count"]), found["unit"].replace("trading ", "")), "none")


@_rule(rf"{_NTH} (?P<length>week|half) {_OF}(?P<period>.+)", rf"h(?P<nth>[12]) {_OF}(?P<period>.+)")
def _part(found: dict[str, str], clock: _Clock) -> _Period | None:
    """The n-th seven days or the half of a period: "first week of january" is its days 1 to 7."""
    period = _named(found["period"], clock)
    nth = _ordinal(found["nth"])
    if period is None or period.start is None or period.end is None:
        return None
    if found.get("length", "half") == "half":
        middle = _add_months(period.start, 6) if period.granularity == "year" else period.start + timedelta(days=15)
        if nth not in (1, 2, -1) or not period.start < middle < period.end:
            return None
        return _Period(period.start, middle, "range") if nth == 1 else _Period(middle, period.end, "range")
    if nth == -1:
        return _Period(period.end - timedelta(days=7), period.end, "week")
    start = period.start + timedelta(days=7 * (nth - 1))
    return _Period(start, min(start + timedelta(days=7), period.end), "week") if start < period.end else None


@_rule(
    rf"{_NTH} (?:trading )?day {_OF}(?P<period>.+)",
    rf"{_NTH} day {_OF}trading {_OF}(?P<period>.+)",
    rf"(?P<edge>start|beginning|opening|open|end|close) {_OF}(?P<period>.+)",
)
def _edge_day(found: dict[str, str], clock: _Clock) -> _Period | None:
    """The first or last day of a period that has a record; outside finance that day itself."""
    period = _named(found["period"], clock)
    if period is None or period.start is None or period.end is None:
        return None
    first = found["edge"] in ("start", "beginning", "opening", "open") if found.get("edge") else None
    if first is None:
        nth = _ordinal(found["nth"])
        if nth not in (1, -1):
            return None
        first = nth == 1
    if clock.finance:
        return _Period(period.start, period.end, "day", "first" if first else "last")
    return clock.day(period.start if first else period.end - timedelta(days=1))


def _ordinal(word: str) -> int:
    return _ORDINALS[word] if word in _ORDINALS else int(word[0])


def _named(text: str, clock: _Clock) -> _Period | None:
    """A stretch of days named inside a phrase, such as the "last month" of "first day of last month"."""
    period = _resolve(text, clock)
    return period if period and period.kind == "window" else None


@_rule(r"(?P<unit>year|quarter|month|week)ly open|(?P<unit2>year|quarter|month|week) open|annual open")
def _period_open(found: dict[str, str], clock: _Clock) -> _Period | None:
    period = _unit_period(clock, found["unit"] or found["unit2"] or "year", 0)
    return _Period(period.start, period.end, "day", "first") if period else None


@_rule(
    rf"q(?P<nth>[1-4])(?: {_OF}{_YEAR})?",
    rf"{_YEAR} ?-?q(?P<nth>[1-4])",
    rf"(?P<nth>first|second|third|fourth|last|final|[1-4](?:st|nd|rd|th)?) quarter(?: {_OF}{_YEAR})?",
    rf"quarter (?P<nth>[1-4])(?: {_OF}{_YEAR})?",
)
def _quarter(found: dict[str, str], clock: _Clock) -> _Period:
    nth = 4 if _ordinal(found["nth"]) == -1 else _ordinal(found["nth"])
    month = 3 * nth - 2
    start = date(int(found["year"]) if found["year"] else _yearless(clock, month), month, 1)
    return _Period(start, _add_months(start, 3), "quarter")


@_rule(
    _YEAR + r"-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:[t ]\d{1,2}:\d\d.*)?",
    _YEAR + r"[/.](?P<month>\d{1,2})[/.](?P<day>\d{1,2})",
    _YEAR + r"(?P<month>\d\d)(?P<day>\d\d)",
)
def _iso_day(found: dict[str, str], clock: _Clock) -> _Period | None:
    year = int(found["year"])
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    return clock.day(date(year, int(found["month"]), int(found["day"])))


@_rule(r"(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:[-/.](?P<year>\d{4}|\d\d))?")
def _slashed_day(found: dict[str, str], clock: _Clock) -> _Period:
    """Month before day as Americans write it, unless only the other order is a date."""
    month, day = int(found["month"]), int(found["day"])
    if month > 12:
        month, day = day, month
    if len(found["year"]) == 2:
        year = int(found["year"]) + (2000 if int(found["year"]) < 70 else 1900)
    else:
        year = int(found["year"]) if found["year"] else _yearless(clock, month, day)
    return clock.day(date(year, month, day))


@_rule(rf"{_YEAR}(?P<season>-(?:\d\d)?\d\d|/(?:\d\d)?\d\d)(?: season)?")
def _season_years(found: dict[str, str], clock: _Clock) -> _Period | None:
    """ "2022-23": for sports two years in a row are a season; elsewhere both years and those between."""
    year, second = int(found["year"]), found["season"][1:]
    until = int(second) if len(second) == 4 else year // 100 * 100 + int(second)
    if clock.domain == "sports" and (until - year) % 100 == 1:
        return _season(year)
    # "2010-12" is a month.
    first, last = _year(year), _year(until)
    if first is None or last is None or until <= year or (len(second) == 2 and int(second) <= 12):
        return None
    return _Period(first.start, last.end, "range")


@_rule(rf"(?:(?P<this>this|current)|(?P<next>{_NEXT})|{_LAST}) season")
def _season_words(found: dict[str, str], clock: _Clock) -> _Period:
    year = clock.today.year - (clock.today.month < 7)
    return _season(year + (0 if found["this"] else 1 if found["next"] else -1))


def _season(year: int) -> _Period:
    return _Period(date(year, 7, 1), date(year + 1, 7, 1), "range")


@_rule(_YEAR + r"[-/](?P<month>\d{1,2})")
def _iso_month(found: dict[str, str], _: _Clock) -> _Period | None:
    year, month = int(found["year"]), int(found["month"])
    return _month(year, month) if FIRST_YEAR <= year <= LAST_YEAR and 1 <= month <= 12 else None


@_rule(_YEAR + r"-?w(?P<week>\d\d)")
def _iso_week(found: dict[str, str], clock: _Clock) -> _Period:
    return _week(clock, date.fromisocalendar(int(found["year"]), int(found["week"]), 1) - timedelta(days=1))


@_rule(rf"(?:calendar |fiscal )?(?:year )?{_YEAR}(?: season| calendar year)?")
def _plain_year(found: dict[str, str], _: _Clock) -> _Period | None:
    return _year(int(found["year"]))


@_rule(
    rf"(?:{_WEEKDAY} )?{_MONTH} {_DAY}(?: {_OF}{_YEAR})?",
    rf"(?:{_WEEKDAY} )?{_DAY} (?:of )?{_MONTH}(?: {_OF}{_YEAR})?",
    rf"{_YEAR} {_MONTH} {_DAY}",
    rf"{_DAY}-{_MONTH}-{_YEAR}",
)
def _written_day(found: dict[str, str], clock: _Clock) -> _Period:
    month, day = _month_of(found["month"]), int(found["day"])
    return clock.day(date(int(found["year"]) if found["year"] else _yearless(clock, month, day), month, day))


@_rule(
    rf"(?:month {_OF})?{_MONTH}(?: {_OF}{_YEAR})?",
    rf"(?P<which>this|{_LAST}|{_NEXT}) {_MONTH}",
    rf"{_YEAR} {_MONTH}",
    rf"{_MONTH}-{_YEAR}",
)
def _written_month(found: dict[str, str], clock: _Clock) -> _Period:
    month, which, today = _month_of(found["month"]), found.get("which", ""), clock.today
    if found.get("year"):
        return _month(int(found["year"]), month)
    if not which:
        return _month(_yearless(clock, month), month)
    if which == "this":
        return _month(today.year, month)
    if re.fullmatch(_NEXT, which):
        return _month(today.year + (month <= today.month), month)
    return _month(today.year - (month >= today.month), month)


@_rule(rf"{_MONTH} {_DAY} ?(?:-|to|through|until|and) ?(?P<until>\d{{1,2}})(?:st|nd|rd|th)?(?: {_OF}{_YEAR})?")
def _days_of_month(found: dict[str, str], clock: _Clock) -> _Period | None:
    month, day = _month_of(found["month"]), int(found["day"])
    year = int(found["year"]) if found["year"] else _yearless(clock, month, day)
    return _span(clock.day(date(year, month, day)), clock.day(date(year, month, int(found["until"]))), clock)


@_rule(r"(?P<day>\d{1,2})(?:st|nd|rd|th)")
def _day_of_month(found: dict[str, str], clock: _Clock) -> _Period | None:
    day = int(found["day"])
    month = clock.today if day <= clock.today.day else _add_months(clock.today.replace(day=1), -1)
    return clock.day(month.replace(day=day))


@_rule(r"(?P<decade>\d{3}0)s")
def _decade(found: dict[str, str], _: _Clock) -> _Period | None:
    year = int(found["decade"])
    return _Period(date(year, 1, 1), date(year + 10, 1, 1), "range") if FIRST_YEAR <= year < LAST_YEAR - 9 else None


@_rule(r"(?P<decade>\d0)s")
def _short_decade(found: dict[str, str], clock: _Clock) -> _Period | None:
    year = int(found["decade"]) + clock.today.year // 100 * 100
    return _decade({"decade": str(year if year <= clock.today.year else year - 100)}, clock)


@_rule(r"(?P<century>\d{1,2})(?:st|nd|rd|th) century")
def _century(found: dict[str, str], _: _Clock) -> _Period | None:
    first = (int(found["century"]) - 1) * 100 + 1
    return _Period(date(first, 1, 1), date(first + 100, 1, 1), "range") if first >= FIRST_YEAR else None


@_rule(r"week (?:of|beginning|starting|from|commencing) (?P<period>.+)")
def _week_of(found: dict[str, str], clock: _Clock) -> _Period | None:
    period = _named(found["period"], clock)
    if period is None or period.start is None or period.granularity != "day":
        return None
    return _week(clock, period.start - timedelta(days=(period.start.weekday() + 1) % 7))


@_rule(
    r"between (?P<first>.+?) and (?P<second>.+)",
    r"(?:between|from) (?P<first>.+?) (?:-|to|until|till|through) (?P<second>.+)",
    r"(?P<first>.+?) (?:-|to|until|till|through) (?P<second>.+)",
    r"(?:between |from )?(?P<first>\d{4}) ?- ?(?P<second>\d{4})",
    r"(?P<first>\d[\d-]+)(?:/|\.\.)(?P<second>\d[\d-]+)",
    r"(?P<first>[a-z]{3,9})-(?P<second>[a-z]{3,9} \d{4})",
)
def _between(found: dict[str, str], clock: _Clock) -> _Period | None:
    first, second = found["first"].strip(), found["second"].strip()
    yearless = re.fullmatch(rf"{_MONTH}(?: {_DAY})?|q[1-4]", first)
    year = re.search(r"\b(\d{4})$", second)
    start, end = _resolve(f"{first} {year[1]}" if yearless and year else first, clock), _resolve(second, clock)
    if start is None or end is None:
        return None
    if yearless and start.start and end.start and start.start > end.start:
        start = _resolve(f"{first} {end.start.year}", clock) or start
    return _span(start, end, clock)


@_rule(
    r"(?:since|starting(?: from| in| on)?|from|beginning(?: in| on)?) (?P<period>.+?)(?: (?:onwards?|on|up to now))?",
    r"(?P<period>.+?) (?:onwards?|or later|and later|and after)",
    r"(?P<after>after|following|later than) (?P<period>.+)",
)
def _since(found: dict[str, str], clock: _Clock) -> _Period | None:
    period = _resolve(found["period"], clock)
    if period is None or period.kind not in ("window", "first", "last"):
        return None
    if period.kind == "first" and period.start is None:
        return _Period(None, clock.tomorrow, "range")
    start = period.end if found.get("after") or period.kind == "last" else period.start
    if start is None:
        return None
    return _Period(start, clock.tomorrow if start <= clock.today else None, "range")


@_rule(
    r"(?P<before>before|prior to|earlier than|preceding) (?P<period>.+)",
    r"(?:until|till|up to|up until|through|by|no later than) (?P<period>.+)",
    r"(?P<period>.+?) (?:or earlier|and earlier|and before|or before)",
)
def _before(found: dict[str, str], clock: _Clock) -> _Period | None:
    period = _resolve(found["period"], clock)
    if period is None or period.kind in ("previous_event", "next_event"):
        return None
    end = period.start if found.get("before") else period.end
    if end is None:
        return None
    return _Period(None, end, "range")


def _span(first: _Period, second: _Period, clock: _Clock) -> _Period | None:
    """From the start of one period to the end of the other, whichever is earlier."""
    if {first.kind, second.kind} & {"previous_event", "next_event"}:
        return None
    (start, end), (other_start, other_end) = (_bounds(period, clock) for period in (first, second))
    if start is not None and other_end is not None and start >= other_end:
        start, other_end = other_start, end
    if start is not None and other_end is not None and start >= other_end:
        return None
    return _Period(start, other_end, "range")


def _bounds(period: _Period, clock: _Clock) -> tuple[date | None, date | None]:
    """A period as an end of a span: now is today, the first record ever leaves the span open."""
    if period.kind == "latest":
        return clock.today, clock.tomorrow
    return period.start, period.end


# dateparser reads almost anything as a date; what is passed on names a month, a weekday or a number with a word.
_LOOSE = re.compile(rf"(?=.*(?:\d|\b{_MONTH}\b|\b{_WEEKDAY}))(?=.*[a-z]{{3}}).{{5,}}", re.DOTALL)
_loose_lock = Lock()


@cache
def _loose_types() -> Any:
    # Its import takes a quarter of a second, which only a process that meets such a phrase should pay.
    from dateparser.date import DateDataParser

    return DateDataParser


def _parse_loosely(text: str, clock: _Clock) -> _Period | None:
    """What dateparser makes of words that no rule reads, e.g. another order of a date's parts."""
    if not _LOOSE.fullmatch(text):
        return None
    settings = {
        "RELATIVE_BASE": clock.now.replace(tzinfo=None),
        "PREFER_DATES_FROM": "past",
        "PREFER_DAY_OF_MONTH": "first",
        "REQUIRE_PARTS": ["year"] if re.search(r"\d{4}", text) else ["month"],
        "RETURN_AS_TIMEZONE_AWARE": False,
    }
    try:
        with _loose_lock:
            parser = _loose_types()(languages=["en"], try_previous_locales=False, settings=settings)
            data = parser.get_date_data(text)
    except Exception:
        # It raises many things on odd text (TypeError, AttributeError, re.error ...): all of them mean "not a date".
        return None
    found = data.date_obj
    if found is None or not FIRST_YEAR <= found.year <= LAST_YEAR:
        return None
    if data.period == "year":
        return _year(found.year)
    return _month(found.year, found.month) if data.period == "month" else clock.day(found.date())


_PROPER = re.compile(
    rf"\b(?:{'|'.join((*_WEEKDAYS, *_MONTHS))}|q[1-4]|ipo|"
    r"(?:mon|tues?|wed|thu|thurs|fri|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec)(?= |$))\b"
)


def _window(period: _Period, clock: _Clock, text: str) -> Window:
    return Window(
        start=period.start,
        end=period.end,
        granularity=period.granularity,
        kind=period.kind,
        snap=period.snap,
        now=clock.now,
        phrase=text,
        label=_label(period, clock, text),
    )


def _label(period: _Period, clock: _Clock, text: str) -> str:
    words = _PROPER.sub(
        lambda match: match[0].upper() if len(match[0]) == 2 or match[0] == "ipo" else match[0].capitalize(), text
    )
    stamp = f"{clock.now:%Y-%m-%d %H:%M} {'ET' if clock.finance else 'PT'}"
    if period.kind == "latest":
        return f"{words} (at {stamp})"
    if period.kind in ("previous_event", "next_event"):
        return f"{words} ({'before' if period.kind == 'previous_event' else 'after'} {stamp})"
    last = period.end - timedelta(days=1) if period.end else None
    if period.kind in ("first", "last"):
        return f"{words} (of {period.start} to {last})" if period.start else f"{words} (the first on record)"
    if period.start is None or last is None:
        edge = f"from {period.start}" if period.start else f"until {last}" if last else "all dates"
        return f"{words} ({edge})"
    if period.start == last:
        return text if text == last.isoformat() else f"{words} ({last})"
    return f"{words} ({period.start} to {last})"
