"""Sources of the bundled domains fill the tables: merged, all or nothing, with bad records reported."""

import pathlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, func, select
from typer.testing import CliRunner

from services.cli.kg import app
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.load import LoadError, LoadReport, UnknownFormat, load, run
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.identity import slug
from services.kg.load.values import day, following, number, whole
from services.kg.store.tables import METADATA, source
from tests.unit.kg.conftest import DIALECTS, database
from tests.unit.kg.graph import row, rows_of
from tests.unit.kg.library import write_lines


@pytest.fixture(params=DIALECTS)
def store(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Engine]:
    """An empty database of each dialect."""
    engine = create_engine(database(request.param, tmp_path / "kg.sqlite"))
    METADATA.drop_all(engine)
    yield engine
    METADATA.drop_all(engine)
    engine.dispose()


def dump(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    with engine.connect() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in METADATA.sorted_tables
            if table is not source and "name" not in table.name
        }


Loads = Callable[..., LoadReport]


@pytest.fixture
def load_rows(store: Engine, tmp_path: pathlib.Path) -> Loads:
    """Loads rows, each an argument, into the store."""
    return partial(load_into, store, tmp_path)


def load_into(engine: Engine, folder: pathlib.Path, *rows: Any) -> LoadReport:
    return load(write_lines(folder / "source", "some.jsonl", *rows), engine)


# -- merging -----------------------------------------------------------------------------------------------------------


def test_rows_of_one_film_in_any_case_and_order_become_one(store: Engine, load_rows: Loads) -> None:
    load_rows(
        row("movie", "movie_attr", "the long road", revenue=12),
        row("movie", "movie_attr", "the long road", original_language="fr"),
        row("movie", "movie", "The Long Road", release_date="2004-05-06", budget=0, revenue=0, rating=0.0, n_cast=40),
    )
    (film,) = rows_of(store, "movie")
    assert {key: value for key, value in film.items() if value is not None} == {
        "movie_id": "the-long-road-2004-05-06", "title": "The Long Road", "original_language": "fr",
        "release_date": "2004-05-06", "revenue": 12,
    }  # fmt: skip
    assert rows_of(store, "stated_total") == [
        {"relation": "movie.cast", "entity_id": "the-long-road-2004-05-06", "total": 40}
    ]


def test_a_cast_is_placed_and_an_unplaced_credit_gives_way(store: Engine, load_rows: Loads) -> None:
    film = {"title": "Heat", "release_date": "1995-12-15"}
    load_rows(
        row("movie", "person", "Al Pacino", birthday="1940-04-25", movies=[film]),
        row("movie", "person", "Ann Other", movies=[film]),
        row("movie", "movie", "Heat", release_date="1995-12-15", genres=["Crime"],
            cast=[{"name": "Al Pacino", "character": "Hanna", "order": 0, "gender": 2}],
            crew=[{"name": "Michael Mann", "job": "Director"}]),
    )  # fmt: skip
    assert {(one["person_id"], one["ord"], one["character"]) for one in rows_of(store, "movie_cast")} == {
        ("al-pacino", 0, "Hanna"),
        ("ann-other", 9_999, None),
    }
    assert rows_of(store, "movie_crew")[0]["job"] == "Director"
    assert rows_of(store, "movie_genre")[0]["genre"] == "Crime"
    assert rows_of(store, "movie_person", person_id="al-pacino")[0]["birthday"] == "1940-04-25"


def test_identifiers_keep_people_of_one_name_apart(store: Engine, load_rows: Loads) -> None:
    load_rows(
        row("movie", "person", "Steve McQueen", id="steve-1930", birthday="1930-03-24"),
        row("movie", "person", "Steve McQueen", id="steve-1969", birthday="1969-10-09"),
    )
    assert len(rows_of(store, "movie_person")) == 2
    assert set(NameIndex(store, CATALOGUE).resolve("steve mcqueen", ["movie_person"]).entities) == {
        "steve-1930",
        "steve-1969",
    }


