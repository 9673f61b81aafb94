"""Statements that say another time, state or row than their question means are mended or refused."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spotter
from services.kg.generate.sql.linking import linked_values
from services.kg.generate.sql.times import said_time
from services.kg.generate.sql.writer import SqlWriter
from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.llm import LLM
from tests.mesh.fakes import FakeGenerator
from tests.unit.kg.library import drafted_graph, write

pytestmark = pytest.mark.anyio
DOMAIN = "school"
TUTOR = "SELECT name FROM trainee WHERE status IN (SELECT status FROM instructor WHERE full_name = 'Ruth Amble')"
NEVER = "SELECT name FROM trainee WHERE NOT name IN (SELECT trainee FROM exam WHERE result = 'fail')"
PHONE = "SELECT instructor_phone FROM lesson WHERE trainee = 'Pia Stoll'"
HOURS = "SELECT trainee, SUM(mins) / 60 AS hours FROM lesson GROUP BY trainee ORDER BY hours DESC LIMIT 1"
CAL = ["Cal Dorne"]
OVERDUE = "SELECT loan_no FROM loan WHERE due_date < '2025-06-15' AND returned_on IS NULL"
DAYS_OUT = "SELECT AVG(JULIANDAY(returned_on) - JULIANDAY(loan_date)) FROM loan"
LONGEST_OUT = "SELECT loan_no FROM loan ORDER BY JULIANDAY(returned_on) - JULIANDAY(loan_date) DESC LIMIT 1"
FIRST_BACK = "SELECT loan_no FROM loan WHERE NOT returned_on IS NULL ORDER BY returned_on LIMIT 1"
NO_LOAN = "SELECT trainee FROM loan GROUP BY trainee HAVING COUNT(*) = 0"
NO_LESSON = "SELECT trainee FROM lesson WHERE NOT trainee IN (SELECT trainee FROM lesson WHERE NOT trainee IS NULL)"
IN_HALLS = "SELECT DISTINCT trainee FROM exam WHERE hall IN ('Northgate', 'Southend')"
IN_HALLS_OF = "SELECT hall FROM exam WHERE trainee = 'Pia Stoll' OR trainee = 'Una Brand'"
SEEN = ["Pia Stoll", "Ned Harrow", "Una Brand", "Cal Dorne"]
MINUTES = "SELECT COUNT(*) FROM lesson WHERE instructor = 'Ruth Amble'"
LONG_OUT = "SELECT COUNT(*) FROM loan WHERE JULIANDAY(returned_on) - JULIANDAY(loan_date) > 20"
NEXT_LOAN = "SELECT loan_no FROM loan WHERE due_date >= '2025-06-15' ORDER BY due_date LIMIT 1"
NEXT_IN_A_YEAR = NEXT_LOAN.replace(">= '2025-06-15'", "BETWEEN '2025-06-15' AND '2026-06-14'")
DUE_BEFORE = "SELECT loan_no FROM loan WHERE due_date >= '2025-06-15' AND due_date < '{}'"
FAILED = "SELECT exam_reference FROM exam WHERE hall = 'Northgate' AND result = 'fail'"
MOST_LESSONS = "SELECT trainee FROM lesson GROUP BY trainee ORDER BY COUNT(*) DESC LIMIT 1"
SINCE_MAY = "SELECT name FROM trainee WHERE name IN (SELECT trainee FROM exam WHERE exam_date >= '2025-05-01')"
HALLS = ["Southend", "Northgate"]
EXAMS = ["X-12", "X-14", "X-16"]
NOW = datetime(2025, 6, 15, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Executor, NameIndex]]:
    with drafted_graph(tmp_path_factory.mktemp(DOMAIN), DOMAIN) as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        yield Executor(engine, names, catalogue), names


async def result_of(graph: tuple[Executor, NameIndex], query: str, reply: str, domain: str = DOMAIN) -> Any:
    """The number that the reply's statement computes, or what its rows show first; None where it is refused."""
    executor, names = graph
    generator = FakeGenerator(lambda _: reply)
    llm = LLM(ServiceClient("generator", "http://g", http_client(httpx.ASGITransport(generator.app))))
    values, spotter = Values(names.engine), Spotter(names.engine, executor.catalogue)
    written = await SqlWriter(llm, executor.catalogue, names, values, spotter).write(
        query, query_time=NOW, domain=domain, budget=Budget(5)
    )
    if written.program == "none":
        return None
    outcome = executor.execute(written.program, domain=domain, query_time=NOW, seconds=5.0)[-1]
    assert outcome.status in ("ok", "empty"), outcome.message
    return outcome.value if outcome.value is not None else [row[outcome.shown[0]] for row in outcome.rows]


