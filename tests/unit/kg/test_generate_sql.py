"""SQL of a model as programs: what they find, and what is no program."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import yaml
from sqlglot import exp

from proto.kg import MAX_PROGRAM_CHARS, MAX_STATEMENTS
from services.kg.entities import NameIndex
from services.kg.errors import ParseError
from services.kg.execute import Executor
from services.kg.generate.rules.lexicon import lexicons
from services.kg.generate.rules.values import Values, parts_of
from services.kg.generate.spans import Spotter
from services.kg.generate.sql.certainty import SURE, certainty
from services.kg.generate.sql.linking import linked_values, links_text
from services.kg.generate.sql.statement import Statement
from services.kg.generate.sql.times import SaidTime, with_left_out_time
from services.kg.generate.sql.writer import SqlWriter, beginnings
from services.kg.settle import settle
from services.kg.syntax import MAX_CHARS, parse_select
from services.kg.verbalize import verbalize
from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.llm import LLM, Completion, Message, Sample
from tests.mesh.fakes import FakeGenerator
from tests.unit.kg.graph import ASKED
from tests.unit.kg.library import drafted_graph

pytestmark = pytest.mark.anyio
DOMAIN = "library"
CASES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Executor, NameIndex]]:
    """A drafted domain with authors and books, and its names."""
    with drafted_graph(tmp_path_factory.mktemp(DOMAIN), DOMAIN) as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        yield Executor(engine, names, catalogue), names


@pytest.fixture(scope="module")
def executor(graph: tuple[Executor, NameIndex]) -> Executor:
    return graph[0]


def program_of(executor: Executor, sql: str) -> str:
    return Statement(parse_select(sql), executor.catalogue.domains[DOMAIN]).sql(ASKED.date())


def result_of(executor: Executor, program: str) -> Any:
    """The value of a program's last statement, or those that its rows show first, in their order."""
    outcome = executor.execute(program, domain=DOMAIN, query_time=ASKED, seconds=5.0)[-1]
    assert outcome.status in ("ok", "empty"), (program, outcome.message)
    return outcome.value if outcome.value is not None else [row[outcome.shown[0]] for row in outcome.rows]


@pytest.mark.parametrize(
    ("sql", "values"),
    CASES["selects"].items(),
)
def test_a_select_is_a_program(executor: Executor, sql: str, values: Any) -> None:
    result = result_of(executor, program_of(executor, sql))
    if isinstance(values, int) and isinstance(result, list):
        assert len(result) == values
    else:
        assert (sorted(result) if isinstance(result, list) else result) == values


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE book",
        "SELECT title FROM book; DROP TABLE book",
        "SELECT publisher FROM book",
        "SELECT title FROM publisher",
        "SELECT SUM(title) FROM book",
        "SELECT title FROM book WHERE price = 'cheap'",
        "SELECT title FROM book WHERE in_print = 'soon'",
        "SELECT load_extension('x') FROM book",
        "SELECT REPLACE(title, 'a', 'aaaaaaaa') FROM book",
        "SELECT group_concat(title) FROM book",
        "SELECT publisher FROM book WHERE author = (SELECT name FROM publisher)",
        "WITH x AS (SELECT 1) SELECT title FROM book",
        "SELECT title FROM (SELECT title FROM book WHERE price > 30)",
        "SELECT julianday(born) FROM author",
        "SELECT 1",
        "SELECT a.country FROM author a, book b",
        "SELECT a.country FROM author a JOIN book b ON a.born > b.price",
        "SELECT COUNT(*) FROM (loan JOIN book ON loan.book = book.title AND book.genre = 'Essay')",
        "SELECT COUNT(*) FROM book LIMIT 1 OFFSET 1",
        "SELECT COUNT(*) FROM book WHERE in_print + 0 = 1",
        "SELECT COUNT(*) FROM book WHERE COALESCE(in_print, 0) = 1",
        "SELECT FROM book GROUP BY title",
        "SELECT title FROM book WHERE author NOT IN (SELECT FROM author)",
        "SELECT title FROM book QUALIFY 1",
        "SELECT title FROM book UNION (SELECT name FROM author ORDER BY born LIMIT 1)",
        "SELECT title FROM book EXCEPT (SELECT name FROM author UNION SELECT book FROM loan)",
        "SELECT title FROM book WHERE 'a\u2028SELECT AVG(price) FROM book -- ' <> title",
        "SELECT title FROM book WHERE '\ud800' <> title",
        "I think it is The Long Way.",
        "SELECT" + " title," * MAX_CHARS,
        "SELECT " + "(" * 290 + "title" + ")" * 290 + " FROM book",
        "",
    ],
)
def test_what_is_no_select_over_the_tables_is_no_program(executor: Executor, sql: str) -> None:
    with pytest.raises(ParseError):
        program_of(executor, sql)


