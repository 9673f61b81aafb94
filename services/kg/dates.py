"""Times of questions about a domain, in the calendar of its folder.

A question carries the moment when it was asked; its program carries words such as "last friday" or "q4 2023".
"""

from datetime import datetime
from functools import cache
from importlib.resources import files

import yaml

from proto.base import parse_query_time as parse_contract_time
from services.kit.text import times
from services.kit.text.times import MAX_PHRASE_CHARS, Calendar, UnknownTime, Window

__all__ = [
    "MAX_PHRASE_CHARS", "UnknownTime", "Window", "calendar_of", "parse_query_time", "resolve_span", "resolve_time",
]  # fmt: skip


@cache
def calendar_of(domain: str) -> Calendar:
    """The calendar of a domain's folder, `calendar.yaml`; the asker's own where it has none.

    Raises:
        ValueError: the file holds what no calendar has.
    """
    file = files("services.kg.domains").joinpath(domain, "calendar.yaml")
    return Calendar.of(yaml.safe_load(file.read_text(encoding="utf-8"))) if domain and file.is_file() else Calendar()


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
    return times.resolve_time(phrase, query_time, calendar_of(domain))


def resolve_span(first: str, second: str, query_time: datetime, *, domain: str) -> Window:
    """The window from the start of one phrase to the end of another, both included, in either order.

    Raises:
        UnknownTime: one of them names no time, or one without an end such as the next game.
    """
    return times.resolve_span(first, second, query_time, calendar_of(domain))