@pytest.mark.parametrize(
    ("query", "reply", "result"),
    [
        # The time of the question, where the statement has another one or none.
        ("how many exams were failed this year?", "SELECT COUNT(*) FROM exam WHERE result = 'fail'", 2),
        ("how much was paid this year?", "SELECT SUM(amount) FROM payment", 155.0),
        ("how many exams since the start of May?", "SELECT COUNT(*) FROM exam WHERE exam_date >= '2024-05-01'", 2),
        ("how many exams since April?", "SELECT COUNT(*) FROM exam WHERE exam_date >= '2023-04-01'", 4),
        ("how many exams were there last February?", "SELECT COUNT(*) FROM exam", 1),
        ("who has the most exams this year?", "SELECT tutor FROM trainee GROUP BY tutor ORDER BY COUNT(*) DESC", None),
        ("who was busiest this year?", "SELECT full_name FROM instructor ORDER BY trainee_count DESC LIMIT 1", None),
        ("how many instructors started this year?", "SELECT COUNT(*) FROM instructor", 0),
        # Of several days the one that is said, and of none that is not.
        ("how many loans were due in May 2025?", "SELECT COUNT(*) FROM loan", 2),
        ("how many loans were due last month?", "SELECT COUNT(*) FROM loan", 2),
        ("how many books came back last month?", "SELECT COUNT(*) FROM loan", None),
        ("which loans are there this year?", "SELECT loan_no FROM loan", ["L-1", "L-2", "L-3", "L-4"]),
        ("how many loans of First Aid in May 2025?", "SELECT COUNT(*) FROM loan WHERE book = 'First Aid'", 0),
        ("how many returned loans are there today?", "SELECT COUNT(*) FROM loan WHERE returned_on IS NOT NULL", 2),
        ("how many trainees do we have today?", "SELECT COUNT(*) FROM trainee", 4),
        ("how many were due before today?", "SELECT COUNT(*) FROM loan WHERE due_date < DATE('now')", 3),
        ("how many payments over 2000 this year?", "SELECT COUNT(*) FROM payment WHERE amount > 2000", None),
        ("which exams were at Northgate this year?", "SELECT exam_reference FROM exam WHERE hall = 'Northgate'", EXAMS),
        ("how many exams did we start this year?", "SELECT COUNT(*) FROM exam", 5),
        ("this may sound odd, but how many exams are there?", "SELECT COUNT(*) FROM exam", 6),
        ("what is Pia Stoll this year?", "SELECT status FROM trainee WHERE name = 'Pia Stoll'", ["passed"]),
        # What is so before or from today on, and a day that may be the last one or the next.
        ("which loans are overdue?", OVERDUE, ["L-2"]),
        ("which loan is overdue today?", OVERDUE, ["L-2"]),
        ("which loan has to come back next?", NEXT_LOAN, ["L-3"]),
        ("which loan has to come back next?", NEXT_IN_A_YEAR, ["L-3"]),
        ("which loan is next to come back?", NEXT_IN_A_YEAR.replace("due_date LIMIT", "loan_no LIMIT"), None),
        ("which loan is next to come back?", NEXT_IN_A_YEAR.replace("BY due", "BY loan_no DESC, due"), None),
        ("which loan is the next to come back?", "SELECT loan_no FROM loan ORDER BY due_date LIMIT 1", ["L-3"]),
        ("whose loan is next?", "SELECT trainee FROM loan WHERE NOT due_date IS NULL ORDER BY due_date LIMIT 1", CAL),
        ("which loan was due first?", "SELECT loan_no FROM loan ORDER BY due_date LIMIT 1", ["L-4"]),
        ("which loan has to come back?", NEXT_LOAN.replace("2025-06-15", "2025-06-14"), None),
        ("what is due before the year is out?", DUE_BEFORE.format("2026"), ["L-3"]),
        ("what is due?", DUE_BEFORE.format("2026"), None),
        ("what is due by Christmas?", DUE_BEFORE.format("2025-12-25"), ["L-3"]),
        ("which halls had exams in April?", "SELECT hall FROM exam WHERE exam_date LIKE '2025-04%'", HALLS),
        ("which halls did we go to last month?", "SELECT hall FROM exam WHERE exam_date LIKE '2025-05%'", HALLS),
        ("which hall had this February's exams?", "SELECT hall FROM exam WHERE exam_date LIKE '%-02-%'", ["Northgate"]),
        ("who had exams this November?", "SELECT trainee FROM exam WHERE exam_date LIKE '%-11-%'", []),
        # Another value of the column that the question says, and a word of all.
        ("which of all the failed exams were at Northgate?", FAILED, ["X-11", "X-14"]),
        ("how many exams this year, cancelled ones included?", "SELECT COUNT(*) FROM exam", 5),
        ("who has had more lessons, Pia Stoll or Una Brand?", MOST_LESSONS, ["Una Brand"]),
        ("when is the lesson of US?", "SELECT lesson_date FROM lesson WHERE trainee = 'Una Brand'", None),
        ("who has a cancelled exam since May?", SINCE_MAY, ["Una Brand"]),
        # Days between two days are counted; no database subtracts texts.
        ("how long was L-1 out?", "SELECT returned_on - loan_date FROM loan WHERE loan_no = 'L-1'", [20]),
        ("how long are loans out on average?", DAYS_OUT, 20.5),
        ("which loan was out longest?", LONGEST_OUT, ["L-4"]),
        ("which loan was out longest until it came back?", FIRST_BACK, ["L-4"]),
        ("which loan was out shortest before it came back?", FIRST_BACK, ["L-1"]),
        ("how many loans were out for over 20 days?", LONG_OUT, 1),
        ("how many loans were out for long?", LONG_OUT, None),
        ("how much was it?", "SELECT (SELECT hall FROM exam LIMIT 1) - 1 FROM exam", None),
        ("how late was L-1?", "SELECT returned_on - 3 FROM loan WHERE loan_no = 'L-1'", None),
        # A text that only part of the values has.
        ("where was Pia's exam at North?", "SELECT exam_reference FROM exam WHERE hall = 'North'", []),
        ("who had the signs out?", "SELECT trainee FROM loan WHERE book = 'Signs'", ["Pia Stoll", "Una Brand"]),
        # Ages only where they are asked for.
        ("who was the last to pass?", "SELECT name FROM trainee ORDER BY date_of_birth DESC LIMIT 1", None),
        ("who is the youngest?", "SELECT name FROM trainee ORDER BY date_of_birth DESC LIMIT 1", ["Una Brand"]),
        # Rows in a certain state.
        ("how many exams actually took place?", "SELECT COUNT(*) FROM exam", None),
        ("how many exams actually took place?", "SELECT COUNT(*) FROM exam WHERE result <> 'cancelled'", 5),
        ("how many instructors still work here?", "SELECT COUNT(*) FROM instructor", 3),
        ("who has still to bring it back?", "SELECT trainee FROM loan WHERE due_date > DATE('now')", ["Cal Dorne"]),
        ("is Pia Stoll still learning?", "SELECT status FROM trainee WHERE name = 'Pia Stoll'", ["passed"]),
        ("what did exam X-16 actually end in?", "SELECT hall FROM exam WHERE exam_reference = 'X-16'", ["Northgate"]),
        # What a table has by another name, or by another table.
        ("which trainees has Ruth Amble?", TUTOR, ["Pia Stoll", "Una Brand"]),
        ("how many hours has Una Brand had?", "SELECT SUM(hours) FROM lesson WHERE trainee = 'Una Brand'", 2.0),
        ("who had most hours?", HOURS, ["Una Brand"]),
        ("has Pia Stoll never failed?", "SELECT COUNT(*) FROM exam WHERE trainee = 'Pia Stoll' AND result = 'fail'", 1),
        # Numbers of rows.
        ("who has had most minutes of lessons?", MOST_LESSONS, ["Una Brand"]),
        ("how many minutes of lessons did Ruth Amble give?", MINUTES, 210),
        ("how many lessons did Ruth Amble give?", MINUTES, 3),
        ("who is next to come back?", NEXT_LOAN.replace("loan_no", "trainee") + " OFFSET 1", CAL),
        # A state that is said otherwise.
        ("which exam was called off?", "SELECT exam_reference FROM exam", ["X-16"]),
        ("why was exam X-15 called off?", "SELECT result FROM exam WHERE exam_reference = 'X-15'", None),
        ("who has just one exam?", "SELECT name FROM trainee WHERE exam_count = 1", ["Ned Harrow", "Cal Dorne"]),
        ("which lesson took just one hour?", "SELECT lesson_no FROM lesson WHERE mins = 60", [2, 3]),
        ("just two trainees, please", "SELECT name FROM trainee LIMIT 2", ["Pia Stoll", "Ned Harrow"]),
        ("who had just one exam?", "SELECT trainee FROM exam WHERE exam_reference = '1'", None),
        ("which trainee failed most often?", "SELECT name FROM trainee ORDER BY COUNT(*) DESC LIMIT 1", None),
        ("how many exams were failed?", "SELECT COUNT(*) FROM payment WHERE state = 'failed'", None),
        ("how many exams has Una Brand?", "SELECT COUNT(*) FROM exam WHERE trainee = 'Una Brand'", 2),
        ("how many trainees failed?", "SELECT COUNT(*) FROM exam WHERE result = 'fail'", 3),
        ("who has never failed?", "SELECT name FROM trainee WHERE status = 'passed'", None),
        ("who has never failed?", NEVER, ["Ned Harrow"]),
        ("who has had exams at both Northgate and Southend?", IN_HALLS, []),
        ("who has had exams at Northgate or Southend?", IN_HALLS, SEEN),
        ("which halls have both Pia Stoll and Una Brand been to?", IN_HALLS_OF, ["Northgate"]),
        # Those that no row names are among all.
        ("who has never borrowed a book?", NO_LOAN, []),
        ("who has never had a lesson?", NO_LOAN.replace("loan", "lesson"), ["Ned Harrow", "Cal Dorne"]),
        ("who has never had a lesson?", NO_LESSON, ["Ned Harrow", "Cal Dorne"]),
        ("why did Pia Stoll fail?", "SELECT date_of_birth FROM trainee WHERE name = 'Pia Stoll'", None),
        # Codes for people, and what others have.
        ("what is Pia Stoll's phone?", PHONE, None),
        ("what is the phone of Pia Stoll's instructor?", PHONE, ["555 0101"]),
        ("who teaches Ned Harrow?", "SELECT trainee_no FROM trainee WHERE name = 'Ned Harrow'", None),
    ],
)  # fmt: skip
async def test_a_statement_means_what_its_question_does(
    graph: tuple[Executor, NameIndex], query: str, reply: str, result: Any
) -> None:
    assert await result_of(graph, query, reply) == result


