"""Days, months and years as English texts write them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from services.kit.text.vocabulary import DAY_OF_MONTH, MONTH, MONTHS, ORDINAL_ENDING, WEEKDAY, YEAR, blanked

# The last year in two digits that is in this century.
LAST_SHORT_YEAR = 30

_MON = rf"(?P<mon>{MONTH})\b\.?"
_DAY = rf"(?P<d>{DAY_OF_MONTH})"
_YEAR = rf"(?P<y>{YEAR})"
_OF_WEEK = rf"(?:\b(?:{WEEKDAY})s?\.?,?\s+)?"
_CLOCK = r"(?:[t ]\d{1,2}:\d\d.*)?"

_WITHIN = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\d-]){_YEAR}[-/.](?P<m>0?[1-9]|1[0-2])[-/.]{_DAY}(?!\d)",
        r"(?<![\d/.-])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4}|\d{2})(?![\d/])",
        rf"{_OF_WEEK}\b{_MON}\s+(?:the\s+)?{_DAY}{ORDINAL_ENDING}?(?![\d.]*\d)(?:\s*,?\s*{_YEAR}\b)?",
        rf"{_OF_WEEK}(?<![\w.,$]){_DAY}{ORDINAL_ENDING}?\s+(?:of\s+)?{_MON}(?:,?\s+{_YEAR}\b)?",
        rf"\b{_MON},?\s+(?:of\s+)?{_YEAR}\b",
    )
)
# Eight digits, for callers that exclude numbers.
_COMPACT = re.compile(rf"(?<!\d)(?P<y>{YEAR})(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])(?!\d)")
# Forms that are dates only when they are the whole text.
_ANY_YEAR = r"(?P<y>\d{4})"
_OF_YEAR = rf"(?:(?:of|in|from|for|during) )?{_ANY_YEAR}"
_WHOLE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_OF_WEEK}{_ANY_YEAR}[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}}){_CLOCK}",
        rf"{_ANY_YEAR}(?P<m>\d\d)(?P<d>\d\d)",
        r"(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?:[-/.](?P<y>\d{4}|\d\d))?",
        rf"{_OF_WEEK}{_MON} (?P<d>\d{{1,2}}){ORDINAL_ENDING}?(?:,? {_OF_YEAR})?{_CLOCK}",
        rf"{_OF_WEEK}(?P<d>\d{{1,2}}){ORDINAL_ENDING}?[ -](?:of )?{_MON}(?:[, -]+{_OF_YEAR})?"
        rf"{_CLOCK}",
        # Spreadsheets write 01-Dec-25.
        rf"{_OF_WEEK}(?P<d>\d{{1,2}})(?P<by>[ /-]){_MON}(?P=by)(?P<y>\d\d){_CLOCK}",
        rf"{_ANY_YEAR} {_MON} (?P<d>\d{{1,2}}){ORDINAL_ENDING}?",
        rf"{_ANY_YEAR}[-/](?P<m>\d{{1,2}})",
        rf"{_MON}(?:[, -]+{_OF_YEAR})?",
        rf"{_ANY_YEAR} {_MON}",
    )
)
_VERB = re.compile(r"\s*[a-z]")


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date and its place; 0 where year or day are not written.

    A `numeric` date has month and day as two numbers, of which the first is the month, as in America, unless it cannot
    be one. The year of a `short` date has two digits.
    """

    start: int
    end: int
    year: int
    month: int
    day: int = 0
    short: bool = False
    numeric: bool = False

    @property
    def parts(self) -> tuple[int, int, int]:
        return self.year, self.month, self.day

    def days(self) -> Iterator[date]:
        """The possible days: none unless the date is complete, two where month and day could change places."""
        orders = [(self.month, self.day)]
        if self.numeric and self.month != self.day and self.day <= 12:
            orders.append((self.day, self.month))
        for month, day in orders:
            try:
                yield date(self.year, month, day)
            except ValueError:
                # Incomplete or impossible.
                continue


def dates(text: str, *, compact: bool = False) -> list[WrittenDate]:
    """The dates of a text in lower case, complete or not, in the order of their forms, without overlap.

    `compact` says whether eight digits may be a day: `20240213`.
    """
    results: list[WrittenDate] = []
    for pattern in (*_WITHIN, _COMPACT) if compact else _WITHIN:
        rest = text
        for match in pattern.finditer(text):
            day = _date(match)
            if day and not _is_verb(match):
                results.append(day)
                rest = blanked(rest, day.start, day.end)
        text = rest
    return results


def date_of(text: str) -> WrittenDate | None:
    """The date that a text in lower case consists of, with an optional weekday before it and time behind."""
    for pattern in _WHOLE:
        if match := pattern.fullmatch(text):
            return _date(match)
    return None


def full_year(digits: int) -> int:
    """The year that two digits mean."""
    return digits + (2000 if digits <= LAST_SHORT_YEAR else 1900)


def whole_years(first: date, last: date) -> int:
    """The full years between two days: an age."""
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


def iso_date(parts: Iterable[str]) -> str:
    """A year, a year and a month, or a date as ISO 8601: ("1982", "September", "15") is 1982-09-15.

    Impossible parts at the end are dropped; empty without a year.
    """
    numbers: list[int] = []
    for part in parts:
        word = part.strip().lower()
        if word in MONTHS:
            numbers.append(MONTHS[word])
        elif word.isdecimal() and len(word) <= 4:
            numbers.append(int(word))
        else:
            break
    # A smaller first number is a day, or a truncated year.
    while numbers and numbers[0] > 31:
        try:
            date(*([*numbers, 1, 1])[:3])
        except ValueError:
            numbers.pop()
            continue
        return "-".join([f"{numbers[0]:04d}", *(f"{part:02d}" for part in numbers[1:3])])
    return ""


def _date(match: re.Match[str]) -> WrittenDate | None:
    parts = match.groupdict()
    year_text = parts.get("y") or ""
    year, short = int(year_text or 0), len(year_text) == 2
    numeric = parts.get("a") is not None
    if numeric:
        month, day = int(parts["a"]), int(parts["b"])
        if month > 12:
            month, day = day, month
        if not day:
            return None
    else:
        month = int(parts["m"]) if parts.get("m") else MONTHS[parts["mon"]]
        day = int(parts.get("d") or 0)
    if short:
        year = full_year(year)
    # Some sources write an unknown day as 0, but only among numbers.
    if not 1 <= month <= 12 or day > 31 or (parts.get("mon") and parts.get("d") and not day):
        return None
    return WrittenDate(*match.span(), year, month, day, short, numeric)


def _is_verb(match: re.Match[str]) -> bool:
    """Whether "may" is the verb: "of 20 may come"."""
    parts = match.groupdict()
    return parts.get("mon") == "may" and not parts.get("y") and _VERB.match(match.string, match.end()) is not None
