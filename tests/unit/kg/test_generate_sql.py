"""SQL of a model as programs: what they find, and what is no program."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.rules.values import Values, parts_of
from services.kg.generate.spans import Spotter
from services.kg.generate.sql import SqlWriter
from services.kg.generate.sql.linking import linked_values, links_text
from services.kg.generate.sql.tables import Untranslatable
from services.kg.generate.sql.translate import MAX_CHARS, parse_selects, translate
from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.llm import LLM, Completion, Message, Sample
from tests.mesh.fakes import FakeGenerator
from tests.unit.kg.graph import ASKED
from tests.unit.kg.library import drafted_graph

pytestmark = pytest.mark.anyio
DOMAIN = "library"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Executor, NameIndex]]:
    """A drafted domain with authors and books, and its names."""
    with drafted_graph(tmp_path_factory.mktemp(DOMAIN), DOMAIN) as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        yield Executor(engine, names, catalogue), names


@pytest.fixture(scope="module")
def executor(graph: tuple[Executor, NameIndex]) -> Executor:
    return graph[0]


def found(executor: Executor, sql: str) -> Any:
    """The value of the program's last statement, or those that its rows show last."""
    program = "\n".join(translate(one, executor.catalogue, DOMAIN) for one in parse_selects(sql))
    outcome = executor.execute(program, domain=DOMAIN, query_time=ASKED, seconds=5.0)[-1]
    assert outcome.status == "ok", (program, outcome.message)
    return outcome.value if outcome.value is not None else [row[outcome.shown[-1]] for row in outcome.rows]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT country FROM author WHERE name = 'Cy Page'", ["Peru"]),
        ("SELECT country FROM author WHERE name = 'Cy Pagge';", ["Peru"]),  # names are found as people spell them
        ("SELECT \"country\" FROM author AS a WHERE a.name LIKE '%Quill%'", ["Norway"]),
        ("SELECT title FROM book WHERE genre = 'Essay'", ["Another Way", "Marbled Paper"]),
        ("SELECT title FROM book WHERE price > 10 AND weight < 1", ["Loose Leaves", "Short Cuts"]),
        ("SELECT title FROM book WHERE 10 < price AND NOT in_print", ["Loose Leaves", "Short Cuts"]),
        ("SELECT title FROM book WHERE genre = 'Essay' OR genre = 'Poetry'", 4),
        ("SELECT title FROM book WHERE genre = 'Essay' OR (reader = 'Essay' OR kind = 'Essay')", 2),
        ("SELECT title FROM book WHERE genre IN ('Essay', 'Poetry') AND in_print = 'yes'", 3),
        ("SELECT title FROM book WHERE price BETWEEN 8 AND 10", ["Another Way", "The Long Way"]),
        ("SELECT name FROM author WHERE born LIKE '1901-%'", ["Bo Reed"]),
        ("SELECT name FROM author WHERE strftime('%Y', born) > '1940'", ["Cy Page", "Di Vellum"]),
        ("SELECT name FROM author WHERE born IS NULL OR born IS NOT NULL", Untranslatable),
        ("SELECT COUNT(*) FROM book WHERE genre = 'Novel'", 2),
        ("SELECT COUNT(DISTINCT genre) FROM book", 3),
        ("SELECT AVG(price) FROM book WHERE genre = 'Novel'", 10.75),
        ("SELECT SUM(price) FROM book WHERE author = 'Di Vellum'", 46.0),
        ("SELECT title FROM book ORDER BY price DESC LIMIT 1", ["Marbled Paper"]),
        ("SELECT price FROM book ORDER BY price LIMIT 2", [7.0, 8.25]),
        ("SELECT MAX(price) FROM book", [31.0]),
        ("SELECT title FROM book WHERE price = (SELECT MIN(price) FROM book)", ["By Night"]),
        ("SELECT genre, COUNT(*) FROM book GROUP BY genre ORDER BY COUNT(*) DESC", 3),
        # The country of a book's author, by the model's own ways to ask for it.
        ("SELECT author_country FROM book WHERE title = 'By Night'", ["Peru"]),
        ("SELECT country FROM book WHERE title = 'By Night'", ["Peru"]),
        ("SELECT title FROM book WHERE author_name = 'Cy Page'", ["By Night"]),
        ("SELECT a.country FROM author a JOIN book b ON b.author = a.name WHERE b.title = 'By Night'", ["Peru"]),
        ("SELECT b.name FROM author a JOIN book b ON b.author = a.name WHERE b.title = 'By Night'", ["Cy Page"]),
        ("SELECT born FROM author WHERE name = (SELECT author FROM book WHERE title = 'By Night')", ["1950-06-30"]),
        ("SELECT author FROM author WHERE title = 'By Night'", ["Cy Page"]),
        # A table that is not there, and what another one's rows are to a table.
        ("SELECT name FROM captain WHERE in_print = 'no'", ["Loose Leaves", "Short Cuts"]),
        ("SELECT name FROM captain WHERE country = 'Peru'", 2),
        ("SELECT author_born FROM author WHERE name = 'Cy Page'", ["1950-06-30"]),
        # Columns under other names: with their table, as what names a row, as the table that they name.
        ("SELECT book_genre FROM book WHERE title = 'By Night'", ["Poetry"]),
        ("SELECT author_name FROM author WHERE country = 'Peru'", ["Cy Page", "Di Vellum"]),
        ("SELECT name FROM book WHERE genre = 'Novel'", ["Short Cuts", "The Long Way"]),
        # Columns of a table that another one names, either way round, and with the tables mixed up.
        ("SELECT born FROM book WHERE title = 'By Night'", ["1950-06-30"]),
        ("SELECT weight FROM loan WHERE reader = 'Tom'", [0.2, 0.4]),
        ("SELECT COUNT(*) FROM loan WHERE genre = 'Novel'", 3),
        ("SELECT COUNT(*) FROM author WHERE genre = 'Novel' AND weight < 1", 2),
        ("SELECT title FROM book WHERE title = 'By Night' OR book = 'By Night'", ["By Night"]),
        ("SELECT price FROM book WHERE title = 'By Night' AND loan.book = 'By Night'", [7.0]),
        (
            "SELECT title FROM book WHERE genre = 'Novel' UNION SELECT title FROM book WHERE price > 30",
            ["Marbled Paper"],
        ),
        ("SELECT name FROM author WHERE born LIKE '%-06-%'", ["Cy Page"]),
        ("SELECT born FROM author WHERE author_name = 'Cy Page'", ["1950-06-30"]),
    ],
)
def test_a_select_is_a_program(executor: Executor, sql: str, values: Any) -> None:
    if values is Untranslatable:
        with pytest.raises(Untranslatable):
            [translate(one, executor.catalogue, DOMAIN) for one in parse_selects(sql)]
        return
    result = found(executor, sql)
    if isinstance(values, int | float) and isinstance(result, list):
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
        "SELECT title FROM get_movie",
        "SELECT title FROM book INTERSECT SELECT title FROM book",
        "SELECT title FROM book WHERE price > weight",
        "SELECT title FROM book WHERE price > (SELECT AVG(price) FROM book)",
        "SELECT title FROM book WHERE genre = 'Essay' OR price > 3",
        "SELECT genre, SUM(price) FROM book GROUP BY genre",
        "SELECT genre FROM book GROUP BY genre HAVING COUNT(*) > 1",
        "SELECT SUM(title) FROM book",
        "SELECT title FROM book WHERE price = 'cheap'",
        "SELECT title FROM book WHERE in_print = 'soon'",
        "SELECT load_extension('x') FROM book",
        "SELECT publisher FROM book WHERE author = (SELECT name FROM publisher)",
        "SELECT title FROM book WHERE in_print = 'yes' OR genre = 'yes'",
        "SELECT title FROM book WHERE price = 8 OR weight = 8",
        "WITH x AS (SELECT 1) SELECT title FROM book",
        "SELECT title FROM book LIMIT 1 OFFSET 2",
        "SELECT title FROM (SELECT title FROM book WHERE price > 30)",
        "SELECT 1",
        "SELECT a.country FROM author a JOIN book b ON b.author = a.name AND b.price > 30",
        "SELECT a.country FROM author a, book b",
        "I think it is The Long Way.",
        "SELECT" + " title," * MAX_CHARS,
        "SELECT " + "(" * 500 + "title" + ")" * 500 + " FROM book",
        "",
    ],
)
def test_what_is_no_select_over_the_tables_is_no_program(executor: Executor, sql: str) -> None:
    with pytest.raises(Untranslatable):
        [translate(one, executor.catalogue, DOMAIN) for one in parse_selects(sql)]


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