def test_companies_are_found_by_name(store: Engine, load_rows: Loads) -> None:
    report = load_rows(
        row("finance", "company", "acme rail corp. common stock", ticker="ACMR", facts={"marketCap": 1.5e9}),
        row("finance", "company", "Acme Rail Corp. Warrant", ticker="acmrw", facts={"sector": "Industrials"}),
        row("finance", "price", "ACME RAIL", date="20240227", close=10.5),
        row("finance", "price", "acmr", date="20240227", open=10.0, volume=300),
        row("finance", "price_minute", "ACME RAIL", at="2024-02-28 10:49:00 EST", close=10.7),
        row("finance", "price", "ACME RAIL", date="20240228", close=10.6),
        row("finance", "dividend", "ACME RAIL", date="20240214", amount=0.2),
        row("finance", "dividend_empty", "ACMRW"),
        row("finance", "company_fact", "ACMR", key="forwardPE", value="Infinity"),
        row("finance", "company_fact", "TECH STOCKS", key="marketCap", value=5),
    )
    assert [(p.line, p.field) for p in report.files[0].problems] == [(10, "entity")]
    assert "TECH STOCKS" in report.files[0].problems[0].reason
    day27, day28 = sorted(rows_of(store, "price_daily"), key=lambda one: str(one["date"]))
    assert (day27["open"], day27["close"], day27["volume"], day27["is_partial"]) == (10.0, 10.5, 300, False)
    assert day28["is_partial"] is True
    assert rows_of(store, "price_minute")[0]["at"] == "2024-02-28T10:49:00"
    assert rows_of(store, "stated_total") == [{"relation": "finance.dividends", "entity_id": "ACMRW", "total": 0}]
    assert {(one["ticker"], one["key"], one["number"]) for one in rows_of(store, "company_fact")} == {
        ("ACMR", "marketCap", 1.5e9),
        ("ACMRW", "sector", None),
    }
    assert rows_of(store, "dividend")[0]["value"] == 0.2
    assert rows_of(store, "source")[0]["as_of"] == "2024-02-28T10:49:00"


def test_music_rows_meet_by_normal_name(store: Engine, load_rows: Loads) -> None:
    load_rows(
        row("music", "work", "Halo", artist="Beyoncé", release_date="2008", country="XW"),
        row("music", "work", "Halo", artist="Beyonce"),
        row("music", "artist", "beyonce", begin="1981-09-04", end=None),
        row("music", "artist", "Destiny's Child", members=["Beyoncé", {"name": "Kelly", "begin": "1981"}], n_members=5),
        row("music", "grammy", "Crazy", year=2003, category="Best Rap Duo", artist="Beyoncé featuring Jay-Z"),
        row("music", "grammy_count", "Beyoncé", count=27),
        row("music", "grammy", "This Is America", year="2018", category="Song Of The Year"),
        row("music", "grammy", "Dua Lipa", year="2018", category="Best New Artist"),
        row("music", "grammy", "Nobody", year=3000, category="Best New Artist"),
        row("music", "billboard", "Halo", date="2009-05-23", rank=5, artist="Beyonce", rank_last_week="-"),
    )  # fmt: skip
    assert len(rows_of(store, "artist", artist_id="beyonce")) == 1
    assert rows_of(store, "artist", artist_id="beyonce")[0]["begin_date"] == "1981-09-04"
    assert rows_of(store, "artist", artist_id="kelly")[0]["begin_date"] == "1981"
    halo = rows_of(store, "work", title="Halo")
    assert [(one["work_id"], one["release_date"], one["country"]) for one in halo] == [("beyonce/halo", "2008", "XW")]
    assert rows_of(store, "band_member", member_name="Beyoncé")[0]["member_id"] == "beyonce"
    assert {one["artist_id"] for one in rows_of(store, "grammy_artist")} == {"beyonce", "jay-z", "dua-lipa"}
    song = rows_of(store, "grammy", category_key="best_song")[0]
    assert (song["nominee"], song["artist"], song["edition"]) == ("This Is America", None, 61)
    assert {(one["relation"], one["total"]) for one in rows_of(store, "stated_total")} == {
        ("music.members", 5),
        ("music.grammys", 27),
    }
    charted = rows_of(store, "billboard")[0]
    assert (charted["rank_last_week"], charted["work_id"]) == (None, "beyonce/halo")
    assert [one["artist_id"] for one in rows_of(store, "artist_work", work_id="beyonce/halo")] == ["beyonce"]