@pytest.mark.parametrize(
    ("sql", "status", "message"),
    [
        ("SELECT title FROM book UNION SELECT title, price FROM book", "parse_error", "the database refuses it"),
        ("SELECT secret FROM names", "parse_error", "there is no table names"),
        ("select title FROM book LIMIT all", "parse_error", "a LIMIT is a number"),
        ("SELECT title, price, price + 0, price + 1, price + 2, price + 3, price + 4 FROM book", "ok", ""),
        ("SELECT COUNT(*) FROM book WHERE author <> 'Cy Page' AND price > 8", "ok", ""),
        ("SELECT COUNT(*) FROM loan a, loan b, loan c", "parse_error", "tables are joined"),
    ],
)
def test_a_select_of_a_user_costs_itself_alone(executor: Executor, sql: str, status: str, message: str) -> None:
    program = f"{sql}\nSELECT COUNT(*) FROM book"
    first, last = executor.execute(program, domain=DOMAIN, query_time=ASKED, seconds=5.0)
    assert (first.status, last.value) == (status, 6)
    assert message in first.message
    if not message:
        text = verbalize([first], executor.catalogue.domains, ASKED.date(), max_tokens=400)[0]
        assert text.startswith(("Number of books (author not Cy Page, price over 8): 5.", "Books (6): The Long Way"))


def test_selects_of_a_program_are_bounded_as_its_statements_are(executor: Executor) -> None:
    statement = "SELECT COUNT(*) FROM book"
    most = "\n\n".join([statement] * MAX_STATEMENTS)
    outcomes = executor.execute(most, domain=DOMAIN, query_time=ASKED, seconds=5.0)
    assert [one.value for one in outcomes] == [6] * MAX_STATEMENTS
    for program in (f"{most}\n{statement}", f"{statement} {'x' * MAX_PROGRAM_CHARS}"):
        with pytest.raises(ParseError, match="a program may have"):
            executor.execute(program, domain=DOMAIN, query_time=ASKED, seconds=5.0)


def test_a_select_is_laid_out_as_its_writer_likes(executor: Executor) -> None:
    program = """
        SELECT b.title   -- books that were lent
        FROM book b
        JOIN loan l ON l.book = b.title AND l.book IN (
            SELECT title FROM book
            WHERE genre = 'Novel'  -- of one kind
        )

        UNION
        SELECT title FROM book WHERE title = 'By Night';
        SELECT COUNT(*)
        FROM book
        SELECT COUNT(*) FROM author"""
    first, *counts = executor.execute(program, domain=DOMAIN, query_time=ASKED, seconds=5.0)
    assert sorted(str(row["title"]) for row in first.rows) == ["By Night", "Short Cuts", "The Long Way"]
    assert [one.value for one in counts] == [6, 4]


@pytest.mark.parametrize("beside", ["title NOT IN ({})", "NOT title IN ({})", "NOT (title IN ({}))"])
def test_no_value_is_beside_an_unknown_one(executor: Executor, beside: str) -> None:
    program = program_of(executor, f"SELECT title FROM book WHERE {beside.format('SELECT book FROM loan')}")  # noqa: S608
    assert "FROM loan WHERE NOT book IS NULL" in program


