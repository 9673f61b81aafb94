"""A small graph of invented and well-known things that holds one of every case the language must handle."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Engine, Table, insert, select

from services.kg.store import names, tables
from services.kg.store.base import METADATA
from tests.unit.kg import tables as graph_tables

ASKED = datetime(2024, 2, 28, 8, 12, tzinfo=ZoneInfo("America/Los_Angeles"))

# Closed on Monday the 19th; the bar of the 28th is the day of the question.
PRICES = (
    ("2024-02-15", 9.0, 9.4),
    ("2024-02-16", 9.5, 9.9),
    ("2024-02-20", 10.0, 10.5),
    ("2024-02-21", 10.5, 10.2),
    ("2024-02-22", 10.1, 10.6),
    ("2024-02-23", 10.6, 10.4),
    ("2024-02-26", 10.4, 10.9),
    ("2024-02-27", 10.8, 10.53),
)
ROWS: Mapping[Table, list[dict[str, Any]]] = {
    graph_tables.movie: [
        {
            "movie_id": "1",
            "title": "Harbour Lights",
            "release_date": "1991-07-12",
            "revenue": 83_531_958,
            "budget": 24_000_000,
            "length": 122,
            "original_language": "en",
            "original_title": "Harbour Lights",
        },
        {
            "movie_id": "2",
            "title": "Harbour Lights",
            "release_date": "2015-12-03",
            "revenue": 133_718_711,
            "budget": 105_000_000,
            "length": 114,
            "original_language": "fr",
            "original_title": "Lumières du port",
        },
        {
            "movie_id": "3",
            "title": "The Glass Orchard",
            "release_date": "2017-10-04",
            "revenue": None,
            "budget": 150_000_000,
            "length": 164,
            "original_language": "en",
            "original_title": "The Glass Orchard",
        },
        {
            "movie_id": "4",
            "title": "Harbour Lights 2",
            "release_date": "2025-01-01",
            "revenue": None,
            "budget": None,
            "length": None,
            "original_language": "en",
            "original_title": "Harbour Lights 2",
        },
    ],
    graph_tables.movie_genre: [{"movie_id": "1", "genre": "Action"}, {"movie_id": "1", "genre": "Thriller"}],
    graph_tables.movie_person: [
        {"person_id": "10", "name": "Ada Lindqvist", "birthday": "1964-09-02"},
        {"person_id": "11", "name": "Bo O'Hara", "birthday": "1980-11-12"},
        {"person_id": "12", "name": "Chiara Muñoz", "birthday": None},
    ],
    graph_tables.movie_cast: [
        {"movie_id": "1", "person_id": "10", "ord": 0, "character": "Nora / The Pilot", "gender": 1},
        {"movie_id": "1", "person_id": "10", "ord": 5, "character": "Voice", "gender": 1},
        {"movie_id": "1", "person_id": "11", "ord": 1, "character": "Captain Reed (uncredited)", "gender": 2},
        {"movie_id": "3", "person_id": "10", "ord": 0, "character": "", "gender": 1},
        {"movie_id": "4", "person_id": "10", "ord": 0, "character": "Nora", "gender": 1},
    ],
    graph_tables.movie_crew: [
        {"movie_id": "1", "person_id": "12", "job": "Director"},
        {"movie_id": "3", "person_id": "12", "job": "Director"},
        {"movie_id": "3", "person_id": "12", "job": "Writer"},
    ],
    graph_tables.oscar: [
        {
            "oscar_id": "o1",
            "year": 2018,
            "film_year": 2017,
            "ceremony": 90,
            "category": "BEST PICTURE",
            "category_key": "picture",
            "nominee": "Chiara Muñoz, Producer",
            "film": "The Glass Orchard",
            "winner": True,
            "movie_id": "3",
        },
        {
            "oscar_id": "o2",
            "year": 2018,
            "film_year": 2017,
            "ceremony": 90,
            "category": "ACTRESS IN A LEADING ROLE",
            "category_key": "actress_leading",
            "nominee": "Ada Lindqvist",
            "film": "The Glass Orchard",
            "winner": False,
            "movie_id": "3",
        },
        {
            "oscar_id": "o3",
            "year": 1950,
            "film_year": 1949,
            "ceremony": 22,
            "category": "DIRECTING",
            "category_key": "director",
            "nominee": "Otto Brandt",
            "film": "The Salt Road",
            "winner": True,
            "movie_id": None,
        },
    ],
    graph_tables.oscar_nominee: [{"oscar_id": "o1", "person_id": "12"}, {"oscar_id": "o2", "person_id": "10"}],
    graph_tables.company: [
        {"ticker": "ZZT", "name": "Zuzana Tools Corp.", "currency": "USD"},
        {"ticker": "QQN", "name": "Quarry Nine Inc.", "currency": "USD"},
    ],
    graph_tables.company_fact: [
        {"ticker": "ZZT", "key": "marketCap", "value": "123456789012", "number": 123_456_789_012.0},
        {"ticker": "ZZT", "key": "sector", "value": "Energy", "number": None},
        {"ticker": "ZZT", "key": "forwardEps", "value": "2.919", "number": 2.919},
        {"ticker": "ZZT", "key": "dividendYield", "value": "0.0341", "number": 0.0341},
        {"ticker": "ZZT", "key": "fullTimeEmployees", "value": "4100", "number": 4100.0},
        {"ticker": "QQN", "key": "marketCap", "value": "77000000", "number": 77_000_000.0},
    ],
    graph_tables.price_daily: [
        {
            "ticker": "ZZT",
            "date": day,
            "open": opened,
            "high": opened + 1,
            "low": opened - 1,
            "close": closed,
            "volume": 1_000 + index,
            "is_partial": False,
        }
        for index, (day, opened, closed) in enumerate(PRICES)
    ]
    + [
        {
            "ticker": "ZZT",
            "date": "2024-02-28",
            "open": 10.7,
            "high": 99.0,
            "low": 10.0,
            "close": 99.0,
            "volume": 7,
            "is_partial": True,
        }
    ],
    graph_tables.price_minute: [
        {
            "ticker": "ZZT",
            "at": f"2024-02-28T{clock}",
            "open": 11.0,
            "high": 11.0,
            "low": 11.0,
            "close": close,
            "volume": 5,
        }
        for clock, close in (("09:30:00", 11.0), ("10:49:00", 11.11), ("12:30:00", 55.0))
    ],
    graph_tables.dividend: [
        {"ticker": "ZZT", "date": "2023-11-14", "value": 0.5},
        {"ticker": "ZZT", "date": "2024-02-14", "value": 0.75},
        {"ticker": "ZZT", "date": "2024-05-14", "value": 0.8},
    ],
    graph_tables.artist: [
        {
            "artist_id": "a1",
            "name": "Ilse Vant",
            "birth_place": "GB",
            "begin_date": "1988-05-05",
            "end_date": None,
            "is_band": False,
        },
        {
            "artist_id": "a2",
            "name": "The Paper Kites Club",
            "birth_place": "US",
            "begin_date": "1994",
            "end_date": "2001-06",
            "is_band": True,
        },
    ],
    graph_tables.work: [
        {"work_id": "w1", "title": "Hallow", "release_date": "2015-10-23", "country": "XW", "kind": None},
        {"work_id": "w2", "title": "Twenty One Miles", "release_date": "2011", "country": None, "kind": None},
        {"work_id": "w3", "title": "Not Yet Out", "release_date": "2024-06", "country": "US", "kind": None},
        {"work_id": "w4", "title": "Undated Tape", "release_date": None, "country": "US", "kind": None},
    ],
    graph_tables.artist_work: [{"artist_id": "a1", "work_id": work} for work in ("w1", "w2", "w3", "w4")],
    graph_tables.band_member: [
        {"band_id": "a2", "member_name": "Ilse Vant", "member_id": "a1", "ord": 0},
        {"band_id": "a2", "member_name": "Tom Ferris", "member_id": None, "ord": 1},
    ],
    graph_tables.grammy: [
        {
            "grammy_id": "g1",
            "year": 2008,
            "edition": 51,
            "category": "Best New Artist",
            "category_key": "best_new_artist",
            "nominee": "Ilse Vant",
            "artist": "",
            "workers": "",
            "winner": True,
            "work_id": None,
        },
        {
            "grammy_id": "g2",
            "year": 2016,
            "edition": 59,
            "category": "Song Of The Year",
            "category_key": "best_song",
            "nominee": "Hallow",
            "artist": "Ilse Vant",
            "workers": "",
            "winner": True,
            "work_id": "w1",
        },
    ],
    graph_tables.grammy_artist: [{"grammy_id": "g1", "artist_id": "a1"}, {"grammy_id": "g2", "artist_id": "a1"}],
    graph_tables.billboard: [
        {
            "date": day,
            "rank": rank,
            "song": "Hallow",
            "artist": "Ilse Vant",
            "rank_last_week": None,
            "top_position": 1,
            "weeks_in_chart": week,
            "work_id": "w1",
        }
        for day, rank, week in (("2024-02-17", 3, 1), ("2024-02-24", 1, 2))
    ],
    graph_tables.team: [
        {"team_id": "t1", "name": "Riverside", "sport": "soccer", "league": "ESP-La Liga"},
        {"team_id": "t2", "name": "Denver Foxes", "sport": "nba", "league": "NBA"},
    ],
    graph_tables.soccer_match: [
        {
            "team_id": "t1",
            "date": day,
            "opponent": opponent,
            "time": "16:15:00",
            "day": "Sun",
            "venue": venue,
            "result": result,
            "gf": gf,
            "ga": ga,
            "league": "ESP-La Liga",
            "captain": "Iker Sol",
        }
        for day, opponent, venue, result, gf, ga in (
            ("2024-02-18", "Alavés", "Away", "L", 0, 2),
            ("2024-02-25", "Betis", "Home", "D", 1, 1),
            ("2024-03-03", "Girona", "Home", "W", 1, 0),
        )
    ],
    graph_tables.nba_game: [
        {
            "game_id": "n1",
            "team_id": "t2",
            "date": "2023-02-03",
            "season_type": "Regular Season",
            "opponent": "Utah Herons",
            "venue": "Home",
            "result": "W",
            "gf": 101,
            "ga": 99,
        },
        {
            "game_id": "n2",
            "team_id": "t2",
            "date": "2023-02-07",
            "season_type": "Regular Season",
            "opponent": "Iowa Bells",
            "venue": "Home",
            "result": "L",
            "gf": 90,
            "ga": 99,
        },
        {
            "game_id": "n3",
            "team_id": "t2",
            "date": "2023-02-09",
            "season_type": "Regular Season",
            "opponent": "Iowa Bells",
            "venue": "Away",
            "result": "W",
            "gf": 110,
            "ga": 99,
        },
    ],
    graph_tables.team_period: [
        {
            "team_id": "t2",
            "start": "2023-01-01",
            "end": "2023-02-01",
            "games": 14,
            "wins": 10,
            "draws": 0,
            "losses": 4,
            "home_wins": 8,
            "home_losses": 1,
            "away_wins": 2,
            "away_losses": 3,
            "gf": 1_600,
            "ga": 1_500,
        }
    ],
    graph_tables.nba_event: [
        {"game_id": "n1", "event": 1, "period": 1, "clock": "12:00", "home": "Jump ball", "score": None}
    ],
    graph_tables.open_entity: [
        {"entity": "Mount Zephyr", "summary": "Mount Zephyr is an invented mountain."},
        {"entity": "Zephyria", "summary": "Zephyria is an invented country."},
    ],
    graph_tables.open_fact: [
        {"entity": "Mount Zephyr", "key": "elevation_m", "value": "3,210", "ord": 0},
        {"entity": "Mount Zephyr", "key": "country", "value": "Zephyria", "ord": 1},
        {"entity": "Zephyria", "key": "capital", "value": "Port Alba", "ord": 0},
    ],
    tables.stated_total: [
        {"relation": "movie.cast", "entity_id": "1", "total": 97},
        {"relation": "finance.dividends", "entity_id": "QQN", "total": 0},
    ],
}
NAMES: Mapping[str, list[tuple[str, str]]] = {
    "movie": [("1", "Harbour Lights"), ("2", "Harbour Lights"), ("3", "The Glass Orchard"), ("4", "Harbour Lights 2")],
    "movie_person": [("10", "Ada Lindqvist"), ("11", "Bo O'Hara"), ("12", "Chiara Muñoz")],
    "company": [("ZZT", "ZZT"), ("ZZT", "Zuzana Tools Corp."), ("QQN", "QQN"), ("QQN", "Quarry Nine Inc.")],
    "artist": [("a1", "Ilse Vant"), ("a2", "The Paper Kites Club")],
    "song": [("w1", "Hallow"), ("w2", "Twenty One Miles")],
    "soccer_team": [("t1", "Riverside")],
    "nba_team": [("t2", "Denver Foxes")],
    "open": [("Mount Zephyr", "Mount Zephyr"), ("Zephyria", "Zephyria")],
}


def fill(engine: Engine) -> None:
    """Make all tables and put the graph into them."""
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        for table, rows in ROWS.items():
            connection.execute(insert(table), rows)
        names.create_index(connection)
        for kind, known in NAMES.items():
            names.replace_names(connection, kind, [names.Surface(entity, said, 1.0) for entity, said in known])
        names.refresh(connection, tuple(NAMES))


@contextmanager
def disposed(engine: Engine) -> Iterator[Engine]:
    """An engine whose connections are closed afterwards."""
    try:
        yield engine
    finally:
        engine.dispose()


def rows_of(engine: Engine, table: Table, **where: Any) -> list[dict[str, Any]]:
    """The rows of a table whose columns hold these values."""
    statement = select(table).where(*(table.c[key] == value for key, value in where.items()))
    with engine.connect() as connection:
        return [dict(found._mapping) for found in connection.execute(statement)]


def row(domain: str, kind: str, entity: str, **attrs: Any) -> dict[str, Any]:
    """A line of a file of rows to load."""
    return {"domain": domain, "kind": kind, "entity": entity, "attrs": attrs}
