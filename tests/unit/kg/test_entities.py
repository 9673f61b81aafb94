"""Names find their entity, homonyms stay together, and what is unknown is refused with what was perhaps meant."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.exc import OperationalError

from services.kg.domains import CATALOGUE
from services.kg.domains.finance.company_names import company_names
from services.kg.entities import MAX_NAME_CHARS, NameIndex, Resolution
from services.kg.store.names import (
    INDEX_TABLES,
    Surface,
    create_index,
    name_posting,
    name_table,
    normalise,
    refresh,
    replace_names,
)
from tests.unit.kg.graph import disposed

DATA = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
MOVIES = DATA["surfaces"]["movie"]


def filled(url: str = "sqlite://", **surfaces: Iterable[tuple[Any, ...]]) -> Engine:
    """A database with the index of these surfaces of each kind."""
    engine = create_engine(url)
    with engine.begin() as connection:
        create_index(connection)
        for kind, rows in surfaces.items():
            replace_names(connection, kind, [Surface(*row) for row in rows])
        refresh(connection, tuple(surfaces))
    return engine


def reopened(file: Path, progress: Callable[[], int], steps: int, **surfaces: Iterable[tuple[Any, ...]]) -> Engine:
    """A filled database that calls `progress` after so many of SQLite's instructions."""
    filled(f"sqlite:///{file}", **surfaces).dispose()
    engine = create_engine(f"sqlite:///{file}")
    event.listen(engine, "connect", lambda connection, _: connection.set_progress_handler(progress, steps))
    return engine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    lines = (line.split(maxsplit=1) for line in DATA["listed"].splitlines())
    listed = [(ticker, surface, weight) for ticker, full in lines for surface, weight in company_names(full, ticker)]
    url = f"sqlite:///{tmp_path_factory.mktemp('names') / 'names.sqlite'}"
    with disposed(filled(url, company=listed, **DATA["surfaces"])) as engine:
        yield engine


@pytest.fixture(scope="module")
def index(engine: Engine) -> NameIndex:
    return NameIndex(engine, CATALOGUE)


def surfaces(resolution: Resolution) -> set[str]:
    return {candidate.entity_id for candidate in resolution.candidates}


EQUAL = """
Madea's = madeas = madea s; The Beatles = beatles = Beatles, The; Beyoncé = BEYONCE; Cádiz = cadiz; N.W.A = NWA
J.R.R. Tolkien = j r r tolkien; Simon & Garfunkel = simon and garfunkel; Guns N' Roses = guns and roses; P!nk = Pink
A$AP Rocky = asap rocky; Øystein  Æsir = oystein aesir; Spider-Man = spider man; BANC^F = banc-f; Straße = strasse
"""


@pytest.mark.parametrize("names", EQUAL.strip().replace("\n", "; ").split("; "))
def test_equal_names_have_one_normal_form(names: str) -> None:
    assert len({normalise(one) for one in names.split(" = ")}) == 1


@pytest.mark.parametrize(
    "names", ["BANC^F BANCF", "Toy-Story-2 Toy-Story-3", "The-Who Why", "कमल कमला", "+ ÷", "が か"]
)
def test_different_names_do_not(names: str) -> None:
    left, right = names.split()
    assert normalise(left) != normalise(right)


@given(st.text(max_size=80))
@example("\u02bc")
@example("\u037a")
def test_a_name_with_a_letter_or_digit_never_vanishes(text: str) -> None:
    norm = normalise(text)
    assert norm or not any(character.isalnum() for character in text)
    assert norm == " ".join(norm.split())


def test_surfaces_of_a_share() -> None:
    assert company_names("Meta Platforms Inc. Class A Common Stock", "META") == [
        ("Meta Platforms Inc. Class A Common Stock", 1.0),
        ("Meta Platforms Inc.", 1.0),
        ("Meta Platforms", 1.0),
        ("META", 1.0),
    ]
    assert ("American Airlines", 0.8) in company_names("American Airlines Group Inc. Common Stock", "AAL")


def test_a_warrant_is_not_indexed_as_its_company() -> None:
    names = dict(company_names("Virgin Galactic Holdings Inc. Warrant", "SPCEW"))
    assert "Virgin Galactic Warrant" in names
    assert not {"Virgin Galactic", "Virgin Galactic Holdings"} & names.keys()
    assert max(names.values()) < 0.5


@pytest.mark.parametrize(
    ("kind", "text", "entity"),
    [
        (kind, text, entity)
        for kind, entities in DATA["written"].items()
        for entity, texts in entities.items()
        for text in texts
    ],
)
def test_names_are_found_as_people_write_them(index: NameIndex, kind: str, text: str, entity: str) -> None:
    entities = index.resolve(text, [kind]).entities
    assert entities[0] == entity
    assert kind == "movie" or len(entities) == 1


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text) for kind, texts in DATA["unknown"].items() for text in texts],
)
def test_what_the_graph_lacks_is_refused(index: NameIndex, kind: str, text: str) -> None:
    resolution = index.resolve(text, [kind])
    assert resolution.status != "ok"
    assert resolution.entities == ()


def test_share_classes_of_one_company_come_together(index: NameIndex) -> None:
    assert set(index.resolve("alphabet", ["company"]).entities) == {"GOOGL", "GOOG"}
    assert set(index.resolve("alhpabet", ["company"]).entities) == {"GOOGL", "GOOG"}


