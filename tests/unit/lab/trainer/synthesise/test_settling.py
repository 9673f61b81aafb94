"""Answers from outcomes: how values are written, compared and listed, and what refutes a premise."""

import pytest

from lab.trainer.synthesise.drawing import Thing
from lab.trainer.synthesise.graph import Statement
from lab.trainer.synthesise.phrases import Answer
from lab.trainer.synthesise.settling import MOST_VALUES, refuted, settle
from services.kg.domains import CATALOGUE
from services.kg.outcome import Outcome

FILMS = CATALOGUE.function("get_movie", "movie")
PRICES = CATALOGUE.function("get_stock_price", "finance")
A, B = Thing({"name": "The Hollow Tide"}), Thing({"name": "Iron Sea"})


def of(key: str, *values: object, text: str = "", function: object = FILMS, **more: object) -> Statement:
    rows = tuple({key: value} for value in values)
    return Statement(Outcome("", "ok", function, (key,), rows, len(rows), **more), text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "value", "function", "answer"),
    [
        ("revenue", 1_234_567, FILMS, "$1,234,567"),
        ("close", 44.5, PRICES, "$44.50"),
        ("length", 142, FILMS, "142 minutes"),
        ("release_date", "1994-05-01", FILMS, "1994-05-01"),
        ("year", 1994, FILMS, "1994"),
        ("original_language", "fr", FILMS, "French"),
        ("title", "Iron Sea", FILMS, "Iron Sea"),
    ],
)
def test_a_value_is_written_as_people_write_it(key: str, value: object, function: object, answer: str) -> None:
    assert settle(Answer(), [of(key, value, function=function)], {}) == answer


def test_a_value_is_written_as_its_evidence_has_it() -> None:
    assert settle(Answer(), [of("revenue", 1_234_567, text="revenue 1234567")], {}) == "1234567"


def test_several_values_are_listed_and_too_many_are_no_answer() -> None:
    assert settle(Answer(), [of("title", "A", "B", "A")], {}) == "A, B"
    assert settle(Answer(), [of("title", *map(str, range(MOST_VALUES + 1)))], {}) is None


def test_the_larger_or_the_smaller_of_two_is_named_and_equal_ones_are_not() -> None:
    slots = {"a": A, "b": B}
    pair = [of("revenue", 5), of("revenue", 7)]
    assert settle(Answer(more=True), pair, slots) == "Iron Sea"
    assert settle(Answer(less=True), pair, slots) == "The Hollow Tide"
    assert settle(Answer(than="less"), pair, slots) == "yes"
    assert settle(Answer(than="more"), pair, slots) == "no"
    assert settle(Answer(more=True), [of("revenue", 7), of("revenue", 7)], slots) is None
    assert settle(Answer(more=True), [of("revenue", 7), of("revenue", None)], slots) is None


def test_yes_and_no() -> None:
    released = [of("release_date", "1994-05-01")]
    assert settle(Answer(holds={"lt": "{y}"}), released, {"y": 1995}) == "yes"
    assert settle(Answer(holds={"gt": "{y}"}), released, {"y": 1995}) == "no"
    assert settle(Answer(holds={"lt": "{y}"}), released, {"y": 1994}) is None
    assert settle(Answer(holds={"eq": "{y}"}), [of("title", "Iron Sea")], {"y": "iron sea"}) == "yes"
    assert settle(Answer(has="{a}"), [of("title", "Iron Sea", "X")], {"a": B}) == "yes"
    assert settle(Answer(has="{a}"), [of("title", "X")], {"a": B}) == "no"
    assert settle(Answer(say={"W": "win"}), [of("title", "W")], {}) == "win"


def test_years_between_two_dates_are_whole_ones() -> None:
    born = of("release_date", "1970-06-02")
    assert settle(Answer(years=True), [born, of("release_date", "1990-06-01")], {}) == "19"
    assert settle(Answer(years=True), [born, of("release_date", "1990-06-02")], {}) == "20"
    assert settle(Answer(years=True), [born, of("release_date", "1990")], {}) is None


def test_a_count_has_no_unit_and_a_negative_difference_answers_nothing() -> None:
    assert settle(Answer(), [of("length", 90, 120, value=2, aggregate="len")], {}) == "2"
    assert settle(Answer(), [of("revenue", 5, 7, value=-2, aggregate="diff")], {}) is None
    assert settle(Answer(), [of("revenue", 5, 2, value=2.5, aggregate="ratio")], {}) == "2.5"


def test_a_premise_is_refuted_by_nothing_or_by_something_else() -> None:
    nothing = Statement(Outcome("", "ok", FILMS, ("title",), (), 0, 0, "len"), "")
    assert refuted(Answer(refuted="no rows"), [nothing], {})
    assert not refuted(Answer(refuted="no rows"), [of("title", "X", value=1, aggregate="len")], {})
    assert not refuted(Answer(refuted="no rows"), [Statement(Outcome("", "empty", FILMS), "")], {})
    assert refuted(Answer(refuted="{a}"), [of("title", "X")], {"a": B})
    assert not refuted(Answer(refuted="{a}"), [of("title", "Iron Sea")], {"a": B})
