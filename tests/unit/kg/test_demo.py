"""The demo graph agrees with itself, and has something for every behaviour of the language."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

from services.kg.domains import CATALOGUE
from services.kg.load import load


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path_factory.mktemp('demo') / 'demo.sqlite'}")
    report = load("demo", engine)
    assert report.skipped == 0
    assert not report.unknown
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def ask(demo: Connection, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in demo.execute(text(sql))]


@pytest.mark.parametrize(
    ("rows", "least"),
    [
        ("movie", 60), ("company", 35), ("open_entity", 60), ("oscar WHERE movie_id IS NOT NULL", 81),
        ("movie WHERE revenue IS NULL AND release_date < '2024'", 3),
        ("movie WHERE release_date > '2024-02-28' AND revenue IS NULL AND rating IS NULL", 1),
        ("movie_person WHERE name = 'Steve McQueen' AND birthday IS NOT NULL", 2),
        ("movie WHERE title IN ('Titanic', 'Batman', 'Dune', 'Frozen')", 8), ("artist WHERE name = 'Nirvana'", 2),
        ("artist WHERE is_band", 28),
        ("oscar WHERE year = 2013 AND category_key = 'sound_editing' AND winner", 2),
        ("billboard WHERE rank_last_week IS NULL AND weeks_in_chart = 1", 1),
        ("stated_total WHERE relation = 'finance.dividends' AND total = 0", 2),
        ("soccer_match WHERE date = '2024-02-28'", 1),
        # Names of the award changed, the award did not.
        ("(SELECT DISTINCT category FROM oscar WHERE category_key = 'documentary_feature')", 2),
    ],
)  # fmt: skip
def test_it_has_what_is_promised(demo: Connection, rows: str, least: int) -> None:
    assert ask(demo, f"SELECT count(*) FROM {rows}")[0][0] >= least  # noqa: S608


# What would contradict the rest, by the sides of a game too.
CONTRADICTIONS = {
    "a film without a cast": "SELECT title FROM movie m WHERE"
    " (SELECT count(*) FROM movie_cast c WHERE c.movie_id = m.movie_id) < 4",
    "a film without a director": "SELECT title FROM movie m WHERE NOT EXISTS"
    " (SELECT 1 FROM movie_crew c WHERE c.movie_id = m.movie_id AND job = 'Director')",
    "a film of impossible numbers": "SELECT title FROM movie WHERE length(release_date) <> 10 OR rating NOT BETWEEN 1"
    " AND 10 OR length NOT BETWEEN 60 AND 240 OR revenue < 1000000 OR budget < 1000000",
    "a credit without a place": "SELECT 1 FROM movie_cast WHERE ord = 9999",
    "an actor before birth": "SELECT name, title FROM movie_cast JOIN movie USING (movie_id) JOIN movie_person"
    " USING (person_id) WHERE birthday > date(release_date, '-5 years')",
    "an Oscar of another year's film": "SELECT film, year, release_date FROM oscar JOIN movie USING (movie_id)"
    " WHERE abs(year - 1 - CAST(substr(release_date, 1, 4) AS INTEGER)) > 1",
    "an impossible price": "SELECT ticker, date FROM price_daily"
    " WHERE NOT (low <= min(open, close) AND high >= max(open, close))",
    "a price of a holiday": "SELECT 1 FROM price_daily"
    " WHERE strftime('%w', date) IN ('0', '6') OR date IN ('2024-01-15', '2024-02-19')",
    "a ratio that is another": "SELECT p.ticker FROM company_fact p"
    " JOIN company_fact e ON e.ticker = p.ticker AND e.key = 'forwardEps'"
    " JOIN company_fact c ON c.ticker = p.ticker AND c.key = 'currentPrice'"
    " WHERE p.key = 'forwardPE' AND abs(p.number - c.number / e.number) > 0.01",
    "a Grammy of another edition": "SELECT 1 FROM grammy WHERE edition <> year - 1957",
    "a game to come with a result, or one played without": "SELECT 1 FROM soccer_match"
    " WHERE (date < '2024-02-28') = (result IS NULL)",
} | {
    f"{what} of {table}": sql.format(table=table, key=key)
    for table, key in (("soccer_match", "g.date = o.date"), ("nba_game", "g.game_id = o.game_id"))
    for what, sql in {
        "a game of one side": "SELECT g.team_id, g.date FROM {table} g LEFT JOIN {table} o"
        " ON o.team_id = g.opponent_id AND o.opponent_id = g.team_id AND {key}"
        " WHERE o.team_id IS NULL OR o.gf IS NOT g.ga OR o.ga IS NOT g.gf",
        "a wrong result": "SELECT 1 FROM {table} WHERE (result = 'W') <> (gf > ga) OR (result = 'L') <> (gf < ga)",
    }.items()
}


@pytest.mark.parametrize("sql", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_nothing_contradicts_the_rest(demo: Connection, sql: str) -> None:
    assert ask(demo, sql) == []


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT DISTINCT date FROM price_daily WHERE is_partial", [("2024-02-28",)]),
        ("SELECT count(DISTINCT date) FROM price_daily WHERE ticker = 'ZLIL'", [(40,)]),
        ("SELECT count(DISTINCT date) FROM price_daily WHERE ticker = 'ZJAB'", [(38,)]),
        ("SELECT DISTINCT ticker FROM price_minute", [("ZLIL",)]),
        ("SELECT max(at) FROM price_minute", [("2024-02-28T10:52:00",)]),
        ("SELECT as_of FROM source WHERE domain = 'finance'", [("2024-02-28T10:52:00",)]),
        ("SELECT DISTINCT length(release_date) FROM work WHERE release_date <> '' ORDER BY 1", [(4,), (7,), (10,)]),
        ("SELECT total FROM stated_total WHERE relation = 'music.works' AND entity_id = 'bob-dylan'", [(860,)]),
        ("SELECT end_date FROM artist WHERE name = 'Adele'", [(None,)]),
        ("SELECT games, wins + losses FROM team_period", [(81, 81)]),
    ],
)
def test_single_facts(demo: Connection, sql: str, rows: list[tuple[Any, ...]]) -> None:
    assert ask(demo, sql) == rows


# By table: its prizes, and the years of which it has a winner of each.
NIGHTS = {
    "oscar": (("picture", "director", "actor_leading", "actress_leading", "visual_effects"), range(2000, 2025)),
    "grammy": (("best_new_artist", "best_album", "best_song", "best_record"), range(2000, 2020)),
}


@pytest.mark.parametrize("table", NIGHTS)
def test_each_night_since_2000_has_a_winner(demo: Connection, table: str) -> None:
    prizes, years = NIGHTS[table]
    winners = {*ask(demo, f"SELECT category_key, year FROM {table} WHERE winner")}  # noqa: S608
    assert {(prize, year) for prize in prizes for year in years} <= winners


def test_real_companies_have_no_invented_figures(demo: Connection) -> None:
    real = "(SELECT ticker FROM company WHERE ticker NOT IN (SELECT ticker FROM company_fact WHERE key = 'fictitious'))"
    for table in ("price_daily", "price_minute", "dividend"):
        assert ask(demo, f"SELECT DISTINCT ticker FROM {table} WHERE ticker IN {real}") == []  # noqa: S608
    slow = {key for (key,) in ask(demo, f"SELECT DISTINCT key FROM company_fact WHERE ticker IN {real}")}  # noqa: S608
    assert slow == {"sector", "industry", "country", "city", "ipoDate", "founded"}
    assert {ticker[0] for (ticker,) in ask(demo, "SELECT ticker FROM company_fact WHERE key = 'fictitious'")} == {"Z"}


def test_open_facts_lead_from_owner_to_ticker(demo: Connection) -> None:
    facts = {(entity, key): value for entity, key, value in ask(demo, "SELECT entity, key, value FROM open_fact")}
    assert facts["USA Today", "owner"] == "Gannett"
    assert facts["Gannett", "traded_as"] == "NYSE: GCI"
    assert facts["Edward Hopper", "death_date"] == "1967-05-15"
    assert facts["Starbucks", "founders"] == "Jerry Baldwin; Zev Siegl; Gordon Bowker"
    assert not [value for value in facts.values() if set("{}[]<>") & set(value)]


def test_every_part_is_explained() -> None:
    text = pathlib.Path("docs/demo-graph.md").read_text()
    assert all(f"| {domain.name} |" in text for domain in CATALOGUE.domains.values() if domain.folder.has("demo.jsonl"))
