"""Phrases of time to half-open windows of days, in the calendar of a subject.

"last friday" or "q4 2023" and the moment of the question together name a window. Calendars differ in their zone, so one
moment can fall on two days.
"""

import re
import unicodedata
from dataclasses import astuple
from datetime import date, datetime, timedelta

from services.kit.text.dates import full_year
from services.kit.text.times.calendar import PACIFIC, Calendar, Clock, Period, Window
from services.kit.text.times.patterns import COUNT, UNIT
from services.kit.text.times.phrases import period_of, span_of
from services.kit.text.vocabulary import MONTHS, WEEKDAYS, alternatives

__all__ = ["MAX_PHRASE_CHARS", "PACIFIC", "Calendar", "UnknownTime", "Window", "resolve_span", "resolve_time"]

MAX_PHRASE_CHARS = 80
# Characters of a phrase that is too long in its error's message.
ECHO_CHARS = 40
EXAMPLES = (
    "yesterday", "last friday", "this week", "past 3 months", "first week of january", "q4 2023", "2024-02-13",
    "2024-02", "since 2020", "2000-2010", "latest",
)  # fmt: skip

# "in 2 days" keeps its "in", without which it would lie in the past, and "over a year ago" its "over", which makes it
# longer ago; "at the moment" is a phrase of its own.
_LEADING = re.compile(
    rf"^(?:(?:on|in(?! (?:(?:over|around) )?{COUNT} {UNIT}\b)|at(?! moment| present)|during|for|"
    r"over(?!.* (?:ago|back|earlier|before)$)|of|as of|within|throughout|around) )+"
)
_QUOTES = "'’‘`´"
# "may '22", where no quote closes.
_SHORT_YEAR = re.compile(rf"(?<=[ ,/-])[{_QUOTES}](\d\d)\b(?!.*\w[{_QUOTES}](?!s\b))")
# "may's", "2020's q1", but not "the 1990's".
_POSSESSIVE = re.compile(rf"(?<!\d0)[{_QUOTES}]s\b|[{_QUOTES}]s(?= (?!(?:or|and)\b))")
# A year may be left out behind a slash or a dot: 28-3 are days of a month.
_NUMERIC = re.compile(r"(?<![\d/.-])(\d{1,2})([/.-])(\d{1,2})(\2(?:\d{4}|\d\d)|(?<!-\d)(?<!-\d\d))(?![\d/.-])")
_PROPER = re.compile(rf"\b(?:{alternatives((*WEEKDAYS, *MONTHS))})(?=[ -]|$)|\bq[1-4]\b|\bipo\b")


class UnknownTime(ValueError):
    """A phrase names no time. `understood` are examples of phrases that do."""

    def __init__(
        self, phrase: str, reason: str = "names no time that is understood", calendar: Calendar | None = None
    ) -> None:
        self.phrase = phrase
        self.understood = (*EXAMPLES, *(calendar.examples if calendar else ()))
        super().__init__(f"{phrase!r} {reason}; understood are such as {', '.join(self.understood)}")


def resolve_time(phrase: str, moment: datetime, calendar: Calendar) -> Window:
    """The window that a phrase names at `moment` (without a zone: UTC).

    Raises:
        UnknownTime: the phrase names no time, or one outside the calendar.
    """
    return _window([_normalised(phrase, calendar)], moment, calendar)


def resolve_span(first: str, second: str, moment: datetime, calendar: Calendar) -> Window:
    """The window from the start of one phrase to the end of another, both included.

    They may come in either order, unless one is without a year, or a weekday without a week.

    Raises:
        UnknownTime: one of them names no time, or one without an end such as the next game.
    """
    return _window([_normalised(first, calendar), _normalised(second, calendar)], moment, calendar)


def _normalised(phrase: str, calendar: Calendar) -> str:
    """The phrase in lower case with plain dashes, without articles, quotes, leading prepositions and outer punctuation.

    Raises:
        UnknownTime: the phrase is empty then, or too long.
    """
    if len(phrase) > MAX_PHRASE_CHARS:
        raise UnknownTime(f"{phrase[:ECHO_CHARS]}...", f"is longer than {MAX_PHRASE_CHARS} characters", calendar)
    text = unicodedata.normalize("NFKC", phrase).casefold()
    text = re.sub(r"[‐-―−]", "-", text)
    text = _SHORT_YEAR.sub(lambda match: str(full_year(int(match[1]))), text)
    text = re.sub(rf"[{_QUOTES}\"“”?!;()\[\]{{}}]", "", _POSSESSIVE.sub("", text))
    text = re.sub(r"[,_\s]+|(?<=[a-z])\.(?= |$)|\.+$", " ", text)
    text = " ".join(re.sub(r"\bthe\b", " ", text).split())
    text = calendar.rewrite(re.sub(r"\bqtr\b", "quarter", text))
    text = re.sub(r"^(?:their|its|his|her) ", "", _LEADING.sub("", text))
    if not text:
        raise UnknownTime(phrase, calendar=calendar)
    return calendar.rewrite(text)


def _window(phrases: list[str], moment: datetime, calendar: Calendar) -> Window:
    """The window of a normalised phrase, or from one to another.

    Raises:
        UnknownTime: there is none.
    """
    text = calendar.spoken(" to ".join(phrases))
    try:
        clock = Clock.at(moment, calendar)
    except OverflowError as error:
        raise UnknownTime(text, "is asked at the calendar's end", calendar) from error
    first, *second = _month_first(phrases)
    try:
        period = span_of(first, second[0], clock) if second else period_of(first, clock)
    except (ValueError, OverflowError):
        # An impossible date such as 2024-02-30, or one before year 1 or after year 9999.
        period = None
    if period is None or (period.start and period.end and period.start >= period.end):
        raise UnknownTime(text, calendar=calendar)
    return Window(*astuple(period), now=clock.now, phrase=text, label=_label(period, clock, text))


def _month_first(phrases: list[str]) -> list[str]:
    """The phrases, with the month in front of the day in numeric dates.

    Dates with dots begin with the day, and so do all if one can only be read so, as in "1/5/2024 to 31/5/2024".
    """
    day_first = any(int(match[1]) > 12 for text in phrases for match in _NUMERIC.finditer(text))

    def swapped(match: re.Match[str]) -> str:
        return match.expand(r"\3\2\1\4") if (day_first or match[2] == ".") and int(match[3]) <= 12 else match[0]

    return [_NUMERIC.sub(swapped, text) for text in phrases]


def _label(period: Period, clock: Clock, text: str) -> str:
    words = _PROPER.sub(
        lambda match: match[0].upper() if len(match[0]) == 2 or match[0] == "ipo" else match[0].capitalize(), text
    )
    stamp = f"{clock.now:%Y-%m-%d %H:%M} {clock.calendar.zone_label}"
    last: date | None = period.end - timedelta(days=1) if period.end else None
    match period.kind:
        case "latest":
            return f"{words} (at {stamp})"
        case "previous_event" | "next_event":
            return f"{words} ({'before' if period.kind == 'previous_event' else 'after'} {stamp})"
        case "first" | "last":
            return f"{words} (of {period.start} to {last})" if period.start else f"{words} (the first on record)"
    if period.start is None or last is None:
        edge = f"from {period.start}" if period.start else f"until {last}" if last else "all dates"
        return f"{words} ({edge})"
    if period.start == last:
        return text if text == last.isoformat() else f"{words} ({last})"
    return f"{words} ({period.start} to {last})"