def test_two_selects_settle_a_comparison(executor: Executor) -> None:
    program = "\n".join(f"SELECT price FROM book WHERE title = '{title}'" for title in ("By Night", "Short Cuts"))  # noqa: S608
    outcomes = executor.execute(program, domain=DOMAIN, query_time=ASKED, seconds=5.0)
    settled = settle("which is more expensive, By Night or Short Cuts?", outcomes, lexicons(executor.catalogue))
    assert settled is not None
    assert settled.answer == "Short Cuts"


@pytest.mark.parametrize(
    ("query", "sql", "answer"),
    [
        ("is By Night still printed?", "SELECT in_print FROM book WHERE title = 'By Night'", "yes"),
        ("can I get Short Cuts in print?", "SELECT in_print FROM book WHERE title = 'Short Cuts'", "no"),
        ("is By Night not in print?", "SELECT in_print FROM book WHERE title = 'By Night'", None),
        ("which is in print?", "SELECT in_print FROM book WHERE title = 'By Night'", None),
        ("are essays in print?", "SELECT in_print FROM book WHERE genre = 'Essay'", None),
        ("is By Night unprinted?", "SELECT in_print FROM book WHERE title = 'By Night'", None),
        ("is By Night out of print?", "SELECT in_print FROM book WHERE title = 'By Night'", None),
        ("is By Night still sold?", "SELECT in_print FROM book WHERE title = 'By Night'", None),
        # The other one may have no price.
        (
            "which is dearer, By Night or Short Cuts?",
            "SELECT title FROM book WHERE title IN ('By Night', 'Short Cuts') ORDER BY price DESC LIMIT 1",
            None,
        ),
        (
            "how many books has who wrote more, Cy Page or Di Vellum?",
            "SELECT author FROM book WHERE author = 'Cy Page' OR author = 'Di Vellum' GROUP BY author "
            "ORDER BY COUNT(*) DESC LIMIT 1",
            None,
        ),
        (
            "who wrote more, Cy Page or Di Vellum?",
            "SELECT author FROM book WHERE author = 'Cy Page' OR author = 'Di Vellum' GROUP BY author "
            "ORDER BY COUNT(*) DESC LIMIT 1",
            "Di Vellum",
        ),
        ("who wrote most?", "SELECT author FROM book GROUP BY author ORDER BY COUNT(*) DESC LIMIT 1", None),
        ("what does By Night cost?", "SELECT price FROM book WHERE title = 'By Night'", "$7.00"),
        (
            "where is the author of By Night from?",
            "SELECT country FROM author WHERE name IN (SELECT author FROM book WHERE title = 'By Night')",
            "Peru",
        ),
        ("when was Cy Page born?", "SELECT born FROM author WHERE name = 'Cy Page'", "1950-06-30"),
        ("how old is Cy Page?", "SELECT born FROM author WHERE name = 'Cy Page'", None),
        ("for how long has Cy Page lived?", "SELECT born FROM author WHERE name = 'Cy Page'", None),
        ("what does By Night cost, and who wrote it?", "SELECT price FROM book WHERE title = 'By Night'", None),
        ("does By Night cost 7?", "SELECT price FROM book WHERE title = 'By Night'", None),
        # What costs so much is not named.
        ("what does the lightest one cost?", "SELECT price FROM book WHERE weight = 0.2", None),
        ("what do books of Cy Page cost?", "SELECT price FROM book WHERE author = 'Cy Page' AND price < 10", None),
        (
            "what is Di Vellum's dearest?",
            "SELECT title FROM book WHERE author = 'Cy Page' ORDER BY price LIMIT 1",
            None,
        ),
        (
            "how much less does By Night cost than the mean?",
            "SELECT (SELECT AVG(price) FROM book WHERE price > 1) - price FROM book WHERE title = 'By Night'",
            None,
        ),
        ("is By Night in print, and how dear?", "SELECT in_print, price FROM book WHERE title = 'By Night'", None),
    ],
)
def test_a_row_settles_what_it_alone_tells(executor: Executor, query: str, sql: str, answer: str | None) -> None:
    outcomes = executor.execute(sql, domain=DOMAIN, query_time=ASKED, seconds=5.0)
    settled = settle(query, outcomes, lexicons(executor.catalogue))
    assert (settled.answer if settled is not None else None) == answer