def test_homonyms_are_three_at_most_the_most_popular_first(index: NameIndex) -> None:
    resolution = index.resolve("crash", ["movie"])
    assert resolution.status == "ok"
    assert resolution.entities == ("crash-2004", "crash-1996", "crash-1977")
    assert len(resolution.candidates) == 4


def test_part_of_several_titles_is_ambiguous_and_names_them(index: NameIndex) -> None:
    resolution = index.resolve("lord of the rings", ["movie"])
    assert resolution.status == "ambiguous"
    assert {"fellowship", "towers", "return"} <= surfaces(resolution)


def test_a_tribute_band_is_suggested_but_not_taken(index: NameIndex) -> None:
    resolution = index.resolve("the beatles", ["artist"])
    assert resolution.status != "ok"
    assert surfaces(resolution) == {"back2back", "fab"}


def test_kinds_are_kept_apart_and_may_be_several(index: NameIndex) -> None:
    assert index.resolve("apple", ["movie"]).status == "no_entity"
    assert index.resolve("apple", ["movie", "company"]).entities == ("AAPL",)
    assert index.resolve("apple", []).status == "no_entity"
    assert index.resolve("apple", ["no such kind"]).status == "no_entity"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "'", '"', "*", "%", "_", "\0", "🎬", "'; DROP TABLE name; --", '" OR 1=1 --', "a OR b NEAR c"),
        *("surface:xyz*", "(((", "^", "{}", "\ud800", "x" * 10_000, "the " * 500),
    ],
)
def test_syntax_and_junk_are_only_text(index: NameIndex, text: str) -> None:
    assert index.resolve(text, ["company", "movie", "artist", "soccer_team"]).status == "no_entity"


@given(st.text(max_size=60))
def test_any_text_is_resolved_or_refused(text: str) -> None:
    resolution = _SMALL.resolve(text, ["movie"])
    assert (resolution.status == "ok") == bool(resolution.entities)
    scores = [candidate.score for candidate in resolution.candidates]
    assert all(0 <= score <= 1 for score in scores)


_SMALL = NameIndex(filled(movie=MOVIES), CATALOGUE)


def test_popularity_decides_between_equally_misspelt_names() -> None:
    people = [("a", "Chris Evans", 900.0), ("b", "Chris Evins", 0.0)]
    artists = [("a", "Chris Evans", 5.0), ("b", "Chris Evins", 5.0)]
    index = NameIndex(filled(movie_person=people, artist=artists), CATALOGUE)
    assert index.resolve("chris evxns", ["movie_person"]).entities == ("a",)
    assert index.resolve("chris evxns", ["artist"]).status == "ambiguous"


def test_many_homonyms_and_a_very_common_word_read_few_rows(tmp_path: Path) -> None:
    songs = [(f"{n}", f"Love Song {n:x} Night", float(n)) for n in range(20_000)]
    songs += [(f"intro-{n}", "Intro", float(n)) for n in range(5_000)]
    steps = count()
    # Neither reads the 20,000 postings of "love" nor all 5,000 rows of "intro": 200,000 instructions at most.
    with disposed(reopened(tmp_path / "names.sqlite", lambda: next(steps) and 0, 1_000, song=songs)) as engine:
        index = NameIndex(engine, CATALOGUE)
        assert index.resolve("love night songs", ["song"]).status != "ok"
        assert index.resolve("intro", ["song"]).entities == ("intro-4999", "intro-4998", "intro-4997")
    assert next(steps) <= 200


def test_refresh_replaces_what_was_there() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        create_index(connection)
        for titles in (["Alien", "Aliens"], ["Heat"]):
            replace_names(connection, "movie", [Surface(title, title) for title in titles])
            replace_names(connection, "artist", [Surface("Heat", "Heat")])
            refresh(connection, ["movie", "artist"])
        stored = connection.scalars(select(name_table.c.surface).where(name_table.c.kind == "movie"))
        assert stored.all() == ["Heat"]
        assert len(connection.execute(select(name_posting)).all()) == 2
        for table in INDEX_TABLES:
            assert len(connection.execute(select(table)).all()) <= 10
    index = NameIndex(engine, CATALOGUE)
    assert index.resolve("alien", ["movie"]).status == "no_entity"
    assert index.resolve("heat", ["movie"]).entities == ("Heat",)


def test_one_normal_form_of_one_entity_is_stored_once_with_its_heaviest_surface() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        create_index(connection)
        rows = [Surface("1", "The Wall", 1.0), Surface("1", "Wall", 3.0), Surface("2", "Wall", 2.0), Surface("3", "")]
        replace_names(connection, "song", rows)
        stored = connection.execute(select(name_table.c.entity_id, name_table.c.surface, name_table.c.weight)).all()
    assert sorted(map(tuple, stored)) == [("1", "Wall", 3.0), ("2", "Wall", 2.0)]


def test_an_interrupted_database_is_not_a_refusal(tmp_path: Path) -> None:
    with (
        disposed(reopened(tmp_path / "names.sqlite", lambda: 1, 1, movie=MOVIES)) as engine,
        pytest.raises(OperationalError, match="interrupted"),
    ):
        NameIndex(engine, CATALOGUE).resolve("crash", ["movie"])


def test_a_name_longer_than_any_is_refused_without_asking() -> None:
    index = NameIndex(create_engine("sqlite:////nowhere/at/all.sqlite"), CATALOGUE)
    assert index.resolve("x" * (MAX_NAME_CHARS + 1), ["movie"]).status == "no_entity"
