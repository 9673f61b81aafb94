"""Numbers are read in digits and in words, with their scales."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kit.text.numbers import MAX_DIGITS, Spelled, figures, number_of, numbers, numerals, ordinals, spelled


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,204.50 and .5", ["1204.50", "0.5"]),
        ("12,34,567 people", ["1234567"]),
        ("$3.2bn, € 4.5 million, 5 hundred thousand", ["3.2E9", "4.5E6", "5E5"]),
        ("1.2 bn", ["1.2E9"]),
        ("-3 to +4, 2010-2015", ["-3", "4", "2010", "2015"]),
        ("1.5e+06", ["1.5E6"]),
        ("b2b 4x4 v1.2.3x 5kg", []),
        ("1080p at 144hz, 3.5x the 747s of the 1990s, 1,234.5x 1,234,567x 1.5.3", []),
        ("−5, −$3 and $−2", ["-5", "-3", "-2"]),
        ("3rd of 12", ["3", "12"]),
        ("9" * (MAX_DIGITS + 1), []),
    ],
)
def test_figures(text: str, values: list[str]) -> None:
    assert [figure.value for figure in figures(text)] == [Decimal(value) for value in values]


def test_a_figure_inside_a_word_is_read_on_demand() -> None:
    assert [figure.value for figure in figures("q3 fy2024 5kg", inside_words=True)] == [3, 2024, 5]


def test_a_figure_keeps_what_surrounds_its_digits() -> None:
    (figure,) = figures("us$5m")
    assert (figure.currency, figure.mantissa) == ("us$", Decimal(5))
    assert (figure.multiple, figure.suffix) == (Decimal(10**6), "m")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("twenty-five", [25]), ("one hundred and five", [105]), ("two million three hundred thousand", [2_300_000]),
        ("nineteen eighty-four", [1984]), ("half a million", [500_000]), ("a dozen or two dozen", [12, 24]),
        ("five crore", [50_000_000]), ("one two three", [1, 2, 3]), ("none of it", []),
    ],
)  # fmt: skip
def test_numbers_in_words(text: str, values: list[int]) -> None:
    assert [number.value for number in spelled(text)] == values


def test_a_year_in_words_is_told_from_a_count() -> None:
    assert [number.is_year for number in spelled("nineteen eighty-four, two thousand, forty")] == [True, False, False]


def test_what_is_a_scale_behind_digits_is_no_number_of_its_own() -> None:
    read = numbers("$1.2 million and three")
    assert [number.value for number in read] == [1_200_000, 3]
    assert isinstance(read[1], Spelled)


def test_ordinals_and_numerals() -> None:
    assert [rank for _, _, rank in ordinals("the twenty-first, third and seventieth")] == [21, 3, 70]
    assert [value for _, _, value in numerals("part ii of louis xiv, i think")] == [2, 14]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$5 million", (Decimal(5_000_000), "")), (" 1,200 ", (Decimal(1200), "")), ("12 %", (Decimal(12), "%")),
        ("5 Minutes", (Decimal(5), "minutes")), ("-2.5k", (Decimal(-2500), "")), ("five", None), ("5 to 6", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_text_that_is_one_number(text: str, expected: tuple[Decimal, str] | None) -> None:
    assert number_of(text) == expected


@given(st.integers(0, 10**15), st.sampled_from(["", "million", "bn", "crore"]))
def test_written_numbers_come_back(value: int, scale: str) -> None:
    power = {"": 0, "million": 6, "bn": 9, "crore": 7}[scale]
    (figure,) = figures(f"about {value:,} {scale}".rstrip())
    assert figure.value == value * 10**power