@pytest.mark.parametrize(
    ("query", "sql", "probability", "answer"),
    [
        ("which essays are there?", "SELECT title FROM book WHERE genre = 'Essay'", 0.9, "Another Way, Marbled Paper"),
        ("which essays are there?", "SELECT title FROM book WHERE genre = 'Essay'", 0.7, None),
        ("which essays are there?", "SELECT title FROM book WHERE genre = 'Essay'", None, None),
        (
            "which essays are not in print?",
            "SELECT title FROM book WHERE NOT in_print AND genre = 'Novel'",
            0.9,
            "The Long Way, Short Cuts",
        ),
        ("what do all novels cost?", "SELECT SUM(price) FROM book WHERE genre = 'Novel'", 0.9, "$21.50"),
        ("how many novels are there?", "SELECT COUNT(*) FROM book WHERE genre = 'Novel'", 0.8, "2"),
        ("how many novels are there?", "SELECT COUNT(*) FROM book WHERE genre = 'Novel'", 0.7, None),
        ("when was the last author born?", "SELECT born FROM author ORDER BY born DESC LIMIT 1", 0.9, "1962-01-05"),
        # Whether there are any, their number says, and nothing else that is asked for yes or no.
        ("are there novels?", "SELECT COUNT(*) FROM book WHERE genre = 'Novel'", 0.9, "yes"),
        ("do we have any novels over 50?", "SELECT COUNT(*) FROM book WHERE genre = 'Novel' AND price > 50", 0.9, "no"),
        ("isn't there any novel?", "SELECT COUNT(*) FROM book WHERE genre = 'Novel'", 0.9, None),
        ("does the author write novels?", "SELECT COUNT(*) FROM book WHERE genre = 'Novel'", 0.9, None),
        # Two columns are a text to read.
        ("which novels cost what?", "SELECT title, price FROM book WHERE genre = 'Novel'", 0.9, None),
        # What the model doubts no rule takes for an answer.
        ("what does By Night cost?", "SELECT price FROM book WHERE title = 'By Night'", 0.1, None),
        ("what does By Night cost?", "SELECT price FROM book WHERE title = 'By Night'", 0.5, "$7.00"),
    ],
)
def test_a_statement_is_told_as_far_as_its_model_is_sure(
    executor: Executor, query: str, sql: str, probability: float | None, answer: str | None
) -> None:
    outcomes = executor.execute(sql, domain=DOMAIN, query_time=ASKED, seconds=5.0)
    settled = settle(query, outcomes, lexicons(executor.catalogue), probability=probability)
    assert (settled.answer if settled is not None else None) == answer


def test_a_number_of_many_rows_is_told_and_their_list_is_not(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package has a function of the module's name.
    monkeypatch.setattr(import_module("services.kg.settle.stated"), "MAX_LIST", 1)
    for output, answer in (("COUNT(*)", "2"), ("AVG(price)", "$10.75"), ("title", None)):
        sql = f"SELECT {output} FROM book WHERE genre = 'Novel'"  # noqa: S608
        outcomes = executor.execute(sql, domain=DOMAIN, query_time=ASKED, seconds=5.0)
        settled = settle("what of the novels?", outcomes, lexicons(executor.catalogue), probability=0.9)
        assert (settled.answer if settled is not None else None) == answer


def test_what_a_model_writes_with_confidence_is_likelier_right() -> None:
    sure, unsure = certainty(0.1, [-0.01, -0.02]), certainty(0.1, [-0.01, -0.3])
    assert sure is not None
    assert unsure is not None
    assert 0.5 < unsure < sure < 1
    assert certainty(0.95, [-0.01, -0.02]) == 0
    assert certainty(0.1, []) is None


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ('eq(born, "1901")', 1),
        ('eq(born, "1930")', 0),
        # The first author was born in 1815, as far as is known; after the last of a table there may have been none.
        ('eq(born, "1814")', None),
        ('between(born, "1801", "1810")', None),
        ('eq(born, "1963")', 0),
        ('neq(born, "1814")', 4),
        ('gt(born, "1963")', 0),
    ],
)
def test_a_count_of_days_before_a_table_begins_is_unknown(
    executor: Executor, condition: str, count: int | None
) -> None:
    program = f"LEN get_author(None) where({condition})"
    (outcome,) = executor.execute(program, domain=DOMAIN, query_time=ASKED, seconds=5.0)
    assert (outcome.status, outcome.value) == ("ok" if count is not None else "empty", count)
    if count is None:
        assert outcome.message == "what is known has its born from 1815-12-10 on"