@pytest.mark.parametrize(
    ("query", "reply", "result"),
    [
        ("which drivers may lift by themselves?", "SELECT name FROM staff WHERE lifts = 'yes'", ["Ana Sol"]),
        ("how many people may lift by themselves?", "SELECT COUNT(*) FROM staff WHERE lifts = 'yes'", 2),
        ("who is driver Bo Ek led by?", "SELECT boss FROM staff WHERE name = 'Bo Ek'", ["Cy Orr"]),
    ],
)
async def test_what_rows_are_to_others_is_a_value_of_theirs(
    tmp_path: Path, query: str, reply: str, result: Any
) -> None:
    staff = (("name", "job", "lifts", "boss"), ("Ana Sol", "Driver", "yes", "Cy Orr"), ("Cy Orr", "Clerk", "yes", ""))
    (tmp_path / "tables").mkdir()
    write(tmp_path / "tables", "staff.csv", (*staff, ("Bo Ek", "Clerk", "no", "Cy Orr"), ("Di Ma", "Driver", "no", "")))
    trips = (("trip", "driver"), ("T-1", "Ana Sol"), ("T-2", "Di Ma"), ("T-3", "Bo Ek"))
    write(tmp_path / "tables", "trips.csv", trips)
    with drafted_graph(tmp_path, "haulier", tmp_path / "tables") as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        assert await result_of((Executor(engine, names, catalogue), names), query, reply, "haulier") == result