ESSAYS = 'get_book(None) where(eq(genre, "Essay"))["title"]'
QUILL = 'get_author("Ada Quill")["country"]'
SHORT_CUTS = 'get_book("Short Cuts")["price"]'
OVER_TEN = 'get_book(None) where(gt(price, 10))["title"]'
SINCE_1940 = 'get_author(None) where(gt(born, "1940-01-01"))["name"]'
EARLIEST = 'get_author(None) sort(None, born)["name"][:1]'
LATEST = EARLIEST.replace("born", "-born")
BY_NIGHT = 'get_book("By Night")["genre"]'
SINCE_JUNE = 'get_author(None) where(ge(born, "1950-06-01"))["name"]'
WRITTEN = 'get_book("By Night")["author_country"]'
NOVELS = 'LEN get_book(None) where(eq(genre, "Novel"))'
LIGHTEST = 'get_book(None) sort(None, weight)["title"][:1]'
HEAVIEST = LIGHTEST.replace("None, w", "None, -w")
ESSAYS_IN_PRINT = 'get_book(None) where(eq(in_print, true), eq(genre, "Essay"))["title"]'
JUNES = 'get_author(None) where(like(born, "-06-"))["name"]'
IN_JUNE = 'get_author(None) where(eq(born, "1950-06"))["name"]'


