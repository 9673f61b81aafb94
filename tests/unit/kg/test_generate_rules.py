"""Rules answer plain questions without a model, from names in the graph."""

from pathlib import Path

import pytest
import yaml
from sqlalchemy import Engine

from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.rules import RuleWriter
from services.kg.generate.rules.lexicon import lexicons
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.readings import read
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spotter
from services.kit.budget import Budget
from tests.unit.kg.graph import ASKED

pytestmark = pytest.mark.anyio

PROGRAMS = {
    (domain, query): program
    for domain, programs in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")).items()
    for query, program in programs.items()
}


@pytest.fixture(scope="module")
def writer(small_graph: Engine) -> RuleWriter:
    return RuleWriter(
        CATALOGUE, Spotter(small_graph, CATALOGUE), Values(small_graph), NameIndex(small_graph, CATALOGUE)
    )


@pytest.mark.parametrize(("domain", "query"), PROGRAMS)
async def test_a_question_becomes_its_program_which_runs(
    writer: RuleWriter, executor: Executor, domain: str, query: str
) -> None:
    program = PROGRAMS[domain, query]
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


def test_the_longest_name_wins_and_asking_words_are_none(small_graph: Engine) -> None:
    spotter = Spotter(small_graph, CATALOGUE)
    spots = spotter.spot("when was Harbour Lights 2's premiere?", "movie")
    assert [spot.text for spot in spots] == ["Harbour Lights 2"]
    assert spotter.spot("when was the first of them released?", "movie") == []
    assert spotter.spot("", "movie") == []


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("price on the last trading day of 2023", "last trading day of 2023"), ("losses during 2023-01", "2023-01"),
        ("their game on 2022-10-14", "2022-10-14"), ("wins in 2022", "2022"), ("who is it", ""),
        ("close the day before yesterday", "day before yesterday"), ("days in q4 2023 when it fell", "q4 2023"),
        ("open on the most recent friday", "most recent friday"), ("the day that the market was open", ""),
        ("days of the first week of january 2024", "first week of january 2024"),
        ("close on 1 decembre 2023", ""), ("close on 1 december 2023", "1 december 2023"),
        ("close next friday", "next friday"), ("high in q3 last year", "q3 last year"),
        ("close on 5 january of last year", "5 january of last year"), ("close on 2/13/2024", "2/13/2024"),
        ("high in the first half of 2023", "first half of 2023"), ("close a week ago", "a week ago"),
        ("close at the end of january 2024", "end of january 2024"), ("high last three months", "last three months"),
        ("average since january 2024", "since january 2024"), ("average before 2023", "before 2023"),
        ("average from 2020 to 2022", "2020 to 2022"), ("high in march", "march"), ("high in the year 2023", "2023"),
        ("gain so far this month", "so far this month"), ("close from 1 march 2023 on", "from 1 march 2023 on"),
    ],
)  # fmt: skip
def test_times_are_found_as_they_are_said(text: str, time: str) -> None:
    assert Question(text, CATALOGUE.domains["finance"].calendar, ASKED).time == time


@pytest.mark.parametrize(
    "text",
    [
        "high in the last month of 2023", "high in the month before last month", "close two days before yesterday",
        "close the day before 2024-02-13", "close on the last trading day before 2024-02-13", "close a year ago today",
        "close on monday of the week before last week", "open on the first monday of february 2024",
        "high in the first two weeks of january 2024", "dividends in late 2023", "close on 13/14/2024",
        "close on monday or tuesday", "close on a friday", "close on or before friday", "close the week before last",
    ],
)  # fmt: skip
def test_a_time_half_read_is_none(text: str) -> None:
    question = Question(text, CATALOGUE.domains["finance"].calendar, ASKED)
    assert question.is_passed_over
    assert read(lexicons(CATALOGUE)["finance"], question) == []


@pytest.mark.parametrize(
    "text",
    ["close today, {asked:%B %d}", "films of 2010 and 2011", "what day in february 2024", "high in the year 2023"],
)
def test_words_beside_a_time_that_say_no_more_are_no_doubt(text: str) -> None:
    question = Question(text.format(asked=ASKED).lower(), CATALOGUE.domains["finance"].calendar, ASKED)
    assert question.time
    assert not question.is_passed_over