async def test_rows_that_are_called_by_what_they_have_are_counted(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    hires = (("ref", "hirer", "lanes"), ("L1", "Wex Otters", "4"), ("L2", "Wex Otters", "2"), ("L3", "Merfolk", "3"))
    write(tmp_path / "tables", "lane_hire.csv", hires)
    with drafted_graph(tmp_path, "pool", tmp_path / "tables") as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        for query, number in (
            ("how many Wex Otters lane hires are there?", 2),
            ("how many lanes had the Wex Otters?", 6),
        ):
            statement = "SELECT COUNT(*) FROM lane_hire WHERE hirer = 'Wex Otters'"
            assert await result_of((Executor(engine, names, catalogue), names), query, statement, "pool") == number


async def test_a_value_that_is_called_after_a_time_is_no_time_of_an_event(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    coats = (("item", "era", "bought_on"), ("Tudor gown", "Tudor", "2019-03-01"), ("Cape", "1960s", "2020-05-04"))
    write(tmp_path / "tables", "costumes.csv", (*coats, ("Parka", "1960s", "2021-01-02")))
    statement = "SELECT COUNT(*) FROM costume WHERE era = '1960s'"
    with drafted_graph(tmp_path, "wardrobe", tmp_path / "tables") as (engine, catalogue):
        graph = Executor(engine, names := NameIndex(engine, catalogue), catalogue), names
        assert await result_of(graph, "how many 1960s costumes do we have?", statement, "wardrobe") == 2


async def test_a_code_is_not_compared_with_a_name(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    customers = (("customer", "trading_name"), ("C01", "Ash House"), ("C02", "Bell Inn"), ("C03", "Cove Café"))
    write(tmp_path / "tables", "customers.csv", customers)
    write(tmp_path / "tables", "orders.csv", (("order_no", "customer"), ("1", "C01"), ("2", "C03"), ("3", "C01")))
    never = "SELECT trading_name FROM customer WHERE NOT {} IN (SELECT customer FROM order)"
    with drafted_graph(tmp_path, "cellar", tmp_path / "tables") as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        graph = Executor(engine, names, catalogue), names
        for column in ("customer", "trading_name"):
            said = never.format(column)
            assert await result_of(graph, "who has never placed an order?", said, "cellar") == ["Bell Inn"]
        told = never.format("customer").replace("trading_name", "customer")
        assert await result_of(graph, "who has never placed an order?", told, "cellar") == ["Bell Inn"]


def test_a_weekday_is_the_last_one_or_the_next(graph: tuple[Executor, NameIndex]) -> None:
    calendar = graph[0].catalogue.domains[DOMAIN].calendar
    for query, ahead in (("what is due on Monday?", "2025-06-16"), ("what was due last Monday?", "")):
        said = said_time(Question(query, calendar, NOW, ()))
        assert said is not None
        assert (said.first, said.behind, said.ahead) == ("2025-06-09", "2025-06-10", ahead)


def test_a_value_is_said_in_its_forms(graph: tuple[Executor, NameIndex]) -> None:
    executor, names = graph
    links = linked_values("which were failed?", executor.catalogue.domains[DOMAIN].shown, Values(names.engine), ())
    assert {one.value: one.columns for one in links} == {"failed": ("payment.state",), "fail": ("exam.result",)}