@pytest.mark.parametrize(
    ("place", "condition"),
    [
        ("Chapel", "(LOWER(places_nearby) LIKE LOWER('%Chapel%'))"),
        # Alone in one row, among others in two.
        ("Inn", "(LOWER(places_nearby) LIKE LOWER('%Inn%'))"),
        ("hap", "LOWER(places_nearby) = LOWER('hap')"),
        ("Mill", "LOWER(places_nearby) = LOWER('Mill')"),
        ("!= Inn", "NOT (LOWER(places_nearby) LIKE LOWER('%Inn%'))"),
        ("!= Mill", "LOWER(places_nearby) <> LOWER('Mill')"),
    ],
)
async def test_a_text_that_cells_list_among_others_is_looked_for_in_them(
    tmp_path: Path, place: str, condition: str
) -> None:
    sign, _, place = place.rpartition(" ")
    reply = f"SELECT harbour_name FROM harbour WHERE places_nearby {sign or '='} '{place}'"  # noqa: S608
    with drafted_graph(tmp_path, "coast") as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        sql = writer((Executor(engine, names, catalogue), names), FakeGenerator(lambda _: reply))
        written = await sql.write(f"harbours near a {place}", query_time=ASKED, domain="coast", budget=Budget(60))
    assert written.program == f"SELECT harbour_name FROM harbour WHERE {condition}"  # noqa: S608


@pytest.mark.parametrize(
    ("cells", "items"),
    [
        (["PC, Switch", "Switch, Xbox", "PC; Xbox"], ["PC", "Switch", "Xbox"]),
        (["wash / cut", "cut / dye", "dye/wash"], ["cut", "dye", "wash"]),
        (["Ross, Anna", "Orr, Ben", "Marsh, Cleo"], []),
        (["Welsh; Irish", "Welsh; Tamil", "Welsh; Polish"], ["Irish", "Polish", "Tamil", "Welsh"]),
    ],
)
def test_cells_that_share_items_are_lists(cells: list[str], items: list[str]) -> None:
    assert parts_of(cells) == items


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT price FROM book WHERE title = 'By Night'", "The price of By Night is $7.00."),
        (
            "SELECT country FROM author WHERE name IN (SELECT author FROM book WHERE title = 'By Night')",
            "The country of Cy Page (book By Night) is Peru.",
        ),
        (
            "SELECT title FROM book ORDER BY price DESC LIMIT 1",
            "Title: Marbled Paper (highest price). The price of Marbled Paper is $31.00.",
        ),
        ("SELECT title FROM book ORDER BY price LIMIT 1 OFFSET 1", "Title: Another Way (second lowest price)."),
        (
            "SELECT COUNT(*) FROM book WHERE genre IS NULL AND NOT price IS NULL",
            "Number of books (without genre, with price): 0.",
        ),
        (
            "SELECT COUNT(*) FROM book WHERE genre IS NULL AND NOT (price IS NULL)",
            "Number of books (without genre, with price): 0.",
        ),
        ("SELECT name FROM author WHERE born >= '1901' AND born < '1902'", "Name: Bo Reed (born in 1901)."),
        (
            "SELECT country FROM author WHERE born >= '1815-12' AND born < '1816-01'",
            "The country of Ada Quill (born in December 1815) is Norway.",
        ),
        (
            "SELECT country FROM author WHERE born >= '1901-01' AND born < '1902-03'",
            "The country of Bo Reed (born from 1901-01, born before 1902-03) is Norway.",
        ),
        (
            "SELECT country FROM author ORDER BY born LIMIT 1",
            "The country of Ada Quill (earliest born) is Norway. The born of Ada Quill is 1815-12-10.",
        ),
        (
            "SELECT weight FROM book WHERE title IN ('By Night', 'Another Way') ORDER BY price LIMIT 1 OFFSET 1",
            "The weight of Another Way (book By Night or Another Way, second lowest price) is 0.5 kg.",
        ),
    ],
)
def test_a_fact_tells_what_a_select_found_it_by(executor: Executor, sql: str, text: str) -> None:
    outcomes = executor.execute(program_of(executor, sql), domain=DOMAIN, query_time=ASKED, seconds=5.0)
    assert verbalize(outcomes, executor.catalogue.domains, ASKED.date(), max_tokens=200) == [text]


