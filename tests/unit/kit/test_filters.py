"""Filters as people write them, and as services send them on."""

import pytest

from proto.collections import Filter
from services.kit.filters import MAX_CHARS, as_query, parse_filter


@pytest.mark.parametrize(
    "text",
    [
        f"title={'x' * (MAX_CHARS - 6)}",
        "year=1864",
        "height=9.0",
        "open=TRUE",
        'zip="01067"',
        'name="true"',
        'name=""quoted""',
        "name=a=b",
        '{"field":"year","range":{"gte":1864}}',
        '{"field":"kind","any_of":["shop","castle"]}',
        '{"field":"kind","exists":false}',
    ],
)
def test_a_filter_is_sent_on_as_what_it_was_and_no_longer(text: str) -> None:
    written = parse_filter(text)
    ((_, sent),) = as_query([written])
    assert parse_filter(sent) == written
    assert len(sent) <= max(len(text), 60)


@pytest.mark.parametrize("value", ["true", "1", "1e5", '"', '""', " x ", "=", "{}", True, 0, 2.5])
def test_values_keep_their_type(value: str | bool | int | float) -> None:
    written = Filter(field="key", equals=value)
    ((_, sent),) = as_query([written])
    read = parse_filter(sent).equals
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("text", ["2024_01", "01234", "nan", "Infinity", "1e999", "٣", "+5", "1."])
def test_what_json_does_not_write_as_a_number_is_a_text(text: str) -> None:
    assert parse_filter(f"code={text}").equals == text
