"""Programs over the small graph: right window, right rows, right words; and what is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Engine, create_engine, text

from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.errors import ExecutionTimeout, StoreError
from services.kg.execute import Executor
from services.kg.outcome import Outcome
from services.kg.store.engine import deadline, open_store
from services.kg.verbalize import verbalize
from tests.unit.kg.graph import ASKED, disposed

LA = ZoneInfo("America/Los_Angeles")


def run(executor: Executor, domain: str, program: str, asked: datetime = ASKED) -> list[Outcome]:
    return executor.execute(program, domain=domain, query_time=asked, seconds=10)


def words(outcomes: list[Outcome], max_tokens: int = 1_000) -> str:
    return "\n".join(verbalize(outcomes, CATALOGUE.domains, date(2024, 2, 28), max_tokens=max_tokens))


# By domain: a program, the parts that its facts must have, and those that they must not have.
FACTS: dict[str, list[tuple[str, ...]]] = {
    "movie": [
        ('get_movie("the glass orchard")["length"]', "164 minutes"),
        ('get_movie("glass orchard")["revenue"]', "No box office revenue; is known", "$0"),
        ('get_movie("harbour lights")["revenue"]', "(1991); $83,531,958; (2015); $133,718,711"),
        ('get_movie("harbour lights", 2015)["revenue"]', "$133,718,711", "$83,531,958"),
        ('get_movie("harbour lights", year=1991)["box office"]', "$83,531,958", "$133,718,711"),
        ('get_movie("harbour lights", year=2015)["original_language"]', "French (fr)"),
        ('ALL get_movie("harbour lights")["title"]', "Harbour Lights (1991); Harbour Lights 2 (2025)"),
        ('ALL get_movie("harbour lights")["len"]', "Number of films; : 3."),
        ('get_movie("harbour lights", 1991)["director"]', "Director; Chiara Muñoz"),
        ('get_movie("harbour lights", 1991)["genres"]', "Action; Thriller"),
        ('get_movie_person_cast("harbour lights",None,eq(character,"pilot"))["name"]', "Ada Lindqvist", "O'Hara"),
        ('get_movie_person_cast("glass orchard",None,eq(character,"pilot"))["name"]', "knows nothing", "Ada"),
        ('get_movie_person_cast(None,["Ada Lindqvist","Bo O\'Hara"],None)["len"]', "both acted: 1.; Harbour"),
        ('get_movie_person_cast(["harbour lights","glass orchard"],None,None)["name"]', "Ada Lindqvist", "O'Hara"),
        (
            'get_movie_person_cast(None,"Ada Lindqvist",None) sort(None,-release_date)["title"]',
            "(2); The Glass Orchard; Harbour Lights",
            "Harbour Lights 2",
        ),
        ('get_movie_person_cast(None,"Ada Lindqvist",eq(genre,"thriller"))["title"]', "(1); 1991", "Glass"),
        ('get_movie_person_cast(None,"Ada Lindqvist",ge(year,2010))["len"]', ": 1."),
        # Counts regard stated totals.
        ('get_movie_person_cast("harbour lights",None,None)["len"]', ": 2."),
        ('get_movie_person_cast("the glass orchard",None,None)["len"]', ": 1."),
        ('get_movie_person_crew(None,"chiara munoz",[eq(job,"director"),lt(year,2000)])["title"]', "1991", "Glass"),
        ('get_movie_person_crew(None,"chiara munoz",neq(job,"director"))["job"]', "Writer"),
        (
            'get_movie_person_oscar(None,None,[eq(year,2018),eq(category,"best film"),eq(winner,true)])["film"]',
            "won the 2018 Oscar; The Glass Orchard",
            "nominated",
        ),
        ('get_movie_person_oscar(None,"ada lindqvist",None)["len"]', "1"),
        ('get_movie_person_oscar("salt road", None, None)["name"]', "Otto Brandt won the 1950 Oscar"),
        (
            'get_person("bo o\'hara")["birthday"]\nget_movie("glass orchard")["release_date"]',
            "1980-11-12; 2017-10-04; Bo O'Hara was 36 years old on 2017-10-04",
        ),
        ('diff(get_movie("glass orchard")["length"], get_movie("harbour lights", 1991)["length"])', "42 minutes"),
        (
            'get_movie_person_oscar(None,None,[eq(year,2018),eq(category,"picture")])["film"]\n'
            'get_movie("harbour lights", 1991)["length"]\n'
            'get_movie_person_crew(*1["film"],None,eq(job,"Director"))["name"]',
            "Chiara Muñoz",
        ),
        ('get_year_movies("2017")["title"]', "The Glass Orchard", "Harbour"),
        ('get_movie("harbour lights") group(original_language)', "by original language: ; en; fr; count 1"),
    ],
    "finance": [
        ('get_stock_price("zzt","yesterday")["close"]', "2024-02-27; $10.53"),
        ('get_stock_price("zuzana tools","last monday")["open"]', "2024-02-20; $10.00; no trading on 2024-02-19"),
        ('get_stock_price("ZZT","2024-02-19")["close"]', "2024-02-16; $9.90; no trading on 2024-02-19"),
        ('get_stock_price("zzt","latest")["close"]', "10:49; $11.11", "$55.00; $99.00"),
        ('get_stock_price("zzt","today")["close"]', "10:49; $11.11", "$99.00"),
        ('get_stock_price("zzt","today")["open"]', "2024-02-28; $10.70"),
        ('get_stock_price("zzt","latest")["open"]', "2024-02-28; $10.70", "10:49"),
        ('AVG get_stock_price("zzt","this week")["high"]', "$11.60; from 2 values; 2024-02-26 to 2024-02-27", "99"),
        ('SUM get_stock_price("zzt","last week")["volume"]', "4,014 shares; from 4 values"),
        ('MAX get_stock_price("zzt","last week")["high"]', "highest; $11.60; 2024-02-23"),
        (
            'get_stock_price("zzt","2024-02-20","2024-02-27") where(gt(close,open))["date"]',
            "(3); 2024-02-20; 2024-02-22; 2024-02-26",
            "2024-02-21",
        ),
        ('get_stock_price("zzt","last week") where(gt(open,previous_close))["len"]', ": 1."),
        ('get_stock_price("zzt","last week") sort(None,-volume)["date"][:1]', "2024-02-23"),
        ('get_stock_dividend("zzt")["len"]', ": 2.", "2024-05-14"),
        ('get_stock_dividend("zzt","q1 2024")["date"]', "2024-02-14", "2023"),
        ('SUM get_stock_dividend("zzt")["value"]', "$1.25"),
        (
            'get_stock_dividend("zzt") sort([ge(date,"2023-01-01"),le(date,"2023-12-31")],-date)["value"]',
            "$0.50",
            "0.75",
        ),
        ('get_stock_dividend("qqn")["date"]', "states that there are none"),
        ('get_stock_market_cap("zzt")\nget_stock_market_cap("qqn")', "$123,456,789,012; 123.46 billion; $77,000,000"),
        ('get_stock_eps("zzt")', "$2.92"),
        ('get_stock_info("zzt")["dividend yield"]', "3.41%"),
        ('get_stock_info("zzt")["employees"]', "4,100"),
        ('ratio(get_stock_market_cap("zzt")["value"], get_stock_market_cap("qqn")["value"])', "1,603"),
    ],
    "music": [
        (
            'get_grammy_year("2008")["best_new_artist"]\nget_person(*["best_new_artist"])["birth_place"]',
            "Ilse Vant; United Kingdom (GB)",
        ),
        ('get_grammy_year("2008","2016")["artist"]', "2008; 2016"),
        ('get_grammy_year("59th grammys (2016)")["best_song"]', "Hallow"),
        ('get_grammy_person("ilse vant")["award_count"]', ": 2."),
        ('get_grammy_song("hallow")["award_count"]', ": 1."),
        ('get_person("ilse vant")["music"] sort(None,-release_date)["title"][:1]', "Hallow", "Not Yet Out"),
        ('get_person("ilse vant")["music"] sort(None,release_date)["release_date"][:1]', "2011", "2015"),
        ('get_person("ilse vant")["music"] where(eq(release_date,"2011"))["len"]', ": 1."),
        (
            'get_person("ilse vant")["music"] sort(eq(release_date,2011),release_date)["title"]',
            "Twenty One Miles",
            "Hallow",
        ),
        ('get_person("paper kites club")["members"]', "(2); Ilse Vant; Tom Ferris; past and present"),
        ('get_person("ilse vant")["bands"]', "The Paper Kites Club"),
        ('get_person("ilse vant")["lifespan"]', "1988-05-05; No end"),
        ('get_person("the paper kites club")["lifespan"]', "1994; 2001-06"),
        ('get_song("hallow")["author"]', "Ilse Vant"),
        ('get_song("hallow")["release_country"]', "worldwide (XW)"),
        ('get_billboard_song("hallow","this week")["rank"]', "2024-02-24;  1", "2024-02-17"),
        ('get_billboard(3,"2024-02-20")["song"]', "Hallow; 2024-02-17"),
    ],
    "sports": [
        ('get_soccer_last_game("riverside","esp-la liga")["result"]', "2024-02-25; D (drawn); Betis"),
        ('get_soccer_next_game("riverside")["date"]', "2024-03-03; Girona"),
        ('get_soccer_next_game("riverside")["result"]', "no result yet"),
        ('get_soccer_on_date("riverside","last week")["opponent"]', "Alavés", "Betis"),
        ('get_soccer_on_date("riverside","today")', "had no game; 2024-02-28"),
        ('get_soccer_on_date("riverside","last time")["captain"]', "Iker Sol"),
        ('get_nba_on_date("denver foxes","2023-02") where(eq(venue,"home"),eq(result,"L"))["len"]', ": 1.; Iowa Bells"),
        ('SUM get_nba_on_date("denver foxes","2023-02")["points"]', "301"),
        ('get_nba_on_date("denver foxes","2023-02")["opponent"]', "3 games, 2 won, 1 lost"),
        ('get_nba_on_date("denver foxes","2023-01") where(eq(result,"L"))["len"]', "14 games, 10 won, 4 lost"),
        ('get_nba_plays("n1")["home"]', "Jump ball"),
    ],
    "open": [
        ('get_open("mount zephyr")["elevation"]', "3,210"),
        ('get_open("mount zephyr")["country"]\nget_open(*["country"])["capital"]', "Zephyria; Port Alba"),
        ('get_open("mount zephyr")["entity"]', "Mount Zephyr"),
        ('get_open("mount zephyr")["name"]', "nothing is known under name"),
        ('get_open("mount zephyr")["height"]', "3,210", "nothing is known"),
        ('get_open("mount zephyr")["first ascent"]', "nothing is known under first ascent; invented mountain"),
        ('get_open("mount zephyr")', "invented mountain; 3,210; Zephyria"),
    ],
}


@pytest.mark.parametrize(
    ("domain", "program", "says", "omits"),
    [
        pytest.param(domain, program, says, "; ".join(omits), id=program)
        for domain, cases in FACTS.items()
        for program, says, *omits in cases
    ],
)
def test_facts(executor: Executor, domain: str, program: str, says: str, omits: str) -> None:
    facts = words(run(executor, domain, program))
    assert not [part for part in says.split("; ") if part not in facts], facts
    assert not [part for part in omits.split("; ") if part and part in facts], facts


@pytest.mark.parametrize(
    ("domain", "program", "status"),
    [
        ("movie", 'get_movie("no such film anywhere")["budget"]', "no_entity"),
        ("movie", 'get_movie("glass orchard")["spouse of the director"]', "unknown_key"),
        ("movie", 'get_film_thing("glass orchard")', "parse_error"),
        ("movie", "get_movie(((", "parse_error"),
        ("movie", "none", "no_program"),
        ("movie", '*["title"]', "parse_error"),
        ("finance", 'get_stock_price("zzt","the day the music died")["close"]', "parse_error"),
        ("finance", 'get_stock_price("zzt") where(gt(close,"a lot"))', "parse_error"),
        ("finance", 'get_stock_price("dow jones","yesterday")["close"]', "no_entity"),
        ("finance", 'get_stock_info("zzt")["colour of the logo"]', "unknown_key"),
        ("sports", 'get_soccer_on_date("riverside","yesterday")["result"]', "no_event"),
        ("open", 'get_open("mount zephyr")["first ascent"]', "unknown_key"),
    ],
)
def test_status_says_what_is_wrong(executor: Executor, domain: str, program: str, status: str) -> None:
    (outcome,) = run(executor, domain, program)
    assert outcome.status == status
    assert words([outcome])


def test_a_bad_statement_does_not_cost_the_others(executor: Executor) -> None:
    first, second, third = run(
        executor, "movie", 'get_movie("glass orchard")["bogus key"]\nget_movie((\nget_movie("glass orchard")["length"]'
    )
    assert (first.status, second.status, third.status) == ("unknown_key", "parse_error", "ok")
    assert "length" in third.shown


def test_the_nearest_names_are_offered(executor: Executor) -> None:
    key, function = run(executor, "movie", 'get_movie("glass orchard")["runtimes of it"]\nget_moovie("glass orchard")')
    assert key.expected
    assert "get_movie" in function.expected


def test_references_cannot_turn_in_circles(executor: Executor) -> None:
    first, second = run(executor, "movie", 'get_movie(*2["title"])["length"]\nget_movie(*1["title"])["length"]')
    assert first.status == second.status == "parse_error"


def test_hops_are_bounded(executor: Executor) -> None:
    hop = 'get_movie(*["title"])["title"]'
    outcomes = run(executor, "movie", "\n".join(['get_movie("glass orchard")["title"]', *[hop] * 5]))
    assert [outcome.status for outcome in outcomes][:4] == ["ok"] * 4
    assert {outcome.status for outcome in outcomes[4:]} == {"parse_error"}


def test_what_lies_after_the_question_is_hidden(executor: Executor) -> None:
    early = datetime(2010, 1, 1, tzinfo=LA)
    select = "SELECT COUNT(DISTINCT release_date) FROM movie_person_cast WHERE name = 'Ada Lindqvist'"
    program = ['get_movie_person_cast(None,"Ada Lindqvist",None)["len"]', select, f"{select} AND release_date > '1900'"]
    assert [run(executor, "movie", one, early)[0].value for one in program] == [1, 1, 3]


def test_a_question_after_the_snapshot_is_stale(executor: Executor) -> None:
    late = datetime(2024, 3, 17, 9, 0, tzinfo=LA)
    (outcome,) = run(executor, "finance", 'get_stock_price("zzt","yesterday")["close"]', late)
    assert outcome.status == "stale"
    assert "2024-02-27" in words([outcome])


@pytest.mark.parametrize("time", ["latest", "today"])
def test_before_the_market_opens_the_last_close_is_said_to_be_that(executor: Executor, time: str) -> None:
    early = ASKED - timedelta(hours=3)
    (outcome,) = run(executor, "finance", f'get_stock_price("zzt","{time}")["close"]', early)
    facts = words([outcome])
    assert "$10.53" in facts
    assert "had not opened" in facts
    (outcome,) = run(executor, "finance", f'get_stock_price("zzt","{time}")["open"]', early)
    assert "$10.70" not in words([outcome])
    assert "had not opened" in words([outcome])


@pytest.mark.parametrize(
    "name",
    [
        "'; DROP TABLE movie; --", 'x" OR "1"="1', "Robert'); DELETE FROM name; --", "%", "_", "NEAR(a b)",
        'a* OR b"', "\\", "\u202egnp",
    ],
)  # fmt: skip
def test_names_are_data(executor: Executor, name: str) -> None:
    (outcome,) = run(executor, "movie", f'get_movie("{name}")["title"]'.replace("\\", ""))
    assert outcome.status in ("no_entity", "ambiguous", "parse_error")
    assert run(executor, "movie", 'get_movie("glass orchard")["length"]')[0].status == "ok"


def test_text_is_cut_between_items_and_says_so(executor: Executor) -> None:
    program = "\n".join(['get_stock_price("zzt")'] * 4)
    short = words(run(executor, "finance", program), max_tokens=120)
    assert len(short) < 1_200
    assert "showing" in short or "cut to fit" in short


@pytest.fixture
def opened(scratch: str) -> Iterator[Engine]:
    """A store with a table `t`, as the service opens it."""
    with disposed(create_engine(scratch)) as engine, engine.begin() as connection:
        connection.execute(text("create table t (x)"))
    with disposed(open_store(scratch)) as engine:
        yield engine


def test_a_deadline_interrupts_the_store(opened: Engine) -> None:
    slow = text(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000000) select count(*) from n"
    )
    with pytest.raises(ExecutionTimeout), deadline(0.2), opened.connect() as connection:
        connection.execute(slow).scalar()
    with deadline(5), opened.connect() as connection:
        assert connection.execute(text("select 1")).scalar() == 1


def test_a_service_opens_the_store_read_only(opened: Engine) -> None:
    with pytest.raises(StoreError), deadline(1), opened.connect() as connection:
        connection.execute(text("insert into t values (1)"))


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_a_corrupt_store_is_a_typed_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "corrupt.sqlite"
    path.write_bytes(content)
    with disposed(open_store(f"sqlite:///{path}")) as engine, pytest.raises(StoreError):
        run(Executor(engine, NameIndex(engine, CATALOGUE), CATALOGUE), "movie", 'get_movie("x")["title"]')


@pytest.mark.parametrize("url", ["no url", "mysql://x/y", "sqlite:////nowhere/at/all.sqlite"])
def test_a_wrong_url_is_a_typed_error(url: str) -> None:
    with pytest.raises(StoreError):
        open_store(url)


def test_threads_have_deadlines_of_their_own(executor: Executor) -> None:
    program = 'get_movie("glass orchard")["length"]'
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda _: run(executor, "movie", program)[0], range(8)))
    assert [outcome.status for outcome in outcomes] == ["ok"] * 8