def test_sports_rows_become_games_and_totals(store: Engine, load_rows: Loads) -> None:
    load_rows(
        row("sports", "soccer_match", "Kestrel", date="2024-03-17", opponent="Vale", venue="Home", result="win",
            gf=2, ga=0, league="CRG-First", season="2324", time="18:30:00"),
        row("sports", "soccer_match", "Kestrel", date="2024-03-30", opponent="Bay", venue="Away", result=None,
            gf="None", ga="None", captain="None"),
        row("sports", "nba_game", "Miami Heat", game_id="1", date="2023-06-12", opponent="Denver Nuggets", venue="Away",
            result="L", gf=89, ga=94, season_type="Playoffs", league="NBA"),
        row("sports", "nba_game", "Los Angeles Clippers", game_id="2", date="2023-06-13", opponent="LA Clippers"),
        row("sports", "nba_period", "Denver Nuggets", period="2023-01", games=14, wins=9, losses=5, points_for=1540.0,
            home_beat=["Utah Jazz", "Utah Jazz"]),
        row("sports", "soccer_match", "Kestrel", date="2024-03-31", opponent="Bay", result="perhaps"),
    )  # fmt: skip
    past, future = sorted(rows_of(store, "soccer_match"), key=lambda one: str(one["date"]))
    assert (past["result"], past["gf"], past["team_id"]) == ("W", 2, "soccer-kestrel")
    assert (future["result"], future["gf"], future["captain"]) == (None, None, None)
    game, of_one_club = sorted(rows_of(store, "nba_game"), key=lambda one: str(one["game_id"]))
    assert (game["opponent"], game["venue"], game["result"], game["gf"], game["ga"]) == (
        "Denver Nuggets", "Away", "L", 89, 94,
    )  # fmt: skip
    assert of_one_club["team_id"] == of_one_club["opponent_id"] == "nba-la-clippers"
    period = rows_of(store, "team_period")[0]
    assert (period["team_id"], period["start"], period["end"], period["games"], period["gf"]) == (
        "nba-denver-nuggets", "2023-01-01", "2023-02-01", 14, 1540,
    )  # fmt: skip
    assert period["home_beat"] == "Utah Jazz; Utah Jazz"
    assert {one["sport"] for one in rows_of(store, "team")} == {"soccer", "nba"}
    assert rows_of(store, "source")[0]["as_of"] == "2024-03-17"


def test_names_of_other_scripts_signs_and_quotes_are_kept(store: Engine, load_rows: Loads) -> None:
    titles = ["千と千尋の神隠し", "+", "÷", "Robert'); DROP TABLE movie;--", 'Say "Hi"', "100% \\ Wolf", "Null"]
    load_rows(*(row("movie", "movie", title, release_date="2001-01-01") for title in titles))
    assert {one["title"] for one in rows_of(store, "movie")} == set(titles)
    assert len({slug(title) for title in titles}) == len(titles)
    assert NameIndex(store, CATALOGUE).resolve("Robert'); DROP TABLE movie;--", ["movie"]).status == "ok"


# -- all or nothing ----------------------------------------------------------------------------------------------------


def test_loading_twice_changes_nothing_and_reads_nothing(store: Engine, load_rows: Loads) -> None:
    rows = [
        row("movie", "movie", "Heat", release_date="1995-12-15", cast=[{"name": "Al Pacino"}]),
        row("music", "grammy", "Hello", year=2016, category="Song Of The Year", artist="Adele"),
        row("sports", "nba_period", "Miami Heat", period="2023-06-12", games=1, wins=1, home_beat=["Utah Jazz"]),
    ]
    first = load_rows(*rows)
    before = dump(store)
    again = load_rows(*rows)
    assert (first.unchanged, again.unchanged) == (False, True)
    assert again.rows == 0
    assert dump(store) == before

    with store.begin() as connection:
        connection.execute(source.delete())
    forced = load_rows(*rows)
    assert forced.rows == first.rows
    assert dump(store) == before


def test_a_changed_file_is_merged_over_what_it_gave(store: Engine, load_rows: Loads) -> None:
    load_rows(row("movie", "movie", "Heat", release_date="1995-12-15", revenue=1, budget=7))
    report = load_rows(row("movie", "movie", "Heat", release_date="1995-12-15", revenue=2))
    assert not report.unchanged
    assert [(one["revenue"], one["budget"]) for one in rows_of(store, "movie")] == [(2, 7)]
    assert len(rows_of(store, "source")) == 1


def test_a_failure_in_the_middle_leaves_the_old_state(
    store: Engine, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, load_rows: Loads
) -> None:
    load_rows(row("movie", "movie", "Heat", release_date="1995-12-15"))
    before = dump(store)

    def fail(*_: object) -> None:
        raise RuntimeError("the power went out")

    monkeypatch.setattr(run, "index_names", fail)
    with pytest.raises(RuntimeError, match="power"):
        load_rows(row("movie", "movie", "Ronin", release_date="1998-09-25"))
    assert dump(store) == before
    assert not [path.name for path in tmp_path.iterdir() if "loading" in path.name or "lock" in path.name]


