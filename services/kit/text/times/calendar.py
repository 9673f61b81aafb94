"""How the records of a subject lie in time, as data; and a moment seen in such a calendar."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from services.kit.text.vocabulary import EVENTS

Granularity = Literal["instant", "day", "week", "month", "quarter", "year", "range"]
Kind = Literal["window", "latest", "previous_event", "next_event", "first", "last"]
Snap = Literal["none", "previous", "next"]

# Where the askers of questions without a zone live.
PACIFIC = ZoneInfo("America/Los_Angeles")


@dataclass(frozen=True, slots=True)
class Calendar:
    """A subject's calendar.

    Args:
        zone: the time zone whose date is today's.
        zone_label: how it is written behind a time of day.
        business_day: what the subject calls a day that has records; empty where every day may have one. With it, only
            Monday to Friday count of a week, the current day's record is partial, so that a period that is not over
            ends before it, and a day without a record gives way to the one before or after.
        nearest: whether a month or day without a year is the nearest one, as where fixtures lie ahead as often as
            behind; else it is the most recent one that has begun.
        season_month: the month in which a season of two years begins; 0 without seasons.
        events: what takes place, of which there is a last and a next one.
        first: phrases for the first day on record.
        rewrites: patterns of what the subject's people say, each with the words that the rules read; their word for a
            day with records is "business day".
        examples: phrases of the subject, for who wrote one that is not understood.
    """

    zone: ZoneInfo = PACIFIC
    zone_label: str = "PT"
    business_day: str = ""
    nearest: bool = False
    season_month: int = 0
    events: frozenset[str] = frozenset(EVENTS)
    first: frozenset[str] = frozenset()
    rewrites: tuple[tuple[re.Pattern[str], str], ...] = ()
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Calendar":
        """The calendar that a file describes, with the fields above as keys; what it leaves out is as here.

        Raises:
            ValueError: a key is none of these, a zone does not exist, a month or a pattern is none.
        """
        fields = dict(content)
        rewrites = fields.pop("rewrites", {})
        try:
            if "zone" in fields:
                fields["zone"] = ZoneInfo(fields["zone"])
            for name in ("events", "first"):
                if name in fields:
                    fields[name] = frozenset(fields[name]) | (frozenset(EVENTS) if name == "events" else frozenset())
            if not 0 <= fields.get("season_month", 0) <= 12:
                raise ValueError(f"{fields['season_month']} is no month")
            fields["examples"] = tuple(fields.get("examples", ()))
            fields["rewrites"] = tuple((re.compile(pattern), words) for pattern, words in rewrites.items())
            calendar = cls(**fields)
            return replace(calendar, first=frozenset(map(calendar.rewritten, calendar.first)))
        except (TypeError, KeyError, re.error) as error:
            raise ValueError(f"a calendar: {error}") from error

    def rewritten(self, text: str) -> str:
        """A phrase in lower case in the words that the rules read."""
        for pattern, words in self.rewrites:
            text = pattern.sub(words, text)
        return text

    def spoken(self, text: str) -> str:
        """The same with the subject's own word for a business day."""
        return text.replace("business day", self.business_day) if self.business_day else text


@dataclass(frozen=True, slots=True)
class Window:
    """Days [start, end) in a calendar; None is unbounded.

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
class Period:
    """A window without its words."""

    start: date | None
    end: date | None
    granularity: Granularity
    kind: Kind = "window"
    snap: Snap = "none"


@dataclass(frozen=True, slots=True)
class Clock:
    """A moment as a calendar sees it."""

    now: datetime
    calendar: Calendar = field(default=Calendar())

    @classmethod
    def at(cls, moment: datetime, calendar: Calendar) -> "Clock":
        """The moment, without a zone in UTC.

        Raises:
            OverflowError: it lies at the end of all calendars.
        """
        return cls((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(calendar.zone), calendar)

    @property
    def today(self) -> date:
        return self.now.date()

    @property
    def tomorrow(self) -> date:
        return self.today + timedelta(days=1)

    @property
    def business(self) -> bool:
        return bool(self.calendar.business_day)

    @property
    def sunday(self) -> date:
        """The Sunday that begins the current week."""
        return self.today - timedelta(days=(self.today.weekday() + 1) % 7)

    @property
    def spoken_sunday(self) -> date:
        """The same, but on a Sunday the working week spoken of as this one is the week that began last Monday."""
        return self.sunday - timedelta(days=7) if self.business and self.today == self.sunday else self.sunday

    def snap(self, where: Snap) -> Snap:
        """Only business days snap: elsewhere a day without a record is a fact, not a gap."""
        return where if self.business else "none"

    def day(self, day: date, snap: Snap = "previous") -> Period:
        return Period(day, day + timedelta(days=1), "day", "window", self.snap(snap))

    def up_to_now(self, granularity: Granularity = "range", kind: Kind = "window", snap: Snap = "none") -> Period:
        """All days up to today."""
        return Period(None, self.tomorrow, granularity, kind, snap)
