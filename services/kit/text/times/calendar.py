"""A subject's calendar as data, and a moment in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from services.kit.faults import faults_of, in_words
from services.kit.text.vocabulary import EVENTS, WEEKDAYS

Granularity = Literal["instant", "day", "week", "month", "quarter", "year", "range"]
Kind = Literal["window", "latest", "previous_event", "next_event", "first", "last"]
Snap = Literal["none", "previous", "next"]

# The zone of questions that name none.
PACIFIC = ZoneInfo("America/Los_Angeles")


class Calendar(BaseModel):
    """A subject's calendar.

    Attributes:
        zone: the time zone of today's date.
        zone_label: its name behind a time of day.
        week_begins: the first day of a week.
        business_day: the subject's word for a day with records; empty where every day may have one. With it, only
            Monday to Friday count of a week, the current day's record is partial, so that an unfinished period ends
            before it, and a day without a record gives way to the one before or after.
        nearest: whether a month or day without a year is the nearest one, for subjects with dates ahead such as
            fixtures; else it is the most recent one that has begun.
        season_month: the month in which a season of two years begins; 0 without seasons.
        events: words for occurrences, of which there is a last and a next one.
        first: phrases for the first day on record.
        rewrites: patterns of the subject's own phrases, each with the words of the rules; the rules' word for a day
            with records is "business day".
        examples: phrases of the subject, for the message of `UnknownTime`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    zone: ZoneInfo = PACIFIC
    zone_label: str = "PT"
    week_begins: Literal["sunday", "monday"] = "sunday"
    business_day: str = ""
    nearest: bool = False
    season_month: int = Field(0, ge=0, le=12)
    events: Annotated[frozenset[str], AfterValidator(EVENTS.union)] = EVENTS
    first: frozenset[str] = frozenset()
    rewrites: dict[re.Pattern[str], str] = {}
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Calendar":
        """The calendar of a file's content.

        Raises:
            ValueError: a key is unknown, or a value is invalid.
        """
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise ValueError(in_words(faults_of(error, content))) from error

    def rewrite(self, text: str) -> str:
        """A phrase in lower case, in the words of the rules."""
        for pattern, words in self.rewrites.items():
            text = pattern.sub(words, text)
        return text

    @cached_property
    def first_days(self) -> frozenset[str]:
        """`first`, in the words of the rules."""
        return frozenset(map(self.rewrite, self.first))

    def spoken(self, text: str) -> str:
        """A phrase with the subject's own word for a business day."""
        return text.replace("business day", self.business_day) if self.business_day else text


@dataclass(frozen=True, slots=True)
class Period:
    """Days [start, end) in a calendar; None is unbounded.

    `kind` selects records of the window: all (`window`), the newest at or before `now` (`latest`), the event before or
    after `now`, or the first or last day with a record. `snap` is the direction in which a single day without a record
    moves to one with a record: forward for a weekday's name, back for other days.
    """

    start: date | None
    end: date | None
    granularity: Granularity
    kind: Kind = "window"
    snap: Snap = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Period):
    """A period with its words, at the moment `now`."""

    now: datetime
    phrase: str
    label: str


@dataclass(frozen=True, slots=True)
class Clock:
    """A moment as a calendar sees it.

    `memory` has the periods of the phrases read at it: what is nested in a phrase is read once, however it is reached.
    """

    now: datetime
    calendar: Calendar
    memory: dict[str, Period | None] = field(default_factory=dict, compare=False, repr=False)

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
    def week(self) -> date:
        """The first day of the current week."""
        return self.week_of(self.today)

    @property
    def spoken_week(self) -> date:
        """`week`, but on a Sunday with business days the past working week, which people call this one."""
        is_early = self.business and self.today == self.week and self.today.weekday() == WEEKDAYS["sunday"]
        return self.week - timedelta(days=7) if is_early else self.week

    def week_of(self, day: date) -> date:
        """The first day of a day's week."""
        return day - timedelta(days=self.place_in_week(day.weekday()))

    def place_in_week(self, weekday: int) -> int:
        """How many days after the first of its week one is, Monday being 0."""
        return (weekday - WEEKDAYS[self.calendar.week_begins]) % 7

    def at_the_end(self, end: date | None) -> "Clock":
        """The clock on the last day before `end`, where a day or month without a year is the most recent one."""
        now = datetime.combine(end - timedelta(days=1), self.now.timetz()) if end else self.now
        return Clock(now, self.calendar.model_copy(update={"nearest": False}))

    def snap(self, where: Snap) -> Snap:
        """The direction on business days, else `none`: elsewhere a day without a record is a fact, not a gap."""
        return where if self.business else "none"

    def day(self, day: date, snap: Snap = "previous") -> Period:
        return Period(day, day + timedelta(days=1), "day", "window", self.snap(snap))

    def up_to_now(self, granularity: Granularity = "range", kind: Kind = "window", snap: Snap = "none") -> Period:
        """All days up to today."""
        return Period(None, self.tomorrow, granularity, kind, snap)
