"""The measurement counts an answer only where the asked values hold it."""

from typing import Any

import pytest

from proto.kg import KgEntity
from services.kg.domains import CATALOGUE
from services.kg.outcome import Outcome
from tests.bench.kg_eval import Question, answered, holds, verdict
from tests.unit.kg.graph import ASKED

FILM = CATALOGUE.function("get_movie", "movie")


@pytest.mark.parametrize(
    ("gold", "value", "expected"),
    [
        ("$19.88", 19.879999, True), ("$19.88", 19.9, False), ("$4,015,222,923.10", 4_015_222_923.4, True),
        ("2", "2012-02-02", False), ("2", 2, True), ("3", 13, False), ("10/7/01", "2001-10-07", True),
        ("10/7/01", "2001-07-10", False), ("feb 14, 2024", "2024-02-14", True),
        ("23 january 1989", "January 23, 1989", True), ("1995", "1995-11-22", True), ("1995", "1996-01-01", False),
        ("betis", "Real Betis", True), ("toghon temür", "Toghon Temur", True),
        ("parasite won best film in 2020.", "Parasite", True), ("en", "en", True), ("en", "The End", False),
        ("home", "Home", True), ("41 cast members", 41, True), ("366 m", "366", True), ("x", None, False),
        ("yes", True, False),
    ],
)  # fmt: skip
def test_a_value_is_the_gold_one_or_not(gold: str, value: Any, expected: bool) -> None:
    assert holds(gold, value) is expected


def test_a_bare_number_in_running_text_is_an_accident() -> None:
    assert holds("12", "It has 12 minarets.")
    assert not holds("12", "It has 12 minarets.", long=True)


def outcome(name: str, key: str, value: Any, **more: Any) -> Outcome:
    entity = KgEntity(name=name, kind="movie", surface=name, entity_ids=(name,))
    rows = ({"title": name, "year": 1999, key: value},)
    return Outcome(f'get_movie("{name}")["{key}"]', "ok", FILM, (key,), rows, 1, entities=(entity,), **more)


def question(text: str, gold: str) -> Question:
    return Question("q", text, "movie", gold, ASKED, frozenset({"movie_attr"}))


def test_only_what_was_asked_for_counts() -> None:
    how_long = question("how long is alien", "1999")
    assert not answered(how_long, [outcome("alien", "length", 117)])
    assert answered(question("how long is alien", "117 minutes"), [outcome("alien", "length", 117)])


@pytest.mark.parametrize(
    ("text", "gold", "expected"),
    [
        ("which is longer, alien or heat?", "heat", True),
        ("which is longer, alien or heat?", "alien", False),
        ("which is shorter, alien or heat?", "alien", True),
    ],
)
def test_the_right_side_of_a_comparison_must_win(text: str, gold: str, expected: bool) -> None:
    sides = [outcome("alien", "length", 117), outcome("heat", "length", 170)]
    assert answered(question(text, gold), sides) is expected
    assert not answered(question(text, gold), sides[:1])


def test_the_reason_is_the_first_that_fits() -> None:
    right, other = outcome("alien", "length", 117), CATALOGUE.function("get_person", "movie")

    def reason(program: str, one: Outcome, *, unnamed: bool = False) -> str:
        return verdict(question("how long is alien", "117 minutes"), program, [one], unnamed=unnamed)

    assert reason("get_movie()", right) == "answered"
    assert reason("get_movie()", right, unnamed=True) == "wrong entity"
    assert reason("none", Outcome("none", "no_program")) == "no program"
    assert reason("get_movie()", Outcome("x", "no_entity", FILM)) == "wrong entity"
    assert reason("get_person()", Outcome("x", "ok", other)) == "wrong function"
    assert reason("get_movie()", Outcome("x", "empty", FILM)) == "not in rows"
    assert reason("get_movie()", Outcome("x", "empty", FILM, windows=("yesterday",))) == "wrong window"
