"""Readers of values as sources write them: dates, numbers and texts, with null for unknown.

They raise BadRow for a value of another type, of the field that the caller names.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from services.kg.load.errors import BadRow
from services.kit.text.dates import date_of

T = TypeVar("T")

_COMPACT_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ].*)?")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(?::(\d{2}))?.*")
# What may stand before and behind a figure: a currency, a percent sign, a unit.
SIGN = "[£$€¥]"
UNIT = r"(?:[£$€¥%]|[^\W\d_][^\s\d]{0,11})"
_AMOUNT = re.compile(rf"(-?)({SIGN}?) ?(-?\d+(?:,\d{{3}})*(?:\.\d+)?) ?({UNIT})?")
# Commas between thousands, or as in 1,00,000.
_GROUPED = re.compile(r"[^,]*?\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)[^,]*")
NOTHING = frozenset({"", "none", "null", "nan", "n/a", "nat", "unknown"})
# Names and codes elsewhere: Namibia's is NA.
NO_NUMBER = NOTHING | {"na", "-", "--", ".", "..", "*", "?"}
MAX_TEXT = 20_000


def text(value: object, *, limit: int = MAX_TEXT) -> str | None:
    """A stripped text; null for an empty one and for words that mean nothing."""
    if value is None or isinstance(value, (dict, list)):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    plain = str(value).replace("\x00", "").strip()
    return None if plain.casefold() in NOTHING else plain[:limit]


def name(value: object) -> str | None:
    """A stripped text; null for an empty one alone, since "Null" is a name and NAN a ticker."""
    if value is None or isinstance(value, (dict, list)):
        return None
    return str(value).replace("\x00", "").strip()[:MAX_TEXT] or None


def leniently(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """The same reader, with null in place of BadRow."""

    def lenient(value: Any) -> T | None:
        try:
            return read(value)
        except BadRow:
            return None

    return lenient


def needed(row: Mapping[str, Any], field: str) -> str:
    """The name in a field.

    Raises:
        BadRow: there is none.
    """
    plain = name(row.get(field))
    if plain is None:
        raise BadRow(field, "is missing")
    return plain


def day(value: object, field: str = "") -> str | None:
    """A date in ISO 8601, complete or not: "2003-04-21", "2003-04", "2003"; null for an empty value.

    Also reads 20240228, 2024-2-8 and dates with a time of day.
    """
    return _parsed(value, field, _iso, "date")


def _parsed(value: object, field: str, parse: Callable[[str], str | None], what: str) -> str | None:
    plain = text(value)
    parsed = parse(plain) if plain is not None else None
    if plain is not None and parsed is None:
        raise BadRow(field, f"{plain[:40]!r} is no {what}")
    return parsed


@lru_cache(maxsize=65_536)
def _iso(plain: str) -> str | None:
    """The date that a text is; null if it is none."""
    match = _COMPACT_DATE.fullmatch(plain) or _DATE.fullmatch(plain)
    if not match:
        return None
    year, month, of_month = match.groups()
    # Some sources write an unknown month or day as 0.
    parts = [int(part) for part in (year, month, of_month) if part is not None and int(part)]
    try:
        date(*[*parts, 1, 1][:3])
    except (ValueError, TypeError):
        return None
    return "-".join([f"{parts[0]:04d}", *(f"{part:02d}" for part in parts[1:])])


def written_day(value: object, *, day_first: bool) -> str | None:
    """A day as people write it, in ISO 8601: "3/9/2016", "14 March 2019", "Mar 14, 2019"; null for an empty value.

    Args:
        day_first: whether the first of two numbers is the day where each may be the month.
    """
    return _parsed(value, "", lambda plain: _written(plain, day_first), "day")


@lru_cache(maxsize=65_536)
def _written(plain: str, day_first: bool) -> str | None:
    """The day that a text is; null if it is none."""
    written = date_of(plain.lower())
    # Of two possible days the one whose month comes first is the first.
    days = list(written.days()) if written is not None else []
    return days[-1 if day_first else 0].isoformat() if days else None


def moment(value: object, field: str = "") -> str:
    """ "2024-02-28 10:49:00 EST" as "2024-02-28T10:49:00": local time in the table's zone."""
    match = _MOMENT.fullmatch(str(value or "").strip())
    if not match:
        raise BadRow(field, f"{str(value)[:40]!r} is no date and time")
    of_day, minutes, seconds = match.groups()
    day(of_day, field)
    return f"{of_day}T{minutes}:{seconds or '00'}"


def number(value: object, field: str = "") -> float | None:
    """A finite number; null for an empty value, signs that mean it, and infinities, which are divisions by zero."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or value is None:
        return None
    if not isinstance(value, (int, float)):
        plain = text(value)
        if plain is None or plain.casefold() in NO_NUMBER:
            return None
        try:
            # 12,5 has no thousands.
            value = float(plain.replace(",", "") if _GROUPED.fullmatch(plain) else plain)
        except ValueError:
            raise BadRow(field, f"{plain[:40]!r} is no number") from None
    try:
        result = float(value)
    except OverflowError:
        raise BadRow(field, "is too large") from None
    return result if math.isfinite(result) else None


def amount(value: object) -> float | None:
    """The figure of an amount with its currency or unit, see `parts_of_amount`; null for an empty value."""
    parts = parts_of_amount(value.strip()) if isinstance(value, str) else None
    return number(value if parts is None else parts[0])


def parts_of_amount(plain: str) -> tuple[str, str, str] | None:
    """The figure of an amount, the sign before it and the sign or unit behind it: "£1,200.50", "5.2%", "12 kg", "12".

    None for other texts. A unit is no scale, as it is for `number_of`: 12 m are metres and no millions.
    """
    match = _AMOUNT.fullmatch(plain)
    return None if match is None else (f"{match[1]}{match[3]}", match[2], match[4] or "")


def whole(value: object, field: str = "") -> int | None:
    """A whole number, as `number`; BadRow beyond 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool):
        result = value
    else:
        plain = number(value, field)
        if plain is None:
            return None
        result = round(plain)
    if abs(result) >= 2**63:
        raise BadRow(field, "is too large")
    return result


def truth(value: object, field: str = "") -> bool:
    """A truth value in words or numbers; "False" and "" are false."""
    plain = str(value).strip().casefold()
    if plain in {"true", "1", "yes", "y", "won", "winner"}:
        return True
    if plain in {"false", "0", "no", "n", "none", "", "nominated", "nominee"}:
        return False
    raise BadRow(field, f"{plain[:40]!r} is neither true nor false")


def following(of_day: str) -> str:
    """The first day after a day, month or year: the exclusive end of "2024-02-28", "2024-02" or "2024"."""
    parts = [int(part) for part in of_day.split("-")]
    if len(parts) == 1:
        return f"{parts[0] + 1:04d}-01-01"
    if len(parts) == 2:
        year, month = divmod(parts[0] * 12 + parts[1], 12)
        return f"{year:04d}-{month + 1:02d}-01"
    return (date(*parts) + timedelta(days=1)).isoformat()


def beginning(of_day: str) -> str:
    """The first day of a day, month or year."""
    return of_day + "-01" * (2 - of_day.count("-"))
