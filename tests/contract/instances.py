"""Hypothesis strategies for messages: every value that a contract lets through, made from its annotations."""

import types
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from proto.base import Contract
from proto.collections import FileDescription, Filter, Range

# Of their optional fields one must be there.
STATED = (Filter, Range)
# Long values show nothing that short ones do not; limits have their own tests.
MOST = 12

ZONES = st.one_of(
    st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds))),
    st.sampled_from([timezone.utc, ZoneInfo("America/Los_Angeles"), ZoneInfo("Europe/London")]),  # noqa: UP017
)
# Apart from the ends of the calendar, which no offset may cross.
TIMES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=ZONES)


def instances(model: type[Contract]) -> st.SearchStrategy[Contract]:
    """Valid instances of a message, with and without the fields that may be left out."""
    required = {name: _values(field) for name, field in model.model_fields.items() if field.is_required()}
    optional = {name: _values(field) for name, field in model.model_fields.items() if not field.is_required()}
    if model is FileDescription:
        optional["fields"] = st.sampled_from(("{}", '{"team": "ops", "year": 1864}'))
    values = st.fixed_dictionaries(required, optional=optional)
    if model in STATED:
        values = values.filter(lambda given: any(given.get(name) not in (None, ()) for name in optional))
    return values.map(model.model_validate)


def _values(field: FieldInfo) -> st.SearchStrategy[Any]:
    return _of(field.annotation, tuple(field.metadata))


def _of(annotation: Any, metadata: tuple[Any, ...] = ()) -> st.SearchStrategy[Any]:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(args[0], (*args[1:], *metadata))
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if arg is types.NoneType else _of(arg, metadata) for arg in args))
    if origin is tuple:
        return st.lists(_of(args[0]), min_size=_limit(metadata, "min_length", 0), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(_of(args[0]), _of(args[1]), max_size=3)
    if origin is Literal:
        return st.sampled_from(args)
    if annotation is datetime:
        return TIMES
    if annotation is bool:
        return st.booleans()
    if annotation is str:
        return _texts(metadata)
    if annotation is int:
        return st.integers(_limit(metadata, "ge", None), _limit(metadata, "le", None))
    if annotation is float:
        return _floats(metadata)
    assert issubclass(annotation, Contract), f"no strategy for {annotation!r}"
    return instances(annotation)


def _texts(metadata: tuple[Any, ...]) -> st.SearchStrategy[str]:
    least = _limit(metadata, "min_length", 0)
    if pattern := _limit(metadata, "pattern", None):
        return st.from_regex(pattern, fullmatch=True).filter(lambda text: len(text) >= least)
    texts = st.text(min_size=least, max_size=min(MOST, _limit(metadata, "max_length", MOST)))
    return texts.filter(lambda text: len(text.strip()) >= least) if least else texts


def _floats(metadata: tuple[Any, ...]) -> st.SearchStrategy[float]:
    least, most = _limit(metadata, "ge", None), _limit(metadata, "le", None)
    finite = _limit(metadata, "allow_inf_nan", True) is False
    return st.floats(
        least,
        most,
        allow_nan=not finite and least is None and most is None,
        allow_infinity=not finite and (least is None or most is None),
    )


def _limit(metadata: tuple[Any, ...], name: str, default: Any) -> Any:
    for item in metadata:
        nested = tuple(item.metadata) if isinstance(item, FieldInfo) else ()
        value = getattr(item, name, None) if not nested else _limit(nested, name, None)
        if value is not None:
            return value
    return default