@pytest.mark.parametrize(
    ("query", "chars"),
    [
        ("what is the price of Another Way?", len("Another Way")),
        # What things are called, or a value of theirs, and another sign.
        ("which book has the highest price?", 1),
        ("how many of the books are essays?", 1),
        ("which of our authors is that?", 1),
        ("which author joined most recently?", 1),
        ("which authors joined us?", 1),
        ("which essays have we?", 1),
        ("the dearest essay", 1),
        ("how many books sank?", 1),
        ("what is the newest that we have put out?", 1),
        ("How many of the essays are in print? Give Mrs Quill the price.", 1),
        # Part of the name of a row.
        ("what does Quill earn?", 1),
        ("what does Tolstoy earn?", 0),
        ("which books has Mr. Tolstoy?", 0),
        ("can you suggest an essay?", 0),
        ("is that an author?", 0),
        ("is that an essay?", 0),
        ("where do we go today?", 1),
        ("where do we go?", 0),
        ("what is the highest price?", 0),
        ("which book of Tolstoy has the highest price?", 0),
    ],
)
async def test_a_question_belongs_where_its_words_are_known(
    graph: tuple[Executor, NameIndex], query: str, chars: int
) -> None:
    assert await writer(graph, FakeGenerator(lambda _: "")).known_chars(query, DOMAIN) == chars


@pytest.mark.parametrize(
    ("adapters", "query", "none", "calls", "is_told"),
    [
        (["sql"], "who are our authors?", SURE - 0.1, 2, True),
        (["sql"], "who are our authors?", SURE + 0.05, 1, False),
        # What it says of names that it has, a reader is to judge.
        (["sql"], "who are our authors, Cy Page?", SURE + 0.05, 2, False),
        ([], "who are our authors?", SURE - 0.1, 1, False),
    ],
)
async def test_an_adapter_that_is_unsure_of_none_writes_a_select(
    graph: tuple[Executor, NameIndex], adapters: list[str], query: str, none: float, calls: int, is_told: bool
) -> None:
    select = (
        "SELECT name FROM author WHERE LOWER(name) = LOWER('Cy Page')" if "Cy" in query else "SELECT name FROM author"
    )

    def reply(body: dict[str, Any]) -> str:
        generator.logprob = math.log(none) if len(generator.requests) == 1 else -0.01
        return "NONE" if body["structured_outputs"]["regex"].startswith("NONE") else select

    generator = FakeGenerator(reply)
    generator.adapters, generator.logprob = adapters, math.log(none)
    written = await writer(graph, generator).write(query, query_time=ASKED, domain=DOMAIN, budget=Budget(30))
    assert (written.program, written.calls) == (select if calls == 2 else "none", calls)
    assert len(generator.requests) == calls
    assert ((written.probability or 0) > 0.7) == is_told


@pytest.mark.parametrize(("logprob", "is_run"), [(-0.01, True), (-0.3, False)])
async def test_a_flag_in_other_words_is_believed_of_a_model_that_is_sure(
    graph: tuple[Executor, NameIndex], logprob: float, is_run: bool
) -> None:
    generator = FakeGenerator(lambda _: "SELECT title FROM book WHERE in_print = 'no'")
    generator.adapters, generator.logprob = ["sql"], logprob
    query = "which books can nobody buy any more?"
    written = await writer(graph, generator).write(query, query_time=ASKED, domain=DOMAIN, budget=Budget(30))
    assert (written.program != "none") == is_run