def test_what_a_killed_load_left_does_no_harm(tmp_path: pathlib.Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'kg.sqlite'}")
    load_into(engine, tmp_path, row("movie", "movie", "Heat"))
    for name in ("kg.sqlite.loading", "kg.sqlite.loading-journal", "kg.sqlite.lock"):
        (tmp_path / name).write_bytes(b"half a page")
    load_into(engine, tmp_path, row("movie", "movie", "Ronin"))
    assert {one["title"] for one in rows_of(engine, "movie")} == {"Heat", "Ronin"}
    assert {path.name for path in tmp_path.iterdir()} == {"kg.sqlite", "source"}
    engine.dispose()


def test_two_loads_of_one_database_do_not_mix(tmp_path: pathlib.Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'kg.sqlite'}")
    with run._alone(tmp_path / "kg.sqlite"), pytest.raises(LoadError, match="another load"):
        load_into(engine, tmp_path, row("movie", "movie", "Heat"))
    load_into(engine, tmp_path, row("movie", "movie", "Heat"))
    assert len(rows_of(engine, "movie")) == 1
    engine.dispose()


def test_bad_rows_are_reported_counted_and_skipped(store: Engine, load_rows: Loads) -> None:
    report = load_rows(
        row("movie", "movie", "Heat", release_date="1995-12-15"),
        "no json",
        "[1, 2]",
        row("movie", "recipe", "Soup"),
        row("movie", "movie", ""),
        row("movie", "movie", "X", release_date="the spring of 1990"),
        row("movie", "movie", "Y", revenue="a lot"),
        row("movie", "movie", "Z", cast="nobody"),
        {"domain": "movie", "kind": "movie", "entity": "W", "attrs": [1]},
        row("movie", "movie", "V", budget=10**30),
        *(["{"] * 30),
    )
    file = report.files[0]
    assert file.skipped == 39
    assert len(file.problems) == 20
    assert [(problem.line, problem.field) for problem in file.problems[:9]] == [
        (2, ""), (3, ""), (4, ""), (5, "entity"), (6, "attrs.release_date"), (7, "attrs.revenue"), (8, "attrs.cast"),
        (9, "attrs.id"), (10, "attrs.budget"),
    ]  # fmt: skip
    assert rows_of(store, "source")[0]["skipped"] == 39
    assert "Heat" in {one["title"] for one in rows_of(store, "movie")}


def test_folders_are_read_whole_and_unknown_files_named(store: Engine, tmp_path: pathlib.Path) -> None:
    write_lines(tmp_path / "source", "a.jsonl", row("movie", "movie", "Heat"))
    write_lines(tmp_path / "source", "b.jsonl", row("open", "wiki", "Rome", summary="A city."))
    write_lines(tmp_path / "source", "c.jsonl", {"unheard": "of"})
    write_lines(tmp_path / "source", "README.md", "notes")
    report = load(tmp_path / "source", store)
    assert report.unknown == ["source/c.jsonl"]
    assert {file.name for file in report.files} == {"source/a.jsonl", "source/b.jsonl"}
    assert (report.tables["movie"], report.tables["open_entity"]) == (1, 1)


def test_records_of_one_domain_alone(store: Engine, tmp_path: pathlib.Path) -> None:
    rome = row("open", "wiki", "Rome", summary="A city.")
    path = write_lines(tmp_path, "b.jsonl", "{", rome, row("movie", "movie", "A"), {"unheard": "of"})
    report = load(path, store, domain="open")
    assert (report.rows, report.skipped) == (1, 1)
    assert (report.tables["movie"], report.tables["open_entity"]) == (0, 1)


def test_what_cannot_be_loaded_says_why(store: Engine, tmp_path: pathlib.Path) -> None:
    with pytest.raises(LoadError, match="there is no"):
        load(tmp_path / "nowhere", store)
    with pytest.raises(UnknownFormat, match="--mapping"):
        load(write_lines(tmp_path, "x.csv", "a,b", "1,2"), store)
    with pytest.raises(LoadError, match="git lfs pull"):
        load(write_lines(tmp_path, "y.jsonl", "version https://git-lfs.github.com/spec/v1"), store)
    (tmp_path / "z.jsonl.bz2").write_bytes(b"BZh91AY&SY broken")
    with pytest.raises(LoadError, match="broken"):
        load(tmp_path / "z.jsonl.bz2", store)


