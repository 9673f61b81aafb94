"""Rows read out of the API's answers become records that the mappings describe."""

import gzip
import json
import pathlib
from typing import Any

import pytest
from sqlalchemy import create_engine, select
from typer.testing import CliRunner

from lab.crag_data import convert, load_folder
from lab.crag_data.__main__ import app
from services.kg.domains import CATALOGUE
from services.kg.store.tables import stated_total
from tests.unit.kg.graph import row
from tests.unit.kg.library import write_lines


def loaded(folder: pathlib.Path, *rows: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows of all tables."""
    engine = create_engine(f"sqlite:///{folder / 'kg.sqlite'}")
    report = load_folder(write_lines(folder / "rows", "some.jsonl", *rows).parent, engine)
    assert report.skipped == 0, [file.problems for file in report.files]
    with engine.connect() as connection:
        tables = [*CATALOGUE.tables.values(), stated_total]
        rows_by_table = {one.name: [dict(row._mapping) for row in connection.execute(select(one))] for one in tables}
    engine.dispose()
    return rows_by_table


def test_a_film_gets_its_cast_and_crew(tmp_path: pathlib.Path) -> None:
    tables = loaded(
        tmp_path,
        row("movie", "movie_attr", "the long road", revenue=12, directors=["Ann Bee"]),
        row("movie", "movie", "The Long Road", release_date="2004-05-06", top_cast=[{"name": "Cee"}], n_cast=40),
        row("movie", "title_lookup", "long", title="The Long Road"),
    )
    assert [(one["title"], one["revenue"]) for one in tables["movie"]] == [("The Long Road", 12)]
    assert [(one["person_id"], one["ord"]) for one in tables["movie_cast"]] == [("cee", 0)]
    assert [(one["person_id"], one["job"]) for one in tables["movie_crew"]] == [("ann-bee", "Director")]
    assert [(one["relation"], one["total"]) for one in tables["stated_total"]] == [("movie.cast", 40)]


def test_films_in_which_someone_had_a_part(tmp_path: pathlib.Path) -> None:
    film = {"title": "Heat", "release_date": "1995-12-15"}
    tables = loaded(
        tmp_path,
        row("movie", "movie", "Heat", release_date="1995-12-15", cast=["Ann Bee"]),
        row("movie", "filmography", "Ann Bee", movies=[film, {"title": "Ronin", "release_date": "1998-09-25"}]),
        row("movie", "filmography_year", "Cee Dee", year=1996, titles=["Heat", "Lost"]),
    )
    # A credit that is stated is not doubted; a film of the year beside is the same.
    assert [(one["movie_id"], one["job"]) for one in tables["movie_crew"]] == [("ronin-1998-09-25", "Crew")]
    assert {(one["movie_id"], one["person_id"]) for one in tables["movie_cast"]} == {
        ("heat-1995-12-15", "ann-bee"), ("heat-1995-12-15", "cee-dee"), ("lost-1996", "cee-dee"),
    }  # fmt: skip


def test_totals_are_those_of_all_and_not_of_a_selection(tmp_path: pathlib.Path) -> None:
    tables = loaded(
        tmp_path,
        row("movie", "movie_count", "Ann Bee", count=30, role="acted"),
        row("movie", "movie_count", "Cee Dee", count=2, role="participated"),
        row("movie", "movie_count", "Eff Gee", count=0),
        row("movie", "oscar_count", "Ann Bee", count=3),
        row("movie", "oscar_count", "Cee Dee", count=1, role="winner"),
        row("movie", "oscar_none", "Eff Gee", count=0),
        row("music", "grammy_count", "Adele until now", count=16),
    )
    assert {(one["relation"], one["entity_id"], one["total"]) for one in tables["stated_total"]} == {
        ("movie.acted", "ann-bee", 30), ("movie.oscars", "ann-bee", 3), ("movie.oscars", "eff-gee", 0),
        ("music.grammys", "adele", 16),
    }  # fmt: skip


def test_companies_are_found_by_name_and_generic_words_are_none(tmp_path: pathlib.Path) -> None:
    tables = loaded(
        tmp_path,
        row("finance", "company_snapshot", "acme rail corp. common stock", ticker="ACMR", market_cap=1.5e9, eps=None),
        row("finance", "price_latest", "ACME RAIL when Close price > Open", at="2024-02-28 10:49:00 EST", value=10.7),
        row("finance", "price", "ACME RAIL", date="20240228", close=10.6),
        row("finance", "pe_ratio", "ACMR", value="Infinity"),
        row("finance", "market_cap", "SILVER", value=5),
        row("finance", "dividend_empty", "ACMR", start="20230101", end="20231231"),
    )
    assert [(one["key"], one["number"]) for one in tables["company_fact"]] == [("marketCap", 1.5e9)]
    assert [(one["close"], one["is_partial"]) for one in tables["price_daily"]] == [(10.6, True)]
    assert [(one["at"], one["close"]) for one in tables["price_minute"]] == [("2024-02-28T10:49:00", 10.7)]
    assert tables["stated_total"] == []


def test_awards_of_a_year(tmp_path: pathlib.Path) -> None:
    awards = [{"category": "best grammy song", "winner": "This Is America, sung by Somebody Else"}]
    tables = loaded(
        tmp_path,
        row("music", "grammy_year", "2018", best_new_artist="Dua Lipa", awards=awards),
        row("music", "grammy_best_album", "Golden Hour", year=2018),
        row("music", "song", "Halo", author="Beyonce"),
        row("music", "grammy_song_count", "Halo", count=1),
    )
    assert {(one["category_key"], one["nominee"]) for one in tables["grammy"]} == {
        ("best_new_artist", "Dua Lipa"), ("best_song", "This Is America"), ("best_album", "Golden Hour"),
    }  # fmt: skip
    assert [(one["entity_id"], one["total"]) for one in tables["stated_total"]] == [("beyonce/halo", 1)]


def test_totals_of_teams_and_a_day_s_one_game(tmp_path: pathlib.Path) -> None:
    day = {"period": "2023-06-12", "games": 1, "wins": 0, "losses": 1, "away_losses": 1, "points_for": 89.0}
    tables = loaded(
        tmp_path,
        row("sports", "nba_period", "Miami Heat", **day, season_types=["Playoffs"], points_against=94.0),
        row("sports", "nba_period", "Miami Heat", **day, away_lost_to=["Denver Nuggets"]),
        row("sports", "no_match", "Kestrel", when="2024-03-26"),
        row("sports", "no_match", "Kestrel", when="last week"),
        row("sports", "soccer_period", "Kestrel", period="last time", games=1, GF=1, GA=0, wins=1, draws=0, losses=0),
        row("sports", "soccer_match", "Kestrel", date="2024-03-17", opponent="Vale", result="win", GF=2, GA=0),
    )
    game = tables["nba_game"][0]
    assert (game["opponent"], game["venue"], game["result"], game["gf"], game["ga"], game["season_type"]) == (
        "Denver Nuggets", "Away", "L", 89, 94, "Playoffs",
    )  # fmt: skip
    assert {(one["team_id"], one["start"], one["end"], one["games"]) for one in tables["team_period"]} == {
        ("nba-miami-heat", "2023-06-12", "2023-06-13", 1), ("soccer-kestrel", "2024-03-26", "2024-03-27", 0),
    }  # fmt: skip
    assert [(one["result"], one["gf"]) for one in tables["soccer_match"]] == [("W", 2)]


def test_a_kind_that_is_not_there_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="no kind 'recipe'"):
        convert(write_lines(tmp_path, "some.jsonl", row("movie", "recipe", "Soup")), tmp_path / "out")


def test_the_command_converts_what_the_graph_then_loads(tmp_path: pathlib.Path) -> None:
    film = row("movie", "movie", "Heat", release_date="1995-12-15")
    folder = write_lines(tmp_path / "rows", "some.jsonl", film).parent
    done = CliRunner().invoke(app, ["convert", str(folder), "--out", str(tmp_path / "out")])
    assert (done.exit_code, done.output) == (0, "some.jsonl: 1 records, 0 left out\n")
    with gzip.open(tmp_path / "out" / "some.jsonl.jsonl.gz", "rt") as file:
        assert json.loads(file.read())["entity"] == "Heat"
    url = f"sqlite:///{tmp_path / 'kg.sqlite'}"
    done = CliRunner().invoke(app, ["load", str(folder), "--database", url])
    assert "1 records, 0 left out" in done.output
    (folder / "artist_dict_simplified.pickle").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    done = CliRunner().invoke(app, ["load", str(folder), "--database", url])
    assert done.exit_code == 1
    assert "no plain data" in done.output
