"""Conditions on documents as people and addresses write them."""

import json
import math
import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query
from pydantic import ValidationError

from proto.collections import FieldValue, Filter
from services.kit.errors import refusal
from services.kit.faults import faults_of, in_words

# All together, percent-encoded, stay below the 64 KiB that a server reads of an address.
MAX_CHARS = 250
MAX_CONDITIONS = 16
# As JSON writes numbers; 2024_01, 01234 and nan are texts.
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def parse_filter(text: str) -> Filter:
    """`FIELD=VALUE`, or a `Filter` as JSON.

    Raises:
        ValueError: it is neither.
    """
    if text.lstrip().startswith("{"):
        return Filter.model_validate_json(text)
    field, equals, value = text.partition("=")
    if not equals:
        raise ValueError("is neither FIELD=VALUE nor JSON")
    return Filter(field=field, equals=parse_value(value))


def parse_value(text: str) -> FieldValue:
    """A boolean, a number, or else a text; quotes make anything a text."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text


Condition = Annotated[str, Query(max_length=MAX_CHARS)]


def query_filters(
    filter: Annotated[
        list[Condition],
        Query(max_length=MAX_CONDITIONS, description="`FIELD=VALUE`, or a `Filter` as JSON; repeated, all must hold."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> tuple[Filter, ...]:
    """The filters in an address."""
    try:
        return tuple(map(parse_filter, filter))
    except ValueError as error:
        message = in_words(faults_of(error)) if isinstance(error, ValidationError) else str(error)
        raise refusal("filter", message, "FIELD=VALUE, or a Filter as JSON") from error


Filters = Annotated[tuple[Filter, ...], Depends(query_filters)]


def as_query(filters: Sequence[Filter]) -> list[tuple[str, str]]:
    """Filters as query parameters, which `query_filters` reads."""
    return [("filter", as_text(item)) for item in filters]


def as_text(item: Filter) -> str:
    """A filter as `parse_filter` reads it: FIELD=VALUE, which is no longer than people write it, or else JSON."""
    if item.equals is not None and item == Filter(field=item.field, equals=item.equals):
        for value in (str(item.equals), f'"{item.equals}"'):
            if _same(parse_value(value), item.equals):
                return f"{item.field}={value}"
    return json.dumps(item.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, separators=(",", ":"))


def _same(one: FieldValue, other: FieldValue) -> bool:
    # True is 1 for Python, and no number here.
    return type(one) is type(other) and one == other
