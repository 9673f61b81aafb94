"""Phrases of time to half-open windows of days, in the calendar of a subject.

"last friday" or "q4 2023" and the moment of the question together name a window. Calendars differ in their zone, so one
moment can fall on two days.
"""

import re
import unicodedata
from dataclasses import astuple
from datetime import date, datetime, timedelta

from services.kit.text.times import periods
from services.kit.text.times.calendar import Calendar, Clock, Period, Window
from services.kit.text.times.phrases import period_of
from services.kit.text.vocabulary import MONTHS, WEEKDAYS, alternatives

__all__ = ["MAX_PHRASE_CHARS", "Calendar", "UnknownTime", "Window", "resolve_span", "resolve_time"]

MAX_PHRASE_CHARS = 80
# Characters of a phrase that is too long in its error's message.
ECHO_CHARS = 40
EXAMPLES = (
    "yesterday", "last friday", "this week", "past 3 months", "first week of january", "q4 2023", "2024-02-13",
    "2024-02", "since 2020", "2000-2010", "latest",
)  # fmt: skip

# "in 2 days" keeps its "in", without which it would lie in the past; "at the moment" is a phrase of its own.
_LEADING = re.compile(
    r"^(?:(?:on|in(?! (?:\d{1,3}|a|an|one|two|three) )|at(?! moment| present)|during|for|over|of|as of|within|"
    r"throughout|around) )+"
)
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
    text = _normalised(phrase, calendar)
    clock = _clock(moment, calendar, text)
    return _window(_period(text, clock), clock, text)


def resolve_span(first: str, second: str, moment: datetime, calendar: Calendar) -> Window:
    """The window from the start of one phrase to the end of another, both included, in either order.

    Raises:
        UnknownTime: one of them names no time, or one without an end such as the next game.
    """
    start, end = _normalised(first, calendar), _normalised(second, calendar)
    text = f"{start} to {end}"
    clock = _clock(moment, calendar, text)
    try:
        period = periods.span(_period(start, clock), _period(end, clock), clock)
    except OverflowError:
        period = None
    if period is None:
        raise UnknownTime(calendar.spoken(text), calendar=calendar)
    return _window(period, clock, text)


def _clock(moment: datetime, calendar: Calendar, text: str) -> Clock:
    try:
        return Clock.at(moment, calendar)
    except OverflowError as error:
        raise UnknownTime(calendar.spoken(text), "is asked at the calendar's end", calendar) from error


def _normalised(phrase: str, calendar: Calendar) -> str:
    """The phrase in lower case with plain dashes, without articles, quotes, leading prepositions and outer punctuation.

    Raises:
        UnknownTime: the phrase is empty then, or too long.
    """
    if len(phrase) > MAX_PHRASE_CHARS:
        raise UnknownTime(f"{phrase[:ECHO_CHARS]}...", f"is longer than {MAX_PHRASE_CHARS} characters", calendar)
    text = unicodedata.normalize("NFKC", phrase).casefold()
    text = re.sub(r"[‐-―−]", "-", text)
    text = re.sub(r"['’`´]s\b|[\"'’‘“”`´?!;()\[\]{}]", "", text)
    text = re.sub(r"[,_\s]+|(?<=[a-z])\.(?= |$)|\.+$", " ", text)
    text = " ".join(re.sub(r"\bthe\b", " ", text).split())
    text = calendar.rewrite(re.sub(r"\bqtr\b", "quarter", text))
    text = re.sub(r"^(?:their|its|his|her) ", "", _LEADING.sub("", text))
    if not text:
        raise UnknownTime(phrase, calendar=calendar)
    return calendar.rewrite(text)


def _period(text: str, clock: Clock) -> Period:
    """The period of a normalised phrase.

    Raises:
        UnknownTime: there is none.
    """
    try:
        period = period_of(text, clock)
    except (ValueError, OverflowError):
        # An impossible date such as 2024-02-30, or one before year 1 or after year 9999.
        period = None
    if period is None or (period.start and period.end and period.start >= period.end):
        raise UnknownTime(clock.calendar.spoken(text), calendar=clock.calendar)
    return period


def _window(period: Period, clock: Clock, text: str) -> Window:
    text = clock.calendar.spoken(text)
    return Window(*astuple(period), now=clock.now, phrase=text, label=_label(period, clock, text))


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
