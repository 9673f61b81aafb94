"""No program asks about what its question does not name."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from services.kg.domains import CATALOGUE
from services.kg.generate.ground import ground, named
from services.kg.generate.spans import Spot

CASES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))


@pytest.mark.parametrize(("question", "name", "expected"), CASES["names"])
def test_a_name_is_kept_shortened_or_refused(question: str, name: str, expected: str | None) -> None:
    assert named(name, question) == expected


def domain_of(program: str) -> str:
    return "movie" if "movie" in program else "music" if "music" in program else "sports"


@pytest.mark.parametrize(("question", "program", "expected"), CASES["programs"])
def test_statements_about_others_are_dropped(question: str, program: str, expected: str) -> None:
    assert ground(program, question, CATALOGUE, domain_of(program)) == (program if expected == "as it is" else expected)


@pytest.mark.parametrize(
    ("question", "written", "expected"),
    [
        # The model cut the name at its colon, or took words of the question into it.
        ("who directed ada sings: allegedly?", "ada sings", "ada sings: allegedly"),
        ("in which language is ada sings: allegedly shown", "ada sings: allegedly shown", "ada sings: allegedly"),
        ("who directed ada sings: allegedly?", "ada sings: allegedly", "ada sings: allegedly"),
    ],
)
def test_a_known_name_settles_where_a_name_ends(question: str, written: str, expected: str) -> None:
    start = question.index("ada sings")
    spot = Spot("ada sings: allegedly", start, start + 20, "movie", 1.0, 3, False)
    program = f'get_movie("{written}")["director"]'
    assert ground(program, question, CATALOGUE, "movie", [spot]) == f'get_movie("{expected}")["director"]'
    # A name of another kind settles nothing.
    other = Spot("ada sings: allegedly", start, start + 20, "movie_person", 1.0, 3, False)
    assert ground(program, question, CATALOGUE, "movie", [other]) == program


def spots_of(question: str, *names: str, kind: str = "movie") -> list[Spot]:
    return [Spot(name, question.index(name), question.index(name) + len(name), kind, 1.0, 1, False) for name in names]


def test_a_comparison_gets_its_other_side() -> None:
    question = "which is longer, alien or heat?"
    one, both = 'get_movie("alien")["length"]', 'get_movie("alien")["length"]\nget_movie("heat")["length"]'
    spots = spots_of(question, "alien", "heat")
    assert ground(one, question, CATALOGUE, "movie", spots) == both
    assert ground(both, question, CATALOGUE, "movie", spots) == both
    # Not where both stand in one statement, nothing is compared, or the other is of another kind.
    together = 'get_movie_person_cast(["alien", "heat"], None, None)["name"]'
    assert ground(together, question, CATALOGUE, "movie", spots) == together
    listed = "alien, with the cast of heat"
    assert ground(one, listed, CATALOGUE, "movie", spots_of(listed, "alien", "heat")) == one
    mixed = [*spots_of(question, "alien"), *spots_of(question, "heat", kind="movie_person")]
    assert ground(one, question, CATALOGUE, "movie", mixed) == one


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_name_and_any_question_have_an_answer(name: str, question: str) -> None:
    words = named(name, question)
    assert words is None or words == name or words in question


@given(st.text(alphabet='get_movie("alien")[]*,\n ', max_size=80))
def test_any_text_is_grounded_without_an_error(program: str) -> None:
    assert isinstance(ground(program, "alien", CATALOGUE, "movie"), str)
