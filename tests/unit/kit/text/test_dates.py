"""Dates are read as they are written, whole or in part."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kit.text.dates import date_of, dates, iso_date

DAYS = st.dates(min_value=date(1000, 1, 1), max_value=date(2199, 12, 31))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("on 2024-02-13 and feb. 14th, 2024", [(2024, 2, 13), (2024, 2, 14)]),
        ("the 3rd of may 1999", [(1999, 5, 3)]),
        ("sat, 5 june", [(0, 6, 5)]),
        ("in march of 2010", [(2010, 3, 0)]),
        ("13/2/2024", [(2024, 2, 13)]),
        ("2/13/99", [(1999, 2, 13)]),
        ("20 may come", []),
        ("20240213", []),
        ("99/99/2024", []),
    ],
)
def test_dates_within_a_text(text: str, parts: list[tuple[int, int, int]]) -> None:
    assert [written.parts for written in dates(text)] == parts


def test_eight_digits_are_a_day_on_demand() -> None:
    assert [written.parts for written in dates("day 20240213, not 20241350", compact=True)] == [(2024, 2, 13)]


def test_a_numeric_date_has_two_readings_where_month_and_day_could_change_places() -> None:
    assert [list(written.days()) for written in dates("3/4/2024")] == [[date(2024, 3, 4), date(2024, 4, 3)]]
    assert [list(written.days()) for written in dates("2024-02-30, 5 may")] == [[], []]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2024-02-13t10:00", (2024, 2, 13)), ("tue 13 feb 2024 10:00:00", (2024, 2, 13)),
        ("fridays march 20", (0, 3, 20)), ("2024 may", (2024, 5, 0)), ("2024-05", (2024, 5, 0)), ("2/13", (0, 2, 13)),
        ("5-jan-2024", (2024, 1, 5)), ("may", (0, 5, 0)), ("01-dec-25", (2025, 12, 1)), ("3 feb 24", (2024, 2, 3)),
    ],
)  # fmt: skip
def test_a_text_that_is_one_date(text: str, parts: tuple[int, int, int]) -> None:
    written = date_of(text)
    assert written is not None
    assert written.parts == parts


@pytest.mark.parametrize("text", ["", "2024", "13", "2024-13", "may be", "may 0", "on 2024-02-13 too"])
def test_a_text_that_is_none(text: str) -> None:
    assert date_of(text) is None


@pytest.mark.parametrize(
    ("parts", "iso"),
    [
        (["1982", "September", "15"], "1982-09-15"),
        (["1990", "13", "45"], "1990"),
        (["1971", "12"], "1971-12"),
        (["spring", "1990"], ""),
        (["12"], ""),
    ],
)
def test_parts_of_a_date_as_iso_8601(parts: list[str], iso: str) -> None:
    assert iso_date(parts) == iso


@given(DAYS, st.sampled_from(["%Y-%m-%d", "%B %d, %Y", "%d %b %Y", "%m/%d/%Y", "%A, %B %d, %Y"]))
def test_every_day_comes_back_however_it_is_written(day: date, form: str) -> None:
    text = day.strftime(form).lower()
    assert day in {read for written in dates(f"it was {text}.") for read in written.days()}
    assert date_of(text.replace(",", "")) is not None


@given(st.text(alphabet="0123456789-/. ,abcdefjmnoprstuvyth", max_size=60))
def test_any_text_is_read(text: str) -> None:
    for written in dates(text, compact=True):
        assert 1 <= written.month <= 12
        assert 0 <= written.start < written.end <= len(text)
