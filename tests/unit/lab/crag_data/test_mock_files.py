"""The CRAG mock API's own files become records of its calls, which the domains' mappings load."""

import bz2
import json
import pathlib
import pickle
import sqlite3
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, create_engine

from lab.crag_data import load_folder
from lab.crag_data.mock_files import members
from services.kg.load import LoadError
from tests.unit.kg.graph import row, rows_of
from tests.unit.kg.library import write_lines

DATA = pathlib.Path(__file__).parent / "data"


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path / 'kg.sqlite'}")
    yield engine
    engine.dispose()


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "cragkg"
    path.mkdir()
    return path


def dictionary(path: pathlib.Path, values: Mapping[str, Any]) -> None:
    """A SqliteDict: keys, and values as pickles."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE unnamed (key TEXT PRIMARY KEY, value BLOB)")
    connection.executemany(
        "INSERT INTO unnamed VALUES (?, ?)", [(key, pickle.dumps(value)) for key, value in values.items()]
    )
    connection.commit()
    connection.close()


AWARD = {
    "year_ceremony": 2011, "ceremony": 83, "category": "VISUAL EFFECTS", "name": "Cee Dee", "film": "Dream Heist",
    "winner": True,
}  # fmt: skip
FILM = {
    "id": 27205, "title": "Dream Heist", "original_title": "Dream Heist", "original_language": "en", "length": 148,
    "release_date": "2010-07-16", "budget": 160, "revenue": 0, "rating": None, "genres": [{"id": 1, "name": "Action"}],
    "cast": [{"name": "Ann Bee", "id": 7, "character": "Dom", "gender": 1, "order": 0}],
    "crew": [{"name": "Cee Dee", "id": 8, "job": "Director"}], "oscar_awards": [AWARD],
}  # fmt: skip
PERSON = {"id": 7, "name": "Ann Bee", "birthday": "1974-11-11", "acted_movies": [27205, 5, 6], "directed_movies": [9]}


def test_films_people_and_years(store: Engine, folder: pathlib.Path) -> None:
    (folder / "movie_db.json").write_text(json.dumps({"dream heist": FILM, "broken": {"id": 3}, "odd": 5}))
    (folder / "person_db.json").write_text(json.dumps({"ann bee": PERSON}))
    (folder / "year_db.json").write_text(json.dumps({"2011": {"movie_list": [1], "oscar_awards": [AWARD]}}))
    report = load_folder(folder, store)
    assert report.skipped == 2
    film = rows_of(store, "movie")[0]
    assert (film["movie_id"], film["budget"], film["revenue"], film["rating"]) == ("27205", 160, None, None)
    assert rows_of(store, "movie_cast")[0]["person_id"] == "7"
    assert rows_of(store, "movie_crew")[0]["job"] == "Director"
    assert rows_of(store, "movie_person", person_id="7")[0]["birthday"] == "1974-11-11"
    assert [one["movie_id"] for one in rows_of(store, "oscar")] == ["27205"]
    assert {(one["relation"], one["total"]) for one in rows_of(store, "stated_total")} == {
        ("movie.acted", 3),
        ("movie.directed", 1),
    }


def test_entities_without_identifiers_become_those_that_have_one(store: Engine, folder: pathlib.Path) -> None:
    attrs = {"release_date": "2010-07-16", "revenue": 830, "n_cast": 52, "cast": [{"name": "Ann Bee"}]}
    write_lines(folder, "rows.jsonl", row("movie", "movie", "Dream Heist", **attrs))
    load_folder(folder, store)
    assert rows_of(store, "movie")[0]["movie_id"] == "dream-heist-2010-07-16"
    (folder / "movie_db.json").write_text(json.dumps({"dream heist": FILM}))
    load_folder(folder, store)
    (film,) = rows_of(store, "movie")
    assert (film["movie_id"], film["revenue"], film["length"]) == ("27205", 830, 148)
    assert [(one["movie_id"], one["person_id"]) for one in rows_of(store, "movie_cast")] == [("27205", "7")]
    assert rows_of(store, "stated_total")[0]["entity_id"] == "27205"
    assert {one["person_id"] for one in rows_of(store, "movie_person")} == {"7", "8"}


@pytest.mark.parametrize("broken", ["[1]", '{"a": 1', ""])
def test_a_broken_object_is_refused(tmp_path: pathlib.Path, broken: str) -> None:
    with pytest.raises(LoadError, match="JSON"):
        list(members(write_lines(tmp_path, "broken.json", broken)))


def bar(value: float) -> dict[str, float]:
    return {"Open": value, "High": value, "Low": value, "Close": value, "Volume": 100}


def test_prices_and_companies(store: Engine, folder: pathlib.Path) -> None:
    (folder / "company_name.dict").write_text(",Name,Symbol\n0,Acme Inc. Common Stock,ACM\n")
    dictionary(
        folder / "finance_price.sqlite",
        {
            "ACM": {"2024-02-27 00:00:00 EST": bar(10.5), "2024-02-28 00:00:00 EST": bar(np.float64(10.75))},
            "OLD": {"2024-02-27 00:00:00 EST": bar(1)},
            "BAD": {"2024-02-27 00:00:00 EST": 5},
        },
    )
    dictionary(folder / "finance_detailed_price.sqlite", {"ACM": {"2024-02-28 09:30:00 EST": bar(10.6)}})
    dictionary(folder / "finance_dividend.sqlite", {"ACM": {"2024-02-21 00:00:00 EST": 0.5}, "OLD": {}})
    dictionary(folder / "finance_marketcap.sqlite", {"ACM": 1.5e9, "OLD": None})
    dictionary(
        folder / "finance_info.sqlite",
        {
            "ACM": {
                "longName": "Acme, Inc.", "sector": "Industrials", "forwardPE": "Infinity", "forwardEps": 2.5,
                "firstTradeDateEpochUtc": 345_479_400, "currency": "USD", "dividendYield": 0.0041,
                "companyOfficers": [{"name": "Ms. Ann Bee", "title": "CEO & Director"}, {"title": "nobody"}],
            }
        },
    )  # fmt: skip
    report = load_folder(folder, store)
    assert [problem.reason for file in report.files for problem in file.problems] == ["is within what is no object"]
    assert rows_of(store, "company", ticker="ACM")[0] == {
        "ticker": "ACM", "name": "Acme Inc. Common Stock", "currency": "USD",
    }  # fmt: skip
    assert {(one["ticker"], one["date"], one["is_partial"]) for one in rows_of(store, "price_daily")} == {
        ("ACM", "2024-02-27", False), ("ACM", "2024-02-28", True), ("OLD", "2024-02-27", False),
    }  # fmt: skip
    assert rows_of(store, "price_minute")[0]["at"] == "2024-02-28T09:30:00"
    assert rows_of(store, "dividend")[0]["value"] == 0.5
    assert rows_of(store, "stated_total") == [{"relation": "finance.dividends", "entity_id": "OLD", "total": 0}]
    facts = {one["key"]: one["value"] for one in rows_of(store, "company_fact", ticker="ACM")}
    assert facts["chiefExecutive"] == "Ms. Ann Bee"
    assert facts["ipoDate"] == "1980-12-12"
    assert facts["marketCap"] == "1500000000.0"
    assert "forwardPE" not in facts
    assert {one["as_of"] for one in rows_of(store, "source")} >= {"2024-02-28", "2024-02-28T09:30:00"}


def test_music(store: Engine, folder: pathlib.Path) -> None:
    def pickled(name: str, value: object) -> None:
        (folder / name).write_bytes(pickle.dumps(value))

    bee = {"country": "NO", "birth_date": "1987", "end_date": None, "members": ["The Hives"]}
    hives = {"country": "SE", "birth_date": "1993-04", "end_date": None, "members": ["Cee", "Ann Bee", "Cee"]}
    pickled("artist_dict_simplified.pickle", {"Ann Bee": bee, "The Hives": hives})
    songs = defaultdict(dict, {"Bad Tune": {"author": "Ann Bee", "country": "XW", "date": "2023-09-21"}})
    pickled("song_dict_simplified.pickle", songs)
    pickled("artist_work_dict.pickle", OrderedDict({"Ann Bee": ["Bad Tune", "Live: 2011-04-08, Paradiso", "Bad Tune"]}))
    pickled("rank_dict_hot100.pickle", {"1": [{"Date": "2024-02-28", "Song": "Bad Tune", "Artist": "Ann Bee"}]})
    charted, new = ["x", "y", "z", "1", "2", "1", "5"], ["x", "y", "z", "9", "9", "1", "-"]
    pickled("song_dict_hot100.pickle", {"Bad Tune": {"2024-02-28": charted, "1999-01-01": new}})
    (folder / "grammy_df.pickle").write_bytes((DATA / "grammy_df.pickle").read_bytes())
    load_folder(folder, store)
    assert rows_of(store, "artist", artist_id="ann-bee")[0]["birth_place"] == "NO"
    assert [one["member_name"] for one in rows_of(store, "band_member", band_id="the-hives")] == ["Ann Bee", "Cee"]
    tune = rows_of(store, "work", work_id="ann-bee/bad-tune")[0]
    assert (tune["release_date"], tune["country"]) == ("2023-09-21", "XW")
    assert len(rows_of(store, "artist_work", artist_id="ann-bee")) == 2
    assert rows_of(store, "stated_total", relation="music.works")[0]["total"] == 2
    chart = rows_of(store, "billboard")
    assert [(one["rank"], one["rank_last_week"], one["top_position"], one["weeks_in_chart"]) for one in chart] == [
        (1, 2, 1, 5)
    ]
    assert {one["nominee"] for one in rows_of(store, "grammy")} == {"Dua Lipa", "Rolling In The Deep", "21"}


def test_soccer_from_a_pickled_table(store: Engine, folder: pathlib.Path) -> None:
    (folder / "soccer_team_match_stats.pkl").write_bytes((DATA / "soccer_team_match_stats.pkl").read_bytes())
    load_folder(folder, store)
    home, away = sorted(rows_of(store, "soccer_match"), key=lambda one: str(one["team_id"]))
    assert (home["league"], home["season"], home["date"], home["gf"], home["ga"]) == (
        "CRG-First Division", "2324", "2024-02-21", 1, 1,
    )  # fmt: skip
    assert home["attendance"] == 9120
    assert away["team_id"] == "soccer-oland-city"
    assert away["notes"] == "3-4 on penalties"
    assert away["xg"] is None


def test_nba_games_and_plays(store: Engine, folder: pathlib.Path) -> None:
    connection = sqlite3.connect(folder / "nba.sqlite")
    connection.execute(
        "CREATE TABLE game (season_id, team_name_home, team_name_away, game_id, game_date, wl_home, wl_away, pts_home,"
        " pts_away, fgm_home, fgm_away, season_type)"
    )
    connection.execute("CREATE TABLE play_by_play (game_id, eventnum, period, pctimestring, homedescription, score)")
    connection.execute(
        "INSERT INTO game VALUES ('12022', 'Chicago Bulls', \"Port O'Call\", '0012200049', '2022-10-11 00:00:00',"
        " 'W', 'L', 127.0, 104.0, 50.0, 40.0, 'Pre-Season')"
    )
    connection.execute("INSERT INTO play_by_play VALUES ('0012200049', 7, 1, '11:42', 'a shot', '2 - 0')")
    connection.commit()
    connection.close()
    load_folder(folder, store)
    home, away = sorted(rows_of(store, "nba_game"), key=lambda one: str(one["venue"]), reverse=True)
    assert (home["team_id"], home["gf"], home["ga"], home["season_type"], home["result"]) == (
        "nba-chicago-bulls", 127, 104, "Pre Season", "W",
    )  # fmt: skip
    assert (away["opponent"], away["venue"], away["fgm"]) == ("Chicago Bulls", "Away", 40.0)
    assert rows_of(store, "nba_event")[0]["clock"] == "11:42"


def test_pages(store: Engine, folder: pathlib.Path) -> None:
    page = {"summary_text": "A city.", "summary_structured": {"Capital": "[[Rome]]"}, "raw_mediawiki": "x" * 100}
    lines = [json.dumps(["Florida City, Florida", page]), json.dumps(["No page", None]), "{"]
    (folder / "kg.0.jsonl.bz2").write_bytes(bz2.compress("\n".join(lines).encode()))
    report = load_folder(folder, store)
    assert report.skipped == 2
    assert rows_of(store, "open_entity")[0]["entity"] == "Florida City, Florida"
    assert rows_of(store, "open_fact")[0]["value"] == "Rome"
