"""Rules answer plain questions without a model, from names in the graph."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Engine

from services.kg.domains import CATALOGUE
from services.kg.execute import Executor
from services.kg.generate.rules import RuleWriter
from services.kg.generate.rules.question import Question
from services.kg.generate.spans import Spotter
from services.kit.budget import Budget
from tests.unit.kg.graph import ASKED

pytestmark = pytest.mark.anyio

PROGRAMS = (
    ("movie", "who was the director of the glass orchard?", 'get_movie("the glass orchard")["director"]'),
    ("movie", "how much did harbour lights gross", 'get_movie("harbour lights")["revenue"]'),
    ("movie", "what was harbour lights called originally", 'get_movie("harbour lights")["original_title"]'),
    ("movie", "language of the glass orchard", 'get_movie("the glass orchard")["original_language"]'),
    ("movie", "when did harbour lights 2 hit theaters", 'get_movie("harbour lights 2")["release_date"]'),
    ("movie", "when was ada lindqvist born", 'get_person("ada lindqvist")["birthday"]'),
    (
        "movie",
        "who is older, ada lindqvist or bo o'hara?",
        'get_person("ada lindqvist")["birthday"]\nget_person("bo o\'hara")["birthday"]',
    ),
    (
        "movie",
        "how many films did chiara muñoz direct",
        'LEN get_movie_person_crew(None, "chiara muñoz", eq(job, "Director"))',
    ),
    (
        "movie",
        "which movie won the oscar for best picture in 2018?",
        'get_movie_person_oscar(None, None, [eq(category, "picture"), eq(winner, true), eq(year, 2018)])["film"]',
    ),
    (
        "movie",
        "who played captain reed in harbour lights?",
        'get_movie_person_cast("harbour lights", None, eq(character, "captain reed"))["name"]',
    ),
    ("movie", "list all films of harbour lights, the series", 'ALL get_movie("harbour lights")["title"]'),
    ("movie", "films with ada lindqvist", 'ALL get_movie_person_cast(None, "ada lindqvist", None)["title"]'),
    (
        "movie",
        "which films did chiara muñoz direct after 2010?",
        'ALL get_movie_person_crew(None, "chiara muñoz", [eq(job, "Director"), gt(year, 2010)])["title"]',
    ),
    (
        "movie",
        "which movie is longer, harbour lights or the glass orchard?",
        'get_movie("harbour lights")["length"]\nget_movie("the glass orchard")["length"]',
    ),
    # What the graph has nothing about is not answered with something else.
    ("movie", "who is ada lindqvist married to?", "none"),
    ("finance", "which company in the dow jones is best?", "none"),
    ("finance", "how many patents does zzt have?", "none"),
    ("music", "how many tours did ilse vant do", "none"),
    ("finance", "what was zzt's closing price yesterday", 'get_stock_price("zzt", "yesterday")["close"]'),
    ("finance", "what is zzt trading at now?", 'get_stock_price("zzt", "latest")["close"]'),
    ("finance", "open of zzt last monday", 'get_stock_price("zzt", "last monday")["open"]'),
    ("finance", "average high of zzt this week", 'AVG get_stock_price("zzt", "this week")["high"]'),
    ("finance", "which is valued more, zzt or qqn?", 'get_stock_market_cap("zzt")\nget_stock_market_cap("qqn")'),
    ("finance", "when did zzt first pay a dividend", 'get_stock_dividend("zzt") sort(None, date)["date"][:1]'),
    ("finance", "how many dividends did zzt pay in 2023", 'LEN get_stock_dividend("zzt", "2023")'),
    ("finance", "what sector is zzt in", 'get_stock_info("zzt")["sector"]'),
    ("finance", "how many shares of zzt were traded yesterday?", 'get_stock_price("zzt", "yesterday")["volume"]'),
    ("finance", "highest price of zzt this week", 'MAX get_stock_price("zzt", "this week")["high"]'),
    ("music", "who sings hallow", 'get_song("hallow")["author"]'),
    ("music", "when was ilse vant born?", 'get_person("ilse vant")["birth_date"]'),
    (
        "music",
        "songs of ilse vant released in 2015",
        'get_person("ilse vant")["music"] where(eq(release_date, "2015"))["title"]',
    ),
    ("music", "members of the paper kites club", 'get_person("the paper kites club")["members"]'),
    ("music", "best new artist of the 61st grammy (2018)", 'get_grammy_year("2018")["best_new_artist"]'),
)


@pytest.fixture(scope="module")
def writer(small_graph: Engine) -> RuleWriter:
    return RuleWriter(CATALOGUE, Spotter(small_graph, CATALOGUE))


@pytest.mark.parametrize(("domain", "query", "program"), PROGRAMS)
async def test_a_question_becomes_its_program_which_runs(
    writer: RuleWriter, executor: Executor, domain: str, query: str, program: str
) -> None:
    written = await writer.write(query, query_time=ASKED, domain=domain, budget=Budget(1))
    assert written.program == program
    assert (written.mode, written.completion_tokens) == ("rules", 0)
    outcomes = executor.execute(program, domain=domain, query_time=ASKED)
    assert all(outcome.status not in ("parse_error", "unknown_key") for outcome in outcomes)
    assert len(outcomes) == program.count("\n") + 1


@pytest.mark.parametrize(
    "query", ["", "?", "none", '") drop table name', "<|im_end|> who", "the the the", "🎬 " * 50, "a or b or c " * 60]
)
def test_hostile_questions_get_programs_that_parse(writer: RuleWriter, executor: Executor, query: str) -> None:
    for domain in CATALOGUE.domains:
        outcomes = executor.execute(writer.program(query, ASKED, domain), domain=domain, query_time=ASKED)
        assert all(outcome.status != "parse_error" for outcome in outcomes), domain


def test_without_a_graph_names_are_guessed() -> None:
    program = RuleWriter(CATALOGUE).program("who directed harbour lights?", ASKED, "movie")
    assert program == 'get_movie("harbour lights")["director"]'


def test_the_longest_name_wins_and_asking_words_are_none(small_graph: Engine) -> None:
    spotter = Spotter(small_graph, CATALOGUE)
    spots = spotter.spot("when was Harbour Lights 2's premiere?", spotter.kinds_of("movie"))
    assert [spot.text for spot in spots] == ["Harbour Lights 2"]
    assert spotter.spot("when was the first of them released?", spotter.kinds_of("movie")) == []
    assert spotter.spot("", spotter.kinds_of("movie")) == []


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("price on the last trading day of 2023", "last trading day of 2023"),
        ("losses during 2023-01", "2023-01"),
        ("their game on 2022-10-14", "2022-10-14"),
        ("wins in 2022", "2022"),
        ("close the day before yesterday", "day before yesterday"),
        ("open on the most recent friday", "most recent friday"),
        ("days in q4 2023 when it fell", "q4 2023"),
        ("days of the first week of january 2024", "first week of january 2024"),
        ("the day that the market was open", ""),
        ("who is it", ""),
    ],
)
def test_times_are_found_as_they_are_said(text: str, time: str) -> None:
    now = datetime(2024, 2, 28, 8, 12, tzinfo=ZoneInfo("America/Los_Angeles"))
    assert Question(text, CATALOGUE.domains["finance"].calendar, now).time == time
