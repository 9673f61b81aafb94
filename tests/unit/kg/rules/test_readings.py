"""Readings: the first that fits writes the program, and each field of one does what it says."""

from datetime import UTC, datetime
from typing import Any

import pytest

from services.kg.domains import CATALOGUE
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.readings import read
from services.kg.generate.rules.words import Words
from services.kg.generate.spans import Spot

NOW = datetime(2024, 2, 28, 16, tzinfo=UTC)


def program(text: str, reading: dict[str, Any], *names: tuple[str, str], domain: str = "movie", **words: Any) -> str:
    spots = tuple(
        Spot(name, text.index(name), text.index(name) + len(name), kind, 1.0, len(name.split()), False)
        for name, kind in names
    )
    lexicon = Lexicon(CATALOGUE, domain, Words.model_validate({"readings": [reading], "guided": True, **words}))
    return "\n".join(read(lexicon, Question(text, CATALOGUE.domains[domain].calendar, NOW, spots)))


FILM, ACTOR = ("heat", "movie"), ("ada moss", "movie_person")
LENGTH = {"function": "get_movie", "otherwise": "length"}


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({"when": ["how long"]}, True), ({"when": ["how short"]}, False), ({"also_when": ["run"]}, False),
        ({"unless": ["long"]}, False), ({"names": {"movie": "some", "movie_person": "none"}}, True),
        ({"names": {"movie": "several"}}, False), ({"compares": True}, False), ({"needs": ["years"]}, False),
        ({"needs": ["no_years"]}, True), ({"needs": ["dated"]}, False),
        ({"needs": ["show"], "show": [{"key": "length", "when": ["long"]}]}, True),
    ],
)  # fmt: skip
def test_what_a_reading_needs(more: dict[str, Any], fits: bool) -> None:
    statements = program("how long is heat?", {**LENGTH, **more}, FILM)
    assert statements == ('get_movie("heat")["length"]' if fits else "")


def test_a_name_that_the_graph_lacks_is_guessed() -> None:
    text = "how long is heet?"
    assert program(text, LENGTH) == ""
    assert program(text, {**LENGTH, "guess": True}) == 'get_movie("heet")["length"]'


def test_two_sides_are_two_statements_or_one_call() -> None:
    names = (("heat", "movie"), ("alien", "movie"))
    both = program("is heat or alien longer?", LENGTH, *names)
    assert both == 'get_movie("heat")["length"]\nget_movie("alien")["length"]'
    cast = {"function": "get_movie_person_cast", "by": {"movie": "movie"}, "together": ["both"], "otherwise": "name"}
    text = "who is in both heat and alien?"
    assert program(text, cast, *names) == 'get_movie_person_cast(["heat", "alien"], None, None)["name"]'


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("in 2010", "eq(year, 2010)"), ("after 2010", "gt(year, 2010)"), ("since 2010", "ge(year, 2010)"),
        ("before 2010", "lt(year, 2010)"), ("until 2010", "le(year, 2010)"),
        ("from 2010 to 2012", "[ge(year, 2010), le(year, 2012)]"), ("of 2010 or later", "ge(year, 2010)"),
        ("of 2010 or earlier", "le(year, 2010)"),
    ],
)  # fmt: skip
def test_years_narrow(text: str, where: str) -> None:
    reading = {"function": "get_movie_person_cast", "by": {"person": "movie_person"}, "years": "year"}
    statement = f'get_movie_person_cast(None, "ada moss", {where})'
    assert program(f"films of ada moss {text}", reading, ACTOR) == statement


@pytest.mark.parametrize(
    ("text", "prefix", "steps"),
    [
        ("how many films has ada moss?", "LEN ", ""),
        ("the last three films of ada moss", "", ' sort(None, -release_date)["title"][:3]'),
        ("first film of ada moss", "", ' sort(None, release_date)["title"][:1]'),
        ("shortest film of ada moss", "", ' sort(None, length)["title"][:1]'),
        ("films of ada moss", "ALL ", '["title"]'),
    ],
)
def test_counts_ends_and_lists(text: str, prefix: str, steps: str) -> None:
    reading = {
        "function": "get_movie_person_cast", "by": {"person": "movie_person"}, "first": "release_date", "every": True,
        "order": [{"key": "length", "when": ["shortest"], "least": True}], "otherwise": "title",
    }  # fmt: skip
    assert program(text, reading, ACTOR) == f'{prefix}get_movie_person_cast(None, "ada moss", None){steps}'


def test_values_narrow_by_their_words() -> None:
    reading = {"function": "get_movie_person_crew", "by": {"movie": "movie"}, "where": ["job"], "otherwise": "name"}
    keys = {"job": {"values": {"Editor": ["edit", "cut"]}}}
    statements = program("who cut heat?", reading, FILM, keys=keys)
    assert statements == 'get_movie_person_crew("heat", None, eq(job, "Editor"))["name"]'
    assert program("who cut heat?", {**reading, "needs": ["job"]}, FILM) == ""


def test_a_value_is_taken_from_the_question() -> None:
    reading = {
        "function": "get_movie_person_cast", "by": {"movie": "movie"}, "value": "character",
        "value_when": ["play <text>"], "needs": ["value"], "otherwise": "name",
    }  # fmt: skip
    statements = program("who plays Captain Reed in heat?", reading, FILM)
    assert statements == 'get_movie_person_cast("heat", None, eq(character, "Captain Reed"))["name"]'


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("close of zzt last week", 'get_stock_price("zzt", "last week")["close"]'),
        ("average close of zzt last week", 'AVG get_stock_price("zzt", "last week")["close"]'),
        ("volume of zzt last week", 'SUM get_stock_price("zzt", "last week")["volume"]'),
        ("volume of zzt", 'get_stock_price("zzt", "latest")["volume"]'),
    ],
)
def test_times_and_windows(text: str, statements: str) -> None:
    reading = {
        "function": "get_stock_price", "default_time": [{"value": "latest"}], "windows": {"volume": "sum"},
        "total": ["close"], "show": ["volume"], "otherwise": "close",
    }  # fmt: skip
    assert program(text, reading, ("zzt", "company"), domain="finance") == statements


def test_a_fact_of_a_fact_is_two_statements() -> None:
    then = {"key": "capital", "when": ["capital of"], "show": ["elevation"]}
    reading, name = {"function": "get_open", "needs": ["hop"], "then": [then]}, ("norland", "open")
    words: Any = {"domain": "open", "keys": {"elevation": {"words": ["how high"]}}}
    statements = program("how high is the capital of norland?", reading, name, **words)
    assert statements == 'get_open("norland")["capital"]\nget_open(*["capital"])["elevation"]'
    assert program("what is the capital of norland?", reading, name, **words) == ""


def test_what_the_graph_does_not_know_ends_the_search() -> None:
    nothing = {"function": "none", "when": ["married"]}
    readings = [nothing, {**LENGTH, "guess": True}]
    assert program("who is heet married to?", nothing, readings=readings) == ""
    assert program("how long is heet?", nothing, readings=readings) != ""


def test_numbered_events_have_their_years() -> None:
    words = Words.model_validate({"editions": {"words": ["gala"], "before": 1957}})
    question = Question("who won at the 61st gala?", CATALOGUE.domains["music"].calendar, NOW, (), words.editions)
    assert question.years == [2018]