@pytest.mark.parametrize(
    ("more", "fewer"), [("who is the latest of our authors?", "who is it?"), ("which genre?", "why?")]
)
async def test_signs_tell_to_which_domain_a_question_belongs_rather(
    graph: tuple[Executor, NameIndex], more: str, fewer: str
) -> None:
    one = writer(graph, FakeGenerator(lambda _: ""))
    assert await one.signs(more, DOMAIN) > await one.signs(fewer, DOMAIN) == 0


def writer(graph: tuple[Executor, NameIndex], generator: FakeGenerator) -> SqlWriter:
    executor, names = graph
    llm = LLM(ServiceClient("generator", "http://g", http_client(httpx.ASGITransport(generator.app))))
    return SqlWriter(llm, executor.catalogue, names, Values(names.engine), Spotter(names.engine, executor.catalogue))


@pytest.mark.parametrize(
    ("query", "reply", "result"),
    CASES["statements"],
)
async def test_a_statement_about_the_question_is_run(
    graph: tuple[Executor, NameIndex], query: str, reply: str, result: Any
) -> None:
    generator = FakeGenerator(lambda _: reply)
    written = await writer(graph, generator).write(query, query_time=ASKED, domain=DOMAIN, budget=Budget(5))
    assert written.mode == "sql"
    assert (None if written.program == "none" else result_of(graph[0], written.program)) == result
    *_, example, question = generator.requests[0]["messages"]
    assert example["role"] == "assistant"
    tables, _, asked = question["content"].partition("\n\nQuestion: ")
    assert "CREATE TABLE book (" in tables
    assert "genre TEXT, -- Novel, Essay, Poetry" in tables
    assert asked.partition("\n")[0] == query
    assert "regex" in generator.requests[0]["structured_outputs"]


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("how long is the long way?", ["'The Long Way' is a book.title"]),
        ("what does Quil write?", []),
        ("what does Quill write?", ["'Ada Quill' is a author.name"]),
        ("is Ada Qull from Norway?", ["'Ada Quill' is a author.name", "'Norway' is a author.country"]),
        ("which novels has rosa?", ["'Novel' is a book.genre", "'Rosa' is a loan.reader"]),
        ("how far in advance is it?", []),
        # A word of a column's name is no value, nor is a part of several values.
        ("which genre has most pages?", []),
        ("are any Way books there?", []),
        ("what does Short Cts cost?", ["'Short Cuts' is a book.title"]),
        # One word in small letters of a row's name, and of no other's.
        ("who has the marbled one?", ["'Marbled Paper' is a book.title"]),
        ("did Rosa take the marbled one?", ["'Rosa' is a loan.reader"]),
    ],
)
def test_a_question_is_linked_to_the_values_that_it_says(
    graph: tuple[Executor, NameIndex], query: str, lines: list[str]
) -> None:
    executor, names = graph
    shown = executor.catalogue.domains[DOMAIN].shown
    assert links_text(linked_values(query, shown, Values(names.engine), ())) == lines


