"""Faults that pydantic finds in what a caller sends, in words of ours."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from proto.base import FieldError

MAX_FAULTS = 20
# A body that nobody has at hand: then each part of a location is taken for a field's name.
UNKNOWN = object()

# Pydantic's kinds of errors: the verb behind "must", and the limit.
_LIMITS: dict[str, tuple[str, str]] = {
    "too_long": ("have", "at most {max_length} items"),
    "too_short": ("have", "at least {min_length} items"),
    "string_too_long": ("have", "at most {max_length} characters"),
    "string_too_short": ("have", "at least {min_length} characters"),
    "string_pattern_mismatch": ("match", "{pattern}"),
    "string_unicode": ("be", "Unicode text"),
    "greater_than": ("be", "more than {gt}"),
    "greater_than_equal": ("be", "at least {ge}"),
    "less_than": ("be", "less than {lt}"),
    "less_than_equal": ("be", "at most {le}"),
    "literal_error": ("be", "{expected}"),
    "finite_number": ("be", "a finite number"),
    **dict.fromkeys(("string_type", "string_sub_type"), ("be", "a string")),
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing", "int_parsing_size"), ("be", "a whole number")),
    **dict.fromkeys(("float_type", "float_parsing"), ("be", "a number")),
    **dict.fromkeys(("bool_type", "bool_parsing"), ("be", "true or false")),
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), ("be", "a list")),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), ("be", "an object")),
}
_MESSAGES = {"missing": "is missing", "extra_forbidden": "there is no such field"}
_ONE = re.compile(r"\b1 (item|character)s\b")


def field_errors(details: Sequence[Any], sent: Any = UNKNOWN) -> tuple[FieldError, ...]:
    """An error for each field that pydantic's `details` find fault with, at most MAX_FAULTS.

    Args:
        sent: what was validated; by it, fields are told from the branches of a union, which are no names of ours.
    """
    places = [_names(item, sent) for item in details]
    # Of what holds a faulty part nothing else is said: that a list has too few good items, or is no string either.
    # In a set, since a caller decides how many errors there are.
    wholes = {place[:length] for place in places for length in range(len(place))}
    faults: dict[str, FieldError] = {}
    for place, item in zip(places, details, strict=True):
        if place in wholes or len(faults) == MAX_FAULTS:
            continue
        fault = _field_error(".".join(map(str, place)), item)
        first = faults.get(fault.field)
        faults[fault.field] = fault if first is None else _either(first, fault)
    return tuple(faults.values())


def faults_of(error: ValidationError, sent: Any = UNKNOWN) -> tuple[FieldError, ...]:
    """`field_errors` of a validation error."""
    return field_errors(error.errors(include_url=False), sent)


def in_words(errors: Iterable[FieldError]) -> str:
    """Errors on one line; a limit that a message does not have comes behind it."""
    texts = []
    for error in errors:
        limit = f" ({error.limit})" if error.limit and error.limit not in error.message else ""
        texts.append(f"{error.field}: {error.message}{limit}" if error.field else error.message + limit)
    return "; ".join(texts)


def _names(item: dict[str, Any], sent: Any) -> tuple[int | str, ...]:
    """The parts of an error's location that are in what was sent, or missing there; others are branches of unions."""
    names = []
    for number, part in enumerate(item["loc"], 1):
        if sent is UNKNOWN:
            names.append(part)
        elif isinstance(sent, list) and isinstance(part, int):
            names.append(part)
            sent = sent[part] if part < len(sent) else UNKNOWN
        elif isinstance(sent, dict) and (part in sent or (item["type"] == "missing" and number == len(item["loc"]))):
            names.append(part)
            sent = sent.get(part)
    return tuple(names)


def _field_error(field: str, item: dict[str, Any]) -> FieldError:
    kind = item["type"]
    if kind not in _LIMITS:
        message = _MESSAGES.get(kind) or item["msg"].removeprefix("Value error, ")
        return FieldError(field=field, message=message)
    verb, template = _LIMITS[kind]
    context = {name: f"{value:g}" if isinstance(value, float) else value for name, value in item.get("ctx", {}).items()}
    limit = _ONE.sub(r"1 \1", template.format(**context))
    return FieldError(field=field, message=f"must {verb} {limit}", limit=limit)


def _either(first: FieldError, second: FieldError) -> FieldError:
    """The error of a value that fits neither branch of a union."""
    rest = second.message.removeprefix("must be " if first.message.startswith("must be ") else "must ")
    limit = " or ".join(filter(None, (first.limit, second.limit)))
    return FieldError(field=first.field, message=f"{first.message} or {rest}", limit=limit)
