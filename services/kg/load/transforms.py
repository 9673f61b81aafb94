"""Transforms that a mapping names with `as`: each takes a value of a source and returns a plain one, or null."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from services.kg.load.errors import BadRow
from services.kg.load.identity import slug
from services.kg.load.values import (
    amount,
    beginning,
    day,
    following,
    leniently,
    moment,
    number,
    text,
    truth,
    written_day,
)

Transform = Callable[[Any], Any]


def _positive(value: object) -> float | None:
    """A number, null for 0, which budgets and revenues have for unknown."""
    result = number(value)
    return result if result and result > 0 else None


def _moment(value: object) -> str | None:
    return None if text(value) is None else moment(value)


def _epoch(value: object) -> str | None:
    """The day of a number of seconds since 1970; null for anything else."""
    try:
        seconds = number(value)
        return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds is not None else None
    except (BadRow, OverflowError, OSError, ValueError):
        return None


def _plain(value: object) -> str | None:
    """A text; an object, a list or a truth value as JSON."""
    return text(json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else value)


def _listed(value: object) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple, set)) else ()


def _texts(value: object) -> list[str]:
    """Each text of a list once, in its order."""
    return list(dict.fromkeys(one for one in map(text, _listed(value)) if one))


def _names(value: object) -> list[str]:
    """Each name of a list once, in alphabetical order, for sources without an order."""
    return sorted(_texts(value))


def _count(value: object) -> int | None:
    """The number of different values in a list; null for none."""
    return len({str(one) for one in _listed(value) if one is not None}) or None


def _joined(value: object) -> str | None:
    return "; ".join(str(one) for one in value) or None if isinstance(value, (list, tuple)) else None


def _by_column(value: object) -> list[dict[str, Any]]:
    """Rows of a table by column, {"date": {"0": ..}, ..}, perhaps as a text of JSON; `key` holds their labels."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise BadRow("", "is no table") from None
    if not value:
        return []
    if not isinstance(value, Mapping) or not all(isinstance(column, Mapping) for column in value.values()):
        raise BadRow("", "is no table")
    labels = dict.fromkeys(label for column in value.values() for label in column)
    return [{"key": label} | {name: column.get(label) for name, column in value.items()} for label in labels]


TRANSFORMS: Mapping[str, Transform] = {
    "text": text,
    # "nan" may be a ticker.
    "upper": lambda value: None if value is None else str(value).strip().upper() or None,
    "lower": lambda value: None if value is None else str(value).strip().lower() or None,
    "slug": lambda value: slug(plain) if (plain := text(value)) else None,
    "day": day,
    "day_first": partial(written_day, day_first=True),
    "month_first": partial(written_day, day_first=False),
    "moment": _moment,
    "epoch": _epoch,
    "number": number,
    "amount": amount,
    "positive": _positive,
    "truth": truth,
    # Null in place of a bad row.
    "perhaps_day": leniently(day),
    "perhaps_number": leniently(number),
    "plain": _plain,
    # The first day of a day, month or year, and the first one after it.
    "beginning": lambda value: beginning(plain) if (plain := day(value)) else None,
    "following": lambda value: following(plain) if (plain := day(value)) else None,
    "texts": _texts,
    "names": _names,
    "count": _count,
    "joined": _joined,
    "by_column": _by_column,
}
