"""Made-up questions: every pattern makes some, programs are canonical, and answers are what executing them returns."""

import re
from collections import Counter

import pytest

from lab.trainer.synthesise.drawing import Thing
from lab.trainer.synthesise.engine import NONE, Engine, Question, quoted
from services.kg.domains import CATALOGUE
from services.kg.generate.ground import ground
from services.kg.language.parse import parse
from services.kg.language.tree import render

# A world and hundreds of programs take seconds of one core, and minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)
# Draws until a pattern makes a question; the pickiest asks for a game on the day before the question.
TRIES = 40


@pytest.fixture(scope="module")
def of_each_way(engine: Engine) -> list[Question]:
    questions: list[Question] = []
    lost = Counter[str]()
    for way in engine.ways:
        name = f"{way.domain}.{way.name}"
        while (one := engine.of(way)) is None:
            lost[name] += 1
            assert lost[name] < TRIES, name
        questions.append(one)
    # A pattern that is mostly lost would teach nothing.
    assert sum(min(count, 2) for count in lost.values()) < 0.3 * len(questions), lost
    return questions


def test_every_domain_is_asked_about_in_every_way(of_each_way: list[Question]) -> None:
    assert {one.domain for one in of_each_way} == set(CATALOGUE.domains)
    assert {one.kind for one in of_each_way} == {"answer", "invalid_question", "unknown"}
    assert len(of_each_way) > 400


def test_functions_and_aggregates_of_the_catalogue_are_taught(of_each_way: list[Question]) -> None:
    text = "\n".join(one.program for one in of_each_way)
    shown = {function.name for function in CATALOGUE.functions if not function.hidden}
    # Plays are asked for by a number that no question names.
    assert set(re.findall(r"\bget_\w+", text)) == shown - {"get_nba_plays"}
    for word in ("LEN ", "AVG ", "MAX ", "MIN ", "SUM ", "ALL ", "sort(", "where(", "*[", "diff(", "ratio(", NONE):
        assert word in text, word


def test_programs_are_canonical_and_name_what_their_questions_name(of_each_way: list[Question]) -> None:
    for one in of_each_way:
        # No hole and no alternative is left.
        assert not re.search(r"[{}|\[\]]|\s\s", one.query), one.query
        if one.program != NONE:
            statements = parse(one.program, CATALOGUE.spellings)
            assert "\n".join(map(render, statements)) == one.program
            assert ground(one.program, one.query, CATALOGUE, one.domain) == one.program, one.query


def test_an_answer_is_what_the_drawn_row_has(of_each_way: list[Question]) -> None:
    """The world's own rows, which no program has touched, say the same as what executing returned."""
    checked = Counter[str]()
    for one in of_each_way:
        key, thing = str(one.slots.get("key", "")), one.slots.get("x")
        if one.kind != "answer" or not isinstance(thing, Thing) or thing.values.get(key) is None:
            continue
        value = str(thing.values[key]).lower()
        shown = [
            str(row.get(name)).lower() for s in one.statements for row in s.outcome.rows for name in s.outcome.shown
        ]
        assert any(value == other or value in other for other in shown), one
        checked[one.domain] += 1
    assert {"movie", "music", "sports"} <= set(checked)


def test_the_larger_wins_a_comparison_by_the_worlds_own_rows(engine: Engine) -> None:
    ways = {way.name: way for way in engine.ways if way.name.startswith("compare_films:")}
    checked = 0
    for name, way in ways.items():
        column = str(way.variant.slots["key"])
        if (one := engine.of(way)) is not None:
            a, b = one.slots["a"], one.slots["b"]
            more = bool(way.variant.answer and way.variant.answer.more)
            winner = a if (a.values[column] > b.values[column]) == more else b
            assert one.answer == str(winner), (name, one.query)
            checked += 1
    assert checked > 4


def test_a_premise_is_false_in_the_worlds_own_rows(engine: Engine) -> None:
    way = next(way for way in engine.ways if way.name == "not_in_cast")
    for _ in range(3):
        one = engine.of(way)
        assert one is not None
        sql = "SELECT name FROM movie_cast JOIN movie_person USING (person_id) WHERE movie_id = :x.id"
        cast = {str(thing) for thing in engine.graph.pool(sql, one.slots)}
        assert cast
        assert one.slots["a"].values["name"] not in cast
        assert one.kind == "invalid_question"


def test_a_name_that_is_taken_for_another_thing_makes_no_question(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = next(way for way in engine.ways if way.name == "born")
    assert engine.of(way) is not None
    other = {"id": "no such person"}
    monkeypatch.setattr("lab.trainer.synthesise.engine.chosen", lambda _, things: Thing(things[0].values | other))
    assert engine.of(way) is None


def test_names_are_quoted_as_programs_write_them() -> None:
    assert quoted('The "Hollow" Tide') == '"the hollow tide"'