def test_progress_counts_bytes_and_does_not_shrink(store: Engine, tmp_path: pathlib.Path) -> None:
    calls: list[tuple[str, int, int]] = []
    path = write_lines(tmp_path, "a.jsonl", *(row("movie", "movie", f"Film {number}") for number in range(600)))
    load(path, store, progress=lambda *step: calls.append(step))
    reading = [(done, total) for step, done, total in calls if step == "a.jsonl"]
    assert len(reading) >= 3
    assert reading == sorted(reading)
    assert reading[-1][0] == reading[-1][1] == 2 * path.stat().st_size
    assert any(step.startswith("movie ") for step, _, _ in calls)


# -- public tables -----------------------------------------------------------------------------------------------------

OSCARS = """year_film,year_ceremony,ceremony,category,name,film,winner
1995,1996,68,MUSIC (Original Song),Music and Lyric by Ann Bee,Toy Days,False
1995,1996,68,MUSIC (Original Song),Music and Lyric by Ann Bee,Toy Days,False
1995,1996,68,BEST PICTURE,"Cee Dee and Eff Gee, Producers",Heat,True
1995,1996,68,FOREIGN LANGUAGE FILM,France,Un Film,True
1995,x,68,BEST PICTURE,Nobody,Nothing,True
"""
GRAMMYS = """year,title,category,nominee,artist,workers,winner
2019,62nd,Record Of The Year,Bad Tune,Ann Bee,,True
2019,62nd,Record Of The Year,Other Tune,Simon & Bar,,True
2019,62nd,Record Of The Year,Third Tune,Cee Dee Featuring Ann Bee,,True
2019,62nd,Record Of The Year,Fourth Tune,(Various Artists),"Ann Other, producer; E. Gineer, engineer",True
2018,61st,Best New Artist,Cee Dee,,,True
2018,61st,Song Of The Year,Bad Tune,,"Ann Other, songwriter (Ann Bee)",True
2018,61st,Album Of The Year,,,,True
"""


def test_oscars(store: Engine, tmp_path: pathlib.Path) -> None:
    (tmp_path / "o.csv").write_text(OSCARS)
    write_lines(tmp_path, "m.jsonl", row("movie", "movie", "Heat", release_date="1995-12-15"))
    load(tmp_path / "o.csv", store)
    report = load(tmp_path / "m.jsonl", store)
    assert report.tables["oscar"] == 4
    assert rows_of(store, "oscar", category_key="picture")[0]["movie_id"] == "heat-1995-12-15"
    assert len(rows_of(store, "oscar", category_key="original_song")) == 2
    assert {one["name"] for one in rows_of(store, "movie_person")} == {"Ann Bee", "Cee Dee", "Eff Gee"}
    assert len(rows_of(store, "oscar_nominee")) == 4


def test_grammys_of_a_year_that_lists_nominees(store: Engine, tmp_path: pathlib.Path) -> None:
    (tmp_path / "g.csv").write_text(GRAMMYS)
    report = load(tmp_path / "g.csv", store)
    assert [problem.field for problem in report.files[0].problems] == ["nominee"]
    assert {one["nominee"] for one in rows_of(store, "grammy", winner=True, year=2019)} == {"Bad Tune"}
    assert {one["nominee"] for one in rows_of(store, "grammy", winner=True, year=2018)} == {"Cee Dee", "Bad Tune"}
    names = {one["name"] for one in rows_of(store, "artist")}
    assert {"Ann Bee", "Cee Dee", "Simon & Bar", "Ann Other", "E. Gineer"} <= names
    assert not names & {"Simon", "Bar", "Various Artists", "(Various Artists)"}
    # The record and the song are one work of one artist.
    assert {one["work_id"] for one in rows_of(store, "grammy", nominee="Bad Tune")} == {"ann-bee/bad-tune"}


def test_companies_and_their_tickers(store: Engine, tmp_path: pathlib.Path) -> None:
    (tmp_path / "c.csv").write_text(
        ",Name,Symbol\n0,Acme Inc. Common Stock,ACM\n1,Nan Fund,NAN\n2,Odd,not a ticker\n3,Comma, Inc.,CMA\n4,Short\n"
    )
    report = load(tmp_path / "c.csv", store)
    assert [(one.line, one.reason) for one in report.files[0].problems][1:] == [
        (5, "has 4 cells where the header has 3"),
        (6, "has 2 cells where the header has 3"),
    ]
    assert report.skipped == 3
    assert {one["ticker"] for one in rows_of(store, "company")} == {"ACM", "NAN"}
    assert NameIndex(store, CATALOGUE).resolve("acme", ["company"]).entities == ("ACM",)