@pytest.mark.parametrize(
    ("sql", "keys", "condition"),
    [
        ("SELECT place FROM call ORDER BY hours DESC LIMIT 1", ["date"], "date >= '2026' AND date < '2027'"),
        (
            "SELECT place FROM call WHERE hours = (SELECT MAX(hours) FROM call)",
            ["date"],
            "FROM call WHERE date >= '2026' AND date < '2027') AND (date >= '2026' AND date < '2027')",
        ),
        ("SELECT place FROM call WHERE place = '2026'", ["date"], ""),
        # Who was hired this year is another question than who was away most this year.
        ("SELECT name FROM call ORDER BY days_off DESC LIMIT 1", ["hired"], ""),
        ("SELECT place FROM call", ["date", "day"], ""),
        ("SELECT place FROM call WHERE date > CURRENT_DATE", ["date"], ""),
    ],
)
def test_a_time_that_a_statement_leaves_out_is_asked_of_rows_that_are_of_a_day(
    sql: str, keys: list[str], condition: str
) -> None:
    function: Any = SimpleNamespace(keys=[SimpleNamespace(name=name, kind="date") for name in keys])
    select = parse_select(sql)
    assert isinstance(select, exp.Select)
    before = select.sql()
    assert with_left_out_time(select, SaidTime("2026", "2027"), {"call": function}) == bool(condition)
    assert (condition in select.sql()) if condition else select.sql() == before


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("how many books has the Whimbrel?", ["'WHI' is a book.genre"]),
        ("how many books has the whimbrel?", []),
        ("how many books have the Whimbrel and the Whistler?", []),
        ("how many books of WHI are there?", ["'WHI' is a book.genre"]),
    ],
)
def test_a_code_is_linked_to_the_name_that_it_begins(executor: Executor, query: str, lines: list[str]) -> None:
    values: Any = SimpleNamespace(of=lambda function, key: ("WHI", "KIT", "AB") if key == "genre" else ())
    assert links_text(linked_values(query, executor.catalogue.domains[DOMAIN].shown, values, ())) == lines


async def test_a_question_waits_until_the_generator_has_read_the_tables(graph: tuple[Executor, NameIndex]) -> None:
    executor, names = graph
    asked: list[str] = []
    is_asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def chat(messages: Sequence[Message], **_: Any) -> Completion:
        asked.append(messages[-1].content)
        is_asked.set()
        await may_go_on.wait()
        return Completion((Sample("NONE", "stop"),), 1, 1, "model")

    async def serves(*_: Any, **__: Any) -> bool:
        return False

    llm: Any = SimpleNamespace(chat=chat, serves=serves)
    sql = SqlWriter(llm, executor.catalogue, names, Values(names.engine))
    reading = asyncio.create_task(sql.read_ahead(DOMAIN, llm, 5.0))
    await is_asked.wait()
    writing = asyncio.create_task(sql.write("which essays?", query_time=ASKED, domain=DOMAIN, budget=Budget(5)))
    await asyncio.sleep(0.2)
    assert len(asked) == 1
    may_go_on.set()
    await reading
    assert (await writing).program == "none"
    assert "which essays?" in asked[-1]


@pytest.mark.parametrize("adapters", [[], ["sql"]])
async def test_an_adapter_that_was_taught_is_shown_the_day_and_no_examples(
    graph: tuple[Executor, NameIndex], adapters: list[str]
) -> None:
    generator = FakeGenerator(lambda _: "SELECT title FROM book")
    generator.adapters = adapters
    sql = writer(graph, generator)
    await sql.read_ahead(DOMAIN, sql.llm, 5.0)
    await sql.write("which essays?", query_time=ASKED, domain=DOMAIN, budget=Budget(5))
    read, asked = generator.requests[-2:]
    assert asked["model"] == read["model"] == (adapters or ["fake"])[0]
    assert ("CREATE TABLE ship" in str(asked["messages"])) == (not adapters)
    assert (f"{ASKED:%Y-%m-%d}" in asked["messages"][-1]["content"]) == bool(adapters)
    # What was read ahead is what the chat of a question begins with.
    told = asked["messages"][-1]["content"].partition("Question:")[0]
    assert read["messages"][-1]["content"].startswith(told)


def test_what_is_read_ahead_comes_in_pieces_of_one_chat() -> None:
    chat = [Message("system", "s" * 50), *(Message(role, role[0] * 40) for role in ("user", "assistant") * 2)]
    chat.append(Message("user", "q" * 250))
    pieces = list(beginnings(chat, 100))
    assert pieces[-1] == chat
    lengths = [sum(len(one.content) for one in piece) for piece in pieces]
    assert lengths == sorted(lengths)
    assert max(late - early for early, late in pairwise([0, *lengths])) <= 100 + 40
    for piece in pieces:
        assert [*piece[:-1]] == chat[: len(piece) - 1]
        assert chat[len(piece) - 1].content.startswith(piece[-1].content)
        assert piece[-1].role == "user"
