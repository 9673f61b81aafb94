"""Names find their entity, homonyms stay together, and what is unknown is refused with what was perhaps meant."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
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

LISTED = """
AAPL    Apple Inc. Common Stock
APLE    Apple Hospitality REIT Inc. Common Shares
ORMP    Oramed Pharmaceuticals Inc. Common Stock
MSFT    Microsoft Corporation Common Stock
GOOGL   Alphabet Inc. Class A Common Stock
GOOG    Alphabet Inc. Class C Capital Stock
NOW     ServiceNow Inc. Common Stock
DNOW    NOW Inc. Common Stock
HP      Helmerich & Payne Inc. Common Stock
HPQ     HP Inc. Common Stock
T       AT&T Inc.
ALL     Allstate Corporation (The) Common Stock
GOLD    Barrick Gold Corporation Common Stock (BC)
DOW     Dow Inc. Common Stock
X       United States Steel Corporation Common Stock
SPCE    Virgin Galactic Holdings Inc. Common Stock
BANC    Banc of California Inc. Common Stock
BANC^F  Banc of California Inc. Depositary Shares each representing a 1/40th interest in a Preferred Stock
AAL     American Airlines Group Inc. Common Stock
ICU     SeaStar Medical Holding Corporation Common Stock
"""
MOVIES = [
    ("godfather-1972", "The Godfather", 250.0), ("godfather-1991", "Godfather", 1.0),
    ("godfather-2", "The Godfather Part II", 90.0), ("crash-1996", "Crash", 20.0), ("crash-2004", "Crash", 100.0),
    ("crash-1977", "Crash!", 1.0), ("crash-1928", "The Crash", 0.0),
    ("fellowship", "The Lord of the Rings: The Fellowship of the Ring", 900.0),
    ("towers", "The Lord of the Rings: The Two Towers", 930.0),
    ("return", "The Lord of the Rings: The Return of the King", 1_100.0),
    ("madea", "Madea's Witness Protection", 60.0), ("toy-2", "Toy Story 2", 500.0), ("amelie", "Amélie", 170.0),
    ("spider", "Spider-Man: Homecoming", 880.0), ("artist", "The Artist", 130.0),
    ("spirited", "千と千尋の神隠し", 350.0), ("harry-4", "Harry Potter and the Goblet of Fire", 890.0),
]  # fmt: skip
ARTISTS = [
    ("back2back", "Beatles Back2Back"), ("fab", "Beatles Revival Band"), ("aha", "a-ha"), ("jay", "Jay-Z"),
    ("beyonce", "Beyoncé"), ("gnr", "Guns N' Roses"), ("m", "M"), ("plus", "+"),
]  # fmt: skip
TEAMS = [
    ("united", "Manchester Utd"), ("city", "Manchester City"), ("atletico", "Atlético Madrid"),
    ("real-madrid", "Real Madrid"), ("nottingham", "Nott'ham Forest"), ("nets", "Brooklyn Nets"), ("nets", "BKN"),
]  # fmt: skip


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
    lines = (line.split(maxsplit=1) for line in LISTED.strip().splitlines())
    listed = [(ticker, surface, weight) for ticker, full in lines for surface, weight in company_names(full, ticker)]
    url = f"sqlite:///{tmp_path_factory.mktemp('names') / 'names.sqlite'}"
    with disposed(filled(url, company=listed, movie=MOVIES, artist=ARTISTS, soccer_team=TEAMS)) as engine:
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


# By kind: how people write an entity's name.
WRITTEN: dict[str, dict[str, str]] = {
    "company": {
        "AAPL": "aapl; $AAPL; Apple; apple inc; apple stock; aapl stock price; Apple Inc. (NASDAQ: AAPL)",
        "ORMP": "oramed; oramed pharmaceutcals; oramde pharmaceuticals",
        "MSFT": "micorsoft; micro soft",
        "T": "at&t; att; at and t",
        "HP": "hp; helmerich payne",
        "ALL": "allstate",
        "GOLD": "gold",
        "AAL": "american airlines",
        "SPCE": "galactic virgin",
        "BANC^F": "banc^f; bancf",
        "BANC": "banc",
        # A word of English: the company called so, not the ticker of another.
        "DNOW": "now",
    },
    "movie": {
        "godfather-1972": "the godfather; thegodfather",
        "godfather-2": "godfather part 2",
        "madea": "madeas witness protection; madea's wittness protection",
        "spider": "spiderman homecoming; spider man: home coming",
        "amelie": "AMELIE",
        "artist": "the artist",
        "crash-2004": "Crash (2004 film)",
        "spirited": "千と千尋の神隠し",
        "harry-4": "harry potter and the goblet of fier",
    },
    "artist": {
        "aha": "A-ha; a ha; aha",
        "jay": "jay z; jayz",
        "beyonce": "beyonce",
        "gnr": "guns and roses; Guns ’n’ Roses",
        "plus": "+",
    },
    "soccer_team": {
        "united": "manchester united",
        "atletico": "atletico madrid",
        "nottingham": "nottham forest",
        "nets": "bkn",
        "real-madrid": "real madrid cf",
    },
}


@pytest.mark.parametrize(
    ("kind", "text", "entity"),
    [
        (kind, text, entity)
        for kind, entities in WRITTEN.items()
        for entity, texts in entities.items()
        for text in texts.split("; ")
    ],
)
def test_names_are_found_as_people_write_them(index: NameIndex, kind: str, text: str, entity: str) -> None:
    entities = index.resolve(text, [kind]).entities
    assert entities[0] == entity
    assert kind == "movie" or len(entities) == 1


# What the graph lacks, and "Them", which begins like an article.
UNKNOWN = {
    "company": """index; sector; ALL; the company; stock; STOCK_NAME; stock company; dow jones; the dow jones company;
        S&P 500; bitcoin; united states; silver; nasdaq composite; berkshire hathaway; oramed therapeutics;
        ICU Medical; aapx; appl; apple pharmaceuticals""",
    "movie": "toy story 3; toy story; the movie; film; inception; crash landing",
    "artist": "Them",
    "soccer_team": "madrid; manchester; real betis; premier league",
}


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text.strip()) for kind, texts in UNKNOWN.items() for text in texts.split(";")],
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