# -- parts -------------------------------------------------------------------------------------------------------------


READ: list[tuple[Callable[[Any], Any], dict[Any, Any]]] = [
    (day, {
        "20240228": "2024-02-28", "2024-2-8": "2024-02-08", "2024": "2024", "1987-00-00": "1987", "": None,
        "2024-02-28 00:00:00 EST": "2024-02-28", "2024-03-09T00:00:00.000": "2024-03-09", "None": None,
    } | dict.fromkeys(("2024-13-01", "2024-02-30", "soon", "0000", "20241301"), BadRow)),
    (number, {"1,200": 1200.0, "1,200.5": 1200.5, "12,34,567": 1234567.0, "-3": -3.0, "1e3": 1000.0}),
    (number, dict.fromkeys(("Infinity", float("nan"), None, True, "NA", "-", ".."))),
    (number, dict.fromkeys(("12,5", "1,2,3", "1,20"), BadRow)),
    (whole, {"3.0": 3, 2**63: BadRow}),
    (following, {"2024-02-28": "2024-02-29", "2023-12": "2024-01-01", "2023": "2024-01-01"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "written", "value"), [(read, written, value) for read, values in READ for written, value in values.items()]
)
def test_values_are_read_or_refused(read: Callable[[Any], Any], written: Any, value: Any) -> None:
    if value is BadRow:
        with pytest.raises(BadRow):
            read(written)
    else:
        assert read(written) == value


def test_many_rows_go_in_batches_that_merge_alike(store: Engine) -> None:
    METADATA.create_all(store)
    with store.begin() as connection:
        graph = Graph(connection, CATALOGUE.tables)
        for n in range(2_500):
            row = {"movie_id": str(n % 1_100), "title": "A", "revenue": n if n < 1_100 else None}
            graph.put("movie", row)
            graph.put("movie", {"movie_id": str(n % 1_100), "title": "b", "budget": n}, fill=True)
        graph.flush()
        movie = CATALOGUE.tables["movie"]
        assert connection.scalar(select(func.count()).select_from(movie)) == 1_100
        film = connection.execute(select(movie).where(movie.c.movie_id == "7")).one()
        assert (film.title, film.revenue, film.budget) == ("A", 7, 7)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_loads_shows_and_skips(tmp_path: pathlib.Path) -> None:
    url = f"sqlite:///{tmp_path / 'kg.sqlite'}"
    source_ = write_lines(tmp_path, "a.jsonl", row("movie", "movie", "Heat"), "no json")
    first = CliRunner().invoke(app, ["load", str(source_), "--database", url])
    assert first.exit_code == 0
    assert "a.jsonl:2" in first.output
    assert "movie 1" in first.output
    again = CliRunner().invoke(app, ["load", str(source_), "--database", url])
    assert (again.exit_code, "unchanged" in again.output) == (0, True)


def test_the_command_fills_the_graph_that_the_services_of_the_checkout_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    monkeypatch.setattr("services.cli.kg.project_root", lambda: checkout)
    monkeypatch.setenv("CRAGMESH_KG_DATABASE", "sqlite:///kg.sqlite")
    monkeypatch.chdir(tmp_path)
    source_ = write_lines(tmp_path, "a.jsonl", row("movie", "movie", "Heat"))
    assert CliRunner().invoke(app, ["load", str(source_)]).exit_code == 0
    assert (checkout / "kg.sqlite").is_file()
    assert not (tmp_path / "kg.sqlite").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nowhere"], 1),
        (["demo", "--domain", "cooking"], 2),
        (["demo", "--database", "mysql://x"], 1),
        (["demo", "--database", "sqlite:////dev/null/kg.sqlite"], 1),
        (["demo", "--mapping", "nowhere.yaml"], 2),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path: pathlib.Path, arguments: list[str], code: int) -> None:
    url = ["--database", f"sqlite:///{tmp_path / 'kg.sqlite'}"]
    done = CliRunner().invoke(app, ["load", *(url if "--database" not in arguments else []), *arguments])
    assert done.exit_code == code
    assert isinstance(done.exception, SystemExit)