@pytest.mark.parametrize(
    ("place", "condition"),
    [
        ("Chapel", 'like(places_nearby, "Chapel")'),
        # Alone in one row, among others in two.
        ("Inn", 'like(places_nearby, "Inn")'),
        ("hap", 'eq(places_nearby, "hap")'),
        ("Mill", 'eq(places_nearby, "Mill")'),
        # No condition of the language says which rows lack an item.
        ("!= Inn", ""),
        ("!= Mill", 'neq(places_nearby, "Mill")'),
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
        written = await sql.write(f"harbours near a {place}", query_time=ASKED, domain="coast", budget=Budget(5))
    assert written.program == (f'get_harbour(None) where({condition})["harbour_name"]' if condition else "none")


@pytest.mark.parametrize(
    ("cells", "items"),
    [
        (["PC, Switch", "Switch, Xbox", "PC; Xbox"], ["PC", "Switch", "Xbox"]),
        (["wash / cut", "cut / dye", "dye/wash"], ["cut", "dye", "wash"]),
        (["Ross, Anna", "Orr, Ben", "Marsh, Cleo"], []),
    ],
)
def test_cells_that_share_items_are_lists(cells: list[str], items: list[str]) -> None:
    assert parts_of(cells) == items


def writer(graph: tuple[Executor, NameIndex], generator: FakeGenerator) -> SqlWriter:
    executor, names = graph
    llm = LLM(ServiceClient("generator", "http://g", http_client(httpx.ASGITransport(generator.app))))
    return SqlWriter(llm, executor.catalogue, names, Values(names.engine), Spotter(names.engine, executor.catalogue))


@pytest.mark.parametrize(
    ("query", "reply", "program"),
    [
        ("which essays are there?", "SELECT title FROM book WHERE genre = 'Essay'", ESSAYS),
        ("which essays are there?", "NONE", "none"),
        ("where is quill from?", "SELECT country FROM author WHERE name = 'Ada Quill'", QUILL),
        ("where is Ada Qull from?", "SELECT country FROM author WHERE name = 'Ada Qull'", QUILL),
        ("what does the Short Cuts cost?", "SELECT price FROM book WHERE title = 'Short Cuts'", SHORT_CUTS),
        ("who published the essays?", "SELECT publisher FROM book", "none"),
        # What the question does not say, and names of it that are left out, are about something else.
        ("which books cost over 10?", "SELECT title FROM book WHERE price > 10", OVER_TEN),
        ("which books cost over ten?", "SELECT title FROM book WHERE price > 10", OVER_TEN),
        ("which books are expensive?", "SELECT title FROM book WHERE price > 20", "none"),
        ("who was born in June 1950?", "SELECT name FROM author WHERE born LIKE '1950-06%'", IN_JUNE),
        ("who has been here longest?", "SELECT name FROM author ORDER BY born DESC LIMIT 1", EARLIEST),
        ("who is the youngest?", "SELECT name FROM author ORDER BY born DESC LIMIT 1", LATEST),
        ("who was born since 1940?", "SELECT name FROM author WHERE born > '1940-01-01'", SINCE_1940),
        ("who was born since March?", "SELECT name FROM author WHERE born > '1940-01-01'", "none"),
        ("who was born after 1940?", "SELECT name FROM author WHERE born > '1940-01-01'", "none"),
        ("who was born in 1950?", "SELECT name FROM author WHERE born = '1950-01-01'", "none"),
        ("how much is By Night?", "SELECT price FROM book WHERE title = 'Short Cuts'", "none"),
        ("what did Cy Page write?", "SELECT title FROM book WHERE genre = 'Poetry'", "none"),
        ("how many cats has Cy Page?", "SELECT COUNT(*) FROM author WHERE name = 'Cy Page'", "none"),
        # A month of any year, an amount in another unit, an amount that is no yes or no.
        ("who was born in June?", "SELECT name FROM author WHERE born LIKE '1950-06%'", JUNES),
        ("who was born in June?", "SELECT name FROM author WHERE strftime('%m', born) = '06'", JUNES),
        ("who was born in June?", "SELECT name FROM author WHERE EXTRACT(MONTH FROM born) = 6", JUNES),
        ("who was born in June?", "SELECT name FROM author WHERE MONTH(born) = 7", "none"),
        ("who was born?", "SELECT name FROM author WHERE born = ''", 'get_author(None) where(eq(born, ""))["name"]'),
        ("who was born in June?", "SELECT name FROM author WHERE MONTH(born) = -1", "none"),
        ("who was born in June?", "SELECT name FROM author WHERE MONTH(born) = '²'", "none"),
        ("who was born in June?", "SELECT name FROM author WHERE strftime(born) = '06'", "none"),
        (
            "books of 400 grams?",
            "SELECT title FROM book WHERE weight = 0.4",
            'get_book(None) where(eq(weight, 0.4))["title"]',
        ),
        (
            "what do the essays cost all together?",
            "SELECT price FROM book WHERE genre = 'Essay'",
            ESSAYS.replace("get", "SUM get").replace("title", "price"),
        ),
        (
            "the price of each essay in total?",
            "SELECT price FROM book WHERE genre = 'Essay'",
            ESSAYS.replace("title", "price"),
        ),
        (
            "the highest price in total?",
            "SELECT price FROM book ORDER BY price DESC LIMIT 1",
            'get_book(None) sort(None, -price)["title", "price"][:1]',
        ),
        (
            "what did we spend on essays?",
            "SELECT price FROM book WHERE genre = 'Essay'",
            ESSAYS.replace("get", "SUM get").replace("title", "price"),
        ),
        ("what date is By Night?", "SELECT genre FROM book WHERE title = 'By Night'", "none"),
        ("when is By Night?", "SELECT author FROM book WHERE title = 'By Night'", "none"),
        ("when is By Night?", "SELECT genre FROM book WHERE title = 'By Night'", BY_NIGHT),
        # The least of what is light, cheap or cold, whichever way it is sorted.
        ("the lightest book, which?", "SELECT title FROM book ORDER BY weight DESC LIMIT 1", LIGHTEST),
        ("the heaviest book, which?", "SELECT title FROM book ORDER BY weight LIMIT 1", HEAVIEST),
        ("the weight of the cheapest?", "SELECT title FROM book ORDER BY weight DESC LIMIT 1", HEAVIEST),
        (
            "who was born on 30 June?",
            "SELECT name FROM author WHERE born = '1950-06-30'",
            JUNES.replace("06-", "06-30"),
        ),
        ("who was born on 29 June?", "SELECT name FROM author WHERE born = '1950-06-30'", "none"),
        ("what rhymes with essay?", "SELECT genre FROM book WHERE genre = 'Essay'", "none"),
        (
            "is Loose Leaves an essay?",
            "SELECT genre FROM book WHERE genre = 'Essay' AND title = 'Loose Leaves'",
            'get_book("Loose Leaves") where(eq(genre, "Essay"))["genre"]',
        ),
        ("how much is By Night?", "SELECT in_print FROM book WHERE title = 'By Night'", "none"),
        # Values that the question says are written as they are stored, and not left out.
        (
            "which Poettry is there?",
            "SELECT title FROM book WHERE genre = 'Poettry'",
            ESSAYS.replace("Essay", "Poetry"),
        ),
        ("which essays are in print?", "SELECT title FROM book WHERE in_print = 'yes'", ESSAYS_IN_PRINT),
        # Somebody else of the same first name, and a name said in part.
        ("where is Ada Lark from?", "SELECT country FROM author WHERE name = 'Ada Quill'", "none"),
        ("where is Mrs Quill from?", "SELECT country FROM author WHERE name = 'Ada Quill'", QUILL),
        ("where is Ada Q from?", "SELECT country FROM author WHERE name = 'Ada Quill'", QUILL),
        # A value in the column that has it.
        ("where was By Night written?", "SELECT country FROM author WHERE name = 'By Night'", WRITTEN),
        ("where was By Night written?", "SELECT country FROM author WHERE country = 'By Night'", WRITTEN),
        (
            "what was written in Peru?",
            "SELECT title FROM book WHERE author = 'Peru'",
            'get_author(None) where(eq(country, "Peru"))["name"]\nget_book(None, *["name"])["title"]',
        ),
        # The first and the last day of a month that the question says.
        ("who was born since June 1950?", "SELECT name FROM author WHERE born >= '1950-06-01'", SINCE_JUNE),
        ("who was born after June 1950?", "SELECT name FROM author WHERE born > '1950-06-01'", "none"),
        (
            "who was born after June 1950?",
            "SELECT name FROM author WHERE born > '1950-06-30'",
            'get_author(None) where(gt(born, "1950-06-30"))["name"]',
        ),
        ("who was born before June 1950?", "SELECT name FROM author WHERE born < '1950-06-30'", "none"),
        # What no row has is not counted.
        ("how many sagas are there?", "SELECT COUNT(*) FROM book WHERE genre = 'Saga'", "none"),
        ("how many NOVELS are there?", "SELECT COUNT(*) FROM book WHERE genre = 'novel'", NOVELS),
    ],
)
async def test_a_statement_about_the_question_is_translated(
    graph: tuple[Executor, NameIndex], query: str, reply: str, program: str
) -> None:
    generator = FakeGenerator(lambda _: reply)
    written = await writer(graph, generator).write(query, query_time=ASKED, domain=DOMAIN, budget=Budget(5))
    assert (written.program, written.mode) == (program, "sql")
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


async def test_a_question_waits_until_the_generator_has_read_the_tables(graph: tuple[Executor, NameIndex]) -> None:
    executor, names = graph
    asked: list[str] = []
    is_asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def chat(messages: Sequence[Message], **_: Any) -> Completion:
        asked.append(messages[-1].content)
        is_asked.set()
        await may_go_on.wait()
        return Completion((Sample("NONE", "stop"),), 1, 1, "model")

    llm: Any = SimpleNamespace(chat=chat)
    sql = SqlWriter(llm, executor.catalogue, names, Values(names.engine))
    reading = asyncio.create_task(sql.read_ahead(DOMAIN, llm, 5.0))
    await is_asked.wait()
    writing = asyncio.create_task(sql.write("which essays?", query_time=ASKED, domain=DOMAIN, budget=Budget(5)))
    await asyncio.sleep(0.2)
    assert len(asked) == 1
    may_go_on.set()
    await reading
    assert (await writing).program == "none"
    assert "which essays?" in asked[1]
