"""The live backend fills a private graph from a fake of the CRAG mock API, in its shapes and with its quirks."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
import yaml
from fastapi import FastAPI, HTTPException, Request
from sqlalchemy import Engine

from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.live import api as live_api
from services.kg.live.api import LiveReport, MockApi
from services.kg.live.execute import LiveExecutor
from services.kg.live.fill import fill, lookup_of, private_graph
from services.kg.verbalize import verbalize
from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.errors import ServiceFailure
from tests.unit.conftest import Nowhere
from tests.unit.kg.graph import rows_of

pytestmark = pytest.mark.anyio

NOW = datetime(2024, 2, 28, 8, 12, tzinfo=ZoneInfo("America/Los_Angeles"))


def bar(value: float) -> dict[str, float]:
    return {"Open": value, "High": value + 1, "Low": value - 1, "Close": value + 0.5, "Volume": 100}


def film(identifier: int, title: str, released: str, **more: Any) -> dict[str, Any]:
    cast = [{"name": "Ann Bee", "id": 7, "character": "Dom", "gender": 1, "order": 0}]
    return {
        "id": identifier, "title": title, "original_title": title, "original_language": "en", "release_date": released,
        "budget": 0, "revenue": 5, "rating": None, "genres": [{"id": 1, "name": "Drama"}], "cast": cast, "crew": [],
    } | more  # fmt: skip


AWARD = {
    "year_ceremony": 2011, "ceremony": 83, "category": "VISUAL EFFECTS", "name": "Cee Dee", "film": "Dream Heist",
    "winner": True,
}  # fmt: skip
KESTREL = "('CRG-First', '2324', 'Kestrel', '2024-02-24 Kestrel-Öland')"
FUTURE = "('CRG-First', '2324', 'Kestrel', '2024-03-09 Kestrel-Öland')"


def soccer(**columns: tuple[Any, Any]) -> dict[str, dict[str, Any]]:
    return {name: dict(zip((KESTREL, FUTURE), values, strict=True)) for name, values in columns.items()}


# (path, what the body holds) -> result.
REPLIES: dict[tuple[str, str], Any] = {
    ("/movie/get_movie_info", "dream heist"): [
        film(2, "The Heist", "2001-01-01"),
        film(1, "Dream Heist", "2010-07-16", oscar_awards=[AWARD]),
        {"id": 3, "title": None},
    ],
    ("/movie/get_movie_info", "Dream Heist"): [film(1, "Dream Heist", "2010-07-16")],
    ("/movie/get_person_info", "ann bee"): [
        {"name": "Ann Beeman", "id": 70, "birthday": None, "acted_movies": [9]},
        {"name": "Ann Bee", "id": 7, "birthday": "1974-11-11", "acted_movies": [1, 4, 5]},
    ],
    ("/movie/get_movie_info_by_id", "1"): film(1, "Dream Heist", "2010-07-16"),
    ("/movie/get_movie_info_by_id", "4"): film(4, "Other Film", "2012"),
    ("/movie/get_year_info", "2011"): {"movie_list": [1, 2], "oscar_awards": [AWARD]},
    ("/finance/get_company_name", "acme"): ["Acme Hotels Inc. Common Shares", "Acme Inc. Common Stock"],
    ("/finance/get_ticker_by_name", "Acme Inc. Common Stock"): "ACM",
    ("/finance/get_info", "ACM"): {"longName": "Acme, Inc.", "sector": "Industrials", "forwardPE": "Infinity"},
    ("/finance/get_market_capitalization", "ACM"): 1.5e9,
    ("/finance/get_eps", "ACM"): None,
    ("/finance/get_pe_ratio", "ACM"): "Infinity",
    ("/finance/get_price_history", "ACM"): {"2024-02-27 00:00:00 EST": bar(10), "2024-02-28 00:00:00 EST": bar(11)},
    ("/finance/get_detailed_price_history", "ACM"): {"2024-02-28 10:49:00 EST": bar(11)},
    ("/finance/get_dividends_history", "ACM"): {},
    ("/music/search_artist_entity_by_name", "the hives"): ["Hives Revival", "The Hives", "Hive"],
    ("/music/get_artist_birth_place", "The Hives"): "SE",
    ("/music/get_artist_birth_date", "The Hives"): "1993",
    ("/music/get_lifespan", "The Hives"): ["1993", None],
    ("/music/get_members", "The Hives"): ["Cee", "Ann"],
    ("/music/get_artist_all_works", "The Hives"): ["Tune", "Tune", "Live: 2001-01-01"],
    ("/music/get_song_author", "Tune"): "The Hives",
    ("/music/get_song_release_date", "Tune"): "2023-09",
    ("/music/get_song_release_country", "Tune"): "XW",
    ("/music/get_song_author", "Live: 2001-01-01"): "Somebody Else",
    ("/music/get_song_release_date", "Live: 2001-01-01"): "1999",
    ("/music/grammy_get_award_count_by_artist", "The Hives"): 3,
    ("/music/grammy_get_award_date_by_artist", "The Hives"): [2016, 2008],
    ("/music/search_song_entity_by_name", "tune"): ["TUNE!!", "Tune"],
    ("/music/get_song_author", "TUNE!!"): "Nobody",
    ("/music/grammy_get_award_count_by_song", "Tune"): 1,
    ("/music/get_billboard_attributes", "2024-02-24 rank Tune"): "1",
    ("/music/get_billboard_attributes", "2024-02-24 rank_last_week Tune"): "-",
    ("/music/get_billboard_attributes", "2024-02-24 top_position Tune"): "1",
    ("/music/get_billboard_attributes", "2024-02-24 weeks_in_chart Tune"): "1",
    ("/music/get_billboard_rank_date", "1 2024-02-24"): [["Tune"], ["The Hives"]],
    ("/music/grammy_get_best_artist_by_year", "2018"): ["Dua Lipa"],
    ("/music/grammy_get_best_song_by_year", "2018"): ["This Is America"],
    ("/music/grammy_get_best_album_by_year", "2018"): ["Golden Hour"],
    # Some come as a text of JSON.
    ("/sports/soccer/get_games_on_date", "2024 Kestrel"): json.dumps(soccer(
        date=("2024-02-24T00:00:00.000", "2024-03-09T00:00:00.000"), time=("12:30:00", "15:00:00"),
        venue=("Home", "Home"), result=("D", None), GF=("1 (4)", None), GA=("1 (3)", None), opponent=("Öland", "Öland"),
        xG=(1.6, None), Attendance=(7360, None), Captain=("Idris Vale", None), day=("Sat", "Sat"), round=("QF", "QF"),
        Notes=("", ""),
    )),
    ("/sports/nba/get_games_on_date", "2022-10 Chicago Bulls"): {
        "season_id": {"0": "12022"}, "game_id": {"0": "0012200049"}, "game_date": {"0": "2022-10-11 00:00:00"},
        "team_name_home": {"0": "Chicago Bulls"}, "team_name_away": {"0": "Milwaukee Bucks"}, "wl_home": {"0": "W"},
        "wl_away": {"0": "L"}, "pts_home": {"0": 127.0}, "pts_away": {"0": 104.0}, "fgm_home": {"0": 50.0},
        "fgm_away": {"0": 40.0}, "season_type": {"0": "Pre-Season"},
    },
    ("/sports/nba/get_play_by_play_data_by_game_ids", "0012200049"): {
        "game_id": {"0": "0012200049"}, "eventnum": {"0": 7}, "period": {"0": 1}, "pctimestring": {"0": "11:42"},
    },
    ("/open/search_entity_by_name", "florida city"): ["Florida", "Florida City, Florida", "Florida City"],
    ("/open/get_entity", "Florida City"): {
        "summary_text": "A '''city'''.", "summary_structured": {"elevation": "{{convert|3|ft}}", "image": ""},
        "raw_mediawiki": "x",
    },
}  # fmt: skip


CALLS: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("mock_api.yaml").read_text("utf-8"))
TYPES = {"text": str, "integer": int, "texts": list}


def is_a_call(path: str, body: dict[str, Any]) -> bool:
    fields = CALLS[path]
    return body.keys() == fields.keys() and all(isinstance(body[one], TYPES[kind]) for one, kind in fields.items())


def fake(slow: str = "") -> FastAPI:
    """The API; one path of it answers too late."""
    app = FastAPI()

    @app.post("/{path:path}")
    async def answer(path: str, request: Request) -> dict[str, Any]:
        await asyncio.sleep(60 if path == slow else 0)
        body = await request.json()
        assert is_a_call(path, body), (path, body)
        if path == "movie/get_year_info" and int(body["query"]) not in range(1990, 2022):
            raise HTTPException(500, "Year must be between 1990 and 2021")
        order = ("query", "rank", "date", "team_name", "attribute", "song_name", "game_ids")
        values = (body[key] for key in order if body.get(key))
        text = " ".join(str(value[0] if isinstance(value, list) else value) for value in values)
        missing: Any = [] if "search" in path or path.endswith(("get_company_name", "_info")) else None
        return {"result": REPLIES.get(("/" + path, text), missing)}

    return app


def client(api: FastAPI | httpx.AsyncBaseTransport) -> ServiceClient:
    transport = httpx.ASGITransport(api) if isinstance(api, FastAPI) else api
    return ServiceClient("kg_api", "http://api", http_client(transport))


@pytest.fixture
def graph() -> Iterator[Engine]:
    with private_graph() as engine:
        yield engine


Filling = Callable[..., Awaitable[LiveReport]]


@pytest.fixture
def filling(graph: Engine) -> Filling:
    async def run(
        domain: str, names: Mapping[str, list[str]], functions: list[str], *,
        api: FastAPI | httpx.AsyncBaseTransport | None = None, seconds: float = 20.0, **more: Any,
    ) -> LiveReport:  # fmt: skip
        lookup = lookup_of(domain, names, functions, **more)
        return await fill(graph, client(api or fake()), lookup, query_time=NOW, budget=Budget(seconds))

    return run


async def test_films_and_the_films_of_the_person_that_is_meant(graph: Engine, filling: Filling) -> None:
    report = await filling(
        "movie", {"movie": ["dream heist"], "movie_person": ["ann bee"]}, ["get_movie", "get_movie_person_cast"]
    )
    # Whatever the search finds is there, with what it makes no sense of left out; the wrong namesake's films are not.
    assert {one["title"] for one in rows_of(graph, "movie")} == {"The Heist", "Dream Heist", "Other Film"}
    assert report.skipped == 1
    assert {one["person_id"] for one in rows_of(graph, "movie_person")} >= {"7", "70"}
    assert rows_of(graph, "stated_total", entity_id="7")[0]["total"] == 3
    assert rows_of(graph, "oscar")[0]["movie_id"] == "1"
    # Credits by identifier only stay without a place; those of a cast have one.
    assert {(one["movie_id"], one["ord"]) for one in rows_of(graph, "movie_cast", person_id="7")} == {
        ("1", 0), ("2", 0), ("4", 0), ("5", 9_999),
    }  # fmt: skip
    assert NameIndex(graph, CATALOGUE).resolve("dream heist", ["movie"]).entities == ("1",)


async def test_oscars_of_a_year_and_of_one_that_is_an_error(graph: Engine, filling: Filling) -> None:
    report = await filling("movie", {}, ["get_movie_person_oscar"], years=[2011, 2024, 1950])
    assert report.requests == 1
    assert [one["nominee"] for one in rows_of(graph, "oscar")] == ["Cee Dee"]


async def test_a_company_is_found_by_our_index_not_by_place(graph: Engine, filling: Filling) -> None:
    await filling(
        "finance", {"company": ["acme"]},
        ["get_stock_price", "get_stock_dividend", "get_stock_pe_ratio", "get_stock_eps"],
    )  # fmt: skip
    assert [one["ticker"] for one in rows_of(graph, "company")] == ["ACM"]
    assert {(one["date"], one["is_partial"]) for one in rows_of(graph, "price_daily")} == {
        ("2024-02-27", False), ("2024-02-28", True),
    }  # fmt: skip
    assert rows_of(graph, "price_minute")[0]["close"] == 11.5
    assert rows_of(graph, "dividend") == []
    assert rows_of(graph, "stated_total")[0] == {"relation": "finance.dividends", "entity_id": "ACM", "total": 0}
    assert {one["key"] for one in rows_of(graph, "company_fact")} == {"longName", "sector", "marketCap"}
    assert rows_of(graph, "source")[0]["as_of"] == "2024-02-28T10:49:00"


async def test_a_ticker_needs_no_search(graph: Engine, filling: Filling) -> None:
    await filling("finance", {"company": ["acm"]}, ["get_stock_info"])
    assert rows_of(graph, "company")[0]["name"] == "Acme, Inc."


async def test_an_artist_with_members_works_and_awards(graph: Engine, filling: Filling) -> None:
    await filling("music", {"artist": ["the hives"]}, ["get_person", "get_grammy_person"])
    hives = rows_of(graph, "artist", artist_id="the-hives")[0]
    assert (hives["birth_place"], hives["begin_date"], hives["end_date"]) == ("SE", "1993", None)
    assert {one["member_name"] for one in rows_of(graph, "band_member")} == {"Ann", "Cee"}
    works = {one["title"]: one["release_date"] for one in rows_of(graph, "work")}
    # The API knows one work a title, and that one is somebody else's.
    assert works == {"Tune": "2023-09", "Live: 2001-01-01": None}
    assert {(one["relation"], one["total"]) for one in rows_of(graph, "stated_total")} == {
        ("music.works", 2), ("music.members", 2), ("music.grammys", 3),
    }  # fmt: skip
    assert {one["year"] for one in rows_of(graph, "grammy")} == {2008, 2016}


async def test_a_song_its_awards_and_its_place_in_the_week(graph: Engine, filling: Filling) -> None:
    await filling("music", {"song": ["tune"]}, ["get_song", "get_grammy_song", "get_billboard_song"])
    assert {one["work_id"] for one in rows_of(graph, "work")} == {"the-hives/tune", "nobody/tune"}
    assert {one["total"] for one in rows_of(graph, "stated_total")} == {1}
    chart = rows_of(graph, "billboard")[0]
    assert [chart[key] for key in ("date", "rank", "rank_last_week", "artist")] == ["2024-02-24", 1, None, "The Hives"]


async def test_grammys_of_a_year_and_a_place_of_the_hot_100(graph: Engine, filling: Filling) -> None:
    await filling(
        "music", {}, ["get_grammy_year", "get_billboard"], years=[2018, 2024], ranks=[1], dates=["2024-02-28"]
    )
    assert {(one["category_key"], one["nominee"]) for one in rows_of(graph, "grammy")} == {
        ("best_new_artist", "Dua Lipa"), ("best_song", "This Is America"), ("best_album", "Golden Hour"),
    }  # fmt: skip
    assert rows_of(graph, "billboard")[0]["song"] == "Tune"


async def test_soccer_games_past_and_to_come(graph: Engine, filling: Filling) -> None:
    await filling("sports", {"soccer_team": ["Kestrel"]}, ["get_soccer_last_game"])
    past, future = sorted(rows_of(graph, "soccer_match"), key=lambda one: str(one["date"]))
    assert (past["gf"], past["ga"], past["notes"], past["league"]) == (1, 1, "4-3 on penalties", "CRG-First")
    assert (future["result"], future["gf"]) == (None, None)
    assert rows_of(graph, "source")[0]["as_of"] == "2024-02-24"


async def test_nba_games_by_a_nickname_and_plays(graph: Engine, filling: Filling) -> None:
    names = {"nba_team": ["bulls"], "game_id": ["0012200049"]}
    await filling("sports", names, ["get_nba_on_date", "get_nba_plays"], dates=["2022-10-11"])
    assert {(one["team_id"], one["gf"]) for one in rows_of(graph, "nba_game")} == {
        ("nba-chicago-bulls", 127), ("nba-milwaukee-bucks", 104),
    }  # fmt: skip
    assert rows_of(graph, "nba_event")[0]["event"] == 7


async def test_the_page_that_is_meant_is_cleaned(graph: Engine, filling: Filling) -> None:
    await filling("open", {"open": ["florida city"]}, ["get_open"])
    assert rows_of(graph, "open_entity") == [{"entity": "Florida City", "summary": "A city."}]
    assert rows_of(graph, "open_fact")[0]["value"] == "3 ft"


async def test_what_does_not_come_in_time_is_left_out(graph: Engine, filling: Filling) -> None:
    api = fake(slow="open/get_entity")
    report = await filling("open", {"open": ["florida city"]}, ["get_open"], api=api, seconds=2.0)
    assert report.failed == ["open/get_entity"]
    assert rows_of(graph, "open_entity") == []
    assert rows_of(graph, "source")[0]["name"] == "live"


async def test_an_api_that_is_not_there_says_so(filling: Filling) -> None:
    with pytest.raises(ServiceFailure):
        await filling("open", {"open": ["florida city"]}, ["get_open"], api=Nowhere())


@pytest.mark.parametrize(
    ("domain", "names", "functions"),
    [
        ("movie", {"movie": ["a"], "movie_person": ["b"]}, ["get_movie_person_cast"]),
        ("finance", {"company": ["a"]}, ["get_stock_price", "get_stock_dividend"]),
        ("music", {"artist": ["a"], "song": ["b"]}, ["get_person", "get_billboard_song", "get_grammy_person"]),
        ("sports", {"soccer_team": ["a"], "nba_team": ["nets"]}, ["get_soccer_on_date", "get_nba_on_date"]),
        ("open", {"open": ["a"]}, ["get_open"]),
    ],
)
async def test_replies_of_another_shape_are_left_out(
    filling: Filling, domain: str, names: dict[str, list[str]], functions: list[str]
) -> None:
    replies = (b"no json", b"[1]", b'{"result": 5}', b'{"result": [[[]]]}', b"{}", b'{"result": {"a": 1}}')
    for reply in replies:
        transport = httpx.MockTransport(lambda _, reply=reply: httpx.Response(200, content=reply))
        report = await filling(domain, names, functions, api=transport)
        assert report.failed == [], reply


async def test_what_a_program_mentions_is_bounded() -> None:
    lookup = lookup_of("movie", {"movie": [" a ", "a", *map(str, range(99))]}, [], years=range(1900, 2000))
    assert (lookup.names["movie"][0], len(lookup.names["movie"]), len(lookup.years)) == ("a", 8, 12)


OSCARS_2011 = "get_movie_person_oscar(None, None, eq(year, 2011))"


@pytest.mark.parametrize(
    ("domain", "program", "says"),
    [
        ("movie", 'get_movie("dream heist")["release_date"]', "2010-07-16"),
        ("movie", 'get_person("ann bee")["birthday"]', "1974-11-11"),
        ("movie", f'{OSCARS_2011}["film"]\nget_movie(*["film"])["title"]', "Dream Heist"),
        ("finance", 'get_stock_price("acme", "yesterday")["close"]', "$10"),
        ("finance", 'get_stock_market_cap("acm")', "$1,500,000,000"),
        ("music", 'get_person("the hives")["members"]', "Cee"),
        ("music", 'get_song("tune")["author"]', "The Hives"),
        ("music", 'get_grammy_year("2018")["best_new_artist"]', "Dua Lipa"),
        ("sports", 'get_nba_on_date("bulls", "2022-10")["opponent"]', "Milwaukee Bucks"),
        ("open", 'get_open("florida city")["elevation"]', "3"),
    ],
)
async def test_programs_run_over_the_api(domain: str, program: str, says: str) -> None:
    live = LiveExecutor(client(fake()), CATALOGUE)
    outcomes = await live.execute(program, domain=domain, query_time=NOW, budget=Budget(20))
    facts = "\n".join(verbalize(outcomes, CATALOGUE.domains, NOW.date(), max_tokens=1_000))
    assert {outcome.status for outcome in outcomes} == {"ok"}, facts
    assert says in facts


async def test_a_name_that_the_api_does_not_know_is_refused() -> None:
    program = 'get_movie("no such film")["title"]\nget_movie((((('
    live = LiveExecutor(client(fake()), CATALOGUE)
    outcomes = await live.execute(program, domain="movie", query_time=NOW, budget=Budget(20))
    assert [outcome.status for outcome in outcomes] == ["no_entity", "parse_error"]


async def test_no_more_is_called_than_one_question_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_api, "MAX_REQUESTS", 3)
    api = MockApi(client(httpx.MockTransport(lambda _: httpx.Response(200, json={"result": 1}))), Budget(30))
    results = await api.call_each("movie/get_movie_info_by_id", "query", range(5))
    assert (sum(one is not None for one in results), api.report.requests) == (3, 3)
