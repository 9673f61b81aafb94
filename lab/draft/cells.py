"""The columns of a table from its header and cells: names, types, units, days as people write them."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import count

from lab.draft.columns import NUMBERED, NUMERIC, YEAR, Column, ColumnTransform, ColumnType, DateOrder
from lab.draft.headers import MAX_NAME, ascii_words, column_name
from lab.draft.vocabulary import units, words_of_names
from services.kg.load.values import NO_NUMBER, NOTHING, parts_of_amount, written_day
from services.kit.text.dates import date_of

# What an INTEGER of PostgreSQL holds.
MAX_INTEGER = 2**31 - 1
# A column of 0 and 1 in fewer rows may be a count.
MIN_SWITCHED = 10

_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17}|[1-9]\d{0,2}(?:,\d{3})+)")
_NUMBER = re.compile(r"-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?(?:[eE][+-]?\d+)?")
# Digits after a leading 0 are no quantity.
_POSTCODE = re.compile(r"-?0\d")
_DATE = re.compile(r"\d{4}-\d{1,2}(?:-\d{1,2})?(?:[T ].*)?")
_TIMED = re.compile(r"\d[T ]+\d{1,2}:\d\d")
# A day as people write it: a year in four digits, a month's name, or slashes. 1.10.24 may be a version.
_WRITTEN = re.compile(r"(?=.*(?:\d{4}|[A-Za-z]{3}|/)).*\d.*")
_OF_NUMBERS = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2\d+")
# Thousands and millions behind a figure, which are no unit: 12K, 1.5M.
_SCALES = frozenset({"K", "k", "M", "MM", "B", "bn", "Bn", "T"})
_TRUTH = frozenset({"true", "false", "yes", "no", "y", "n"})


def read_columns(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[Column]:
    """The columns of a table that have a name and a value."""
    cells: list[list[str]] = [[] for _ in headers]
    for row in rows:
        for index, cell in enumerate(row[: len(headers)]):
            if (stripped := cell.strip()).casefold() not in NOTHING:
                cells[index].append(stripped)
    columns: list[Column] = []
    for place, (header, filled) in enumerate(zip(headers, cells, strict=True), 1):
        # A header in another alphabet gives no name.
        name = column_name(header) or (f"column_{place}" if any(map(str.isalpha, header)) else "")
        if not name or not filled:
            continue
        figures = [one for one in filled if one.casefold() not in NO_NUMBER]
        if figures and guess_type(frozenset(figures)) in NUMERIC:
            filled = figures
        values = frozenset(filled)
        transform: ColumnTransform = date_order(values)
        if transform:
            days = (written_day(one, day_first=transform == "day_first") for one in values)
            values = frozenset(day for day in days if day)
        elif unit := unit_of(amounts := [parts_of_amount(one) for one in figures]):
            filled, transform = figures, "amount"
            values = frozenset(parts[0] for parts in amounts if parts)
            name = name if {*name.split("_")} & units().keys() else f"{name[: MAX_NAME - len(unit) - 1]}_{unit}"
        names = {column.name for column in columns}
        if name in names:
            numbered = (f"{name[: MAX_NAME - len(number)]}{number}" for number in map(str, count(2)))
            name = next(one for one in numbered if one not in names)
        timed = all(_TIMED.search(one) for one in filled) and (bool(date_order(values)) or guess_type(values) == "date")
        if timed and not transform:
            values = frozenset(one[:10] for one in values)
        columns.append(Column(header, name, _type_of(name, values, len(filled)), values, len(filled), transform, timed))
    return columns


def unit_of(amounts: Collection[tuple[str, str, str] | None]) -> str:
    """The unit or the currency, as headers have it, that amounts are written with; empty without one.

    It is the same in all amounts that have one; a cell that is none, None, leaves no unit.
    """
    written: set[str] = set()
    for parts in amounts:
        if parts is None or parts[2] in _SCALES or (parts[1] and parts[2]) or _POSTCODE.match(parts[0].lstrip("-")):
            return ""
        written.add(ascii_words(parts[1] or parts[2]))
    (unit, *others) = sorted(written - {""}) or [""]
    return unit if not others and unit in units() else ""


def date_order(values: Collection[str]) -> DateOrder:
    """How days are written that are not in ISO 8601; empty where these are no such days.

    Of two numbers that may both be the month in all of them the first is taken for the day.
    """
    if all(_DATE.fullmatch(one) for one in values) or not all(_WRITTEN.fullmatch(one) for one in values):
        return ""
    days = (date_of(one.lower()) for one in values)
    if not all(day is not None and any(day.days()) for day in days):
        return ""
    seconds = (int(match[3]) for one in values if (match := _OF_NUMBERS.match(one)))
    return "month_first" if any(second > 12 for second in seconds) else "day_first"


def _type_of(name: str, values: frozenset[str], filled: int) -> ColumnType:
    """The type of a column by its name and its values, which it has in so many rows."""
    is_switch = name.startswith(("is_", "has_")) or name in words_of_names("switches")
    if values <= {"0", "1"} and (is_switch or (len(values) == 2 and filled >= MIN_SWITCHED)):
        return "flag"
    deed, last = name.removesuffix("_in"), name.split("_")[-1]
    first, *behind = deed.split("_")
    is_past = deed.endswith("ed") or deed.split("_")[-1] in words_of_names("done")
    # Called to the bar, admitted to the academy.
    is_past |= first.endswith("ed") and not words_of_names("joints").isdisjoint(behind[:1])
    if is_past and all(YEAR.fullmatch(one) for one in values):
        return "date"
    column_type = guess_type(values)
    # 1.10 comes after 1.9; 2024-07 is the seventh order of a year.
    is_number = column_type == "number" and last in words_of_names("numbered")
    return "text" if is_number or (column_type == "date" and last in NUMBERED) else column_type


def guess_type(values: frozenset[str]) -> ColumnType:
    """The narrowest type that all values have."""
    if all(_WHOLE.fullmatch(one) for one in values):
        largest = max(abs(int(one.replace(",", ""))) for one in values)
        return "integer" if largest <= MAX_INTEGER else "bigint"
    if all(_NUMBER.fullmatch(one) and not _POSTCODE.match(one) for one in values):
        return "number"
    if all(_DATE.fullmatch(one) for one in values):
        return "date"
    return "flag" if all(one.casefold() in _TRUTH for one in values) else "text"
