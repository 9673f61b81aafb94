"""Values of programs on their way to SQL, and values of rows on their way back."""

import operator
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, cast

from sqlalchemy import ColumnElement

from services.kg.errors import LanguageError, ParseError
from services.kg.language.catalogue import Key
from services.kg.language.tree import Literal_, Value
from services.kg.outcome import Scalar
from services.kit.text.numbers import number_of
from services.kit.text.times import Window

COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    **{"eq": operator.eq, "neq": operator.ne},
    **{"ge": operator.ge, "le": operator.le, "gt": operator.gt, "lt": operator.lt},
}
_COMBINED: Mapping[str, Callable[[list[float]], float | None]] = {
    "diff": lambda numbers: numbers[0] - sum(numbers[1:]),
    "ratio": lambda numbers: numbers[0] / numbers[1] if len(numbers) == 2 and numbers[1] else None,
    "avg": lambda numbers: sum(numbers) / len(numbers),
    **{"sum": sum, "min": min, "max": max},
}


def within(column: Any, window: Window) -> list[ColumnElement[bool]]:
    """Clauses that keep a date inside a window."""
    clauses = [] if window.start is None else [column >= lower_bound(window.start)]
    return clauses if window.end is None else [*clauses, column < lower_bound(window.end)]


def lower_bound(day: date | None) -> str:
    """The shortest text that sorts before every date from this day on: so `2023` counts as in 2023."""
    if day is None:
        return "9999"
    if (day.month, day.day) == (1, 1):
        return f"{day.year:04d}"
    return f"{day.year:04d}-{day.month:02d}" if day.day == 1 else day.isoformat()


def compare(column: Any, sign: str, value: Any) -> ColumnElement[bool]:
    """An operator of the language as a clause."""
    return cast(ColumnElement[bool], COMPARED.get(sign, COMPARED["eq"])(column, value))


def plain(value: Value) -> Scalar:
    """The value of a literal.

    Raises:
        ParseError: the value is a reference, a list or a query.
    """
    if isinstance(value, Literal_):
        return value.value
    raise ParseError("a plain value is needed here")


def integer(value: Scalar) -> int:
    """A year or a rank; `61st grammy (2018)` is 2018."""
    text = str(value)
    digits = re.findall(r"(?<!\d)(?:18|19|20)\d\d(?!\d)", text) or re.findall(r"-?\d{1,9}", text)
    if not digits:
        raise LanguageError(f'"{text[:40]}" is no number')
    return int(digits[-1])


def number(value: Scalar, key: Key) -> float | int:
    """`$5 million`, `1,200` or 3 as a number; for a flag 1 where people mean true, else 0.

    Raises:
        LanguageError: the value is no number.
    """
    if key.kind == "flag":
        return int(str(value).strip().lower() in {"true", "1", "yes", "won", "win", "winner"})
    if isinstance(value, int | float):
        return value
    amount_and_unit = number_of(str(value))
    if amount_and_unit is None:
        raise LanguageError(f'{key.name} is compared with "{str(value)[:40]}", which is no number')
    amount, unit = float(amount_and_unit[0]), amount_and_unit[1]
    return amount / 100 if unit == "%" and key.kind == "percent" else amount


def scalar(value: Any) -> Scalar:
    """A database value as one of JSON's."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return float(value) if hasattr(value, "__float__") else str(value)


def combined(how: str, values: list[Scalar]) -> Scalar:
    """A combination of numbers; of two dates the days between; None where it cannot be computed."""
    if how == "diff" and len(values) == 2 and all(isinstance(value, str) for value in values):
        try:
            first, last = (date.fromisoformat(str(value)[:10]) for value in values)
        except ValueError:
            return None
        return abs((first - last).days)
    numbers = [value for value in values if isinstance(value, int | float)]
    return _COMBINED[how](numbers) if numbers and len(numbers) == len(values) else None


def words_of(key: str) -> list[str]:
    """The words of a key: birth, place of `birth_place`, `birthPlace` or "birth place"."""
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower())
