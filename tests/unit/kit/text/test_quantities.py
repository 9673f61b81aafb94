"""Quantities have a unit, a place, and what their surroundings make of them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kit.text.quantities import Quantity, find
from services.kit.text.vocabulary import UNITS


def base(quantity: Quantity) -> Decimal:
    return (quantity.value * quantity.factor).normalize()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5 km", "1500 metres"),
        ("90 minutes", "1 hour 30 minutes"),
        ("6'2\"", "6 feet 2 inches"),
        ("2t", "2 tn"),
        ("half an hour", "30 minutes"),
        ("three quarters of an hour", "45 minutes"),
        ("a day and a half", "36 hours"),
    ],
)
def test_units_of_one_dimension_convert(one: str, other: str) -> None:
    (first,), (second,) = find(one), find(other)
    assert (first.dimension, base(first)) == (second.dimension, base(second))


@pytest.mark.parametrize(
    ("text", "kind", "attribute", "value"),
    [
        ("at 5:30 pm", "clock", "value", Decimal(1050)), ("in the 1990s", "decade", "value", Decimal(1990)),
        ("more than 40 people", "number", "bound", "low"), ("at most 40", "number", "bound", "high"),
        ("about 40", "number", "approximate", True), ("minus 40", "number", "value", Decimal(-40)),
        ("12 %", "number", "dimension", "percent"), ("$5", "number", "dimension", "usd"),
        ("the second one", "ordinal", "soft", True), ("13 february 2024", "date", "year", 2024),
        ("nineteen eighty-four", "number", "year", 1984), ("born in 1984", "number", "aside", True),
    ],
)  # fmt: skip
def test_a_quantity_and_its_surroundings(text: str, kind: str, attribute: str, value: object) -> None:
    quantity = find(text)[0]
    assert (quantity.kind, getattr(quantity, attribute)) == (kind, value)


def test_a_suffix_may_be_a_scale_or_a_unit() -> None:
    (quantity,) = find("5m")
    assert quantity.value == 5_000_000
    assert quantity.other == ("length", Decimal(1), Decimal(10**6))


def test_a_season_is_both_its_years() -> None:
    assert [quantity.year for quantity in find("the 2022-23 season")] == [2022, 2023]


@given(st.integers(1, 999), st.sampled_from(sorted(UNITS)))
def test_every_unit_is_read_behind_a_number(count: int, unit: str) -> None:
    dimension, factor = UNITS[unit]
    quantity = find(f"it took {count} {unit} then")[0]
    assert (quantity.value, quantity.dimension, quantity.factor) == (Decimal(count), dimension, factor)


@given(st.text(max_size=40) | st.text(alphabet="0123456789.,-+/:$€ kmbnte'%andhalfonetwentyhundredmay", max_size=80))
def test_places_lie_in_the_text_in_order(text: str) -> None:
    places = [(quantity.start, quantity.end) for quantity in find(text.lower())]
    assert places == sorted(places)
    assert all(0 <= start < end <= len(text.lower()) for start, end in places)
