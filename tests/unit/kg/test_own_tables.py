"""Tables as teams export them: nothing of them is lost, mixed up or asserted where it is not known."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.draft import draft
from lab.draft.cells import read_columns
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.sql.statement import Statement
from services.kg.load import load
from services.kg.load.errors import BadMapping, LoadError
from services.kg.load.files import header, records
from services.kg.outcome import Outcome
from services.kg.store.engine import open_store
from services.kg.syntax import parse_select
from services.kg.verbalize import grouped
from tests.unit.kg.test_general import NOW, DraftedDomain, drafted


def write(folder: Path, files: dict[str, str]) -> Path:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for name, content in files.items():
        (data / name).write_text(content, encoding="utf-8")
    return data


@contextmanager
def team(folder: Path, files: dict[str, str]) -> Iterator[DraftedDomain]:
    with drafted(folder, "team", write(folder, files)) as domain:
        yield domain


def outcome_of(domain: DraftedDomain, program: str) -> Outcome:
    return domain.executor.execute(program, domain="team", query_time=NOW, seconds=5.0)[-1]


def run(domain: DraftedDomain, program: str) -> Any:
    """The value of a program's last statement, else what its rows show last."""
    outcome = outcome_of(domain, program)
    assert outcome.status == "ok", outcome.message
    return outcome.value if outcome.value is not None else [row.get(outcome.shown[-1]) for row in outcome.rows]


# By what is told of them: files, and what a question or a program about them gives.
CASES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "files of one header": (
        {
            "customers.csv": "id,name,city\n1,Anna Berg,Bonn\n2,Ben Cole,Bath\n3,Cem Demir,Bonn\n",
            "suppliers.csv": "id,name,city\n1,Iron Mill,York\n2,Oak Yard,Bath\n3,Tin Works,York\n4,Zinc Hall,Hull\n",
            # A bundled domain has a source of this header.
            "vendors.csv": "Symbol,Name\nABC,Abacus Ltd\nBET,Better Ltd\nGAM,Gamma Ltd\n",
        },
        {f"How many {one} are there?": [count] for one, count in (("customers", 3), ("suppliers", 4), ("vendors", 3))},
    ),
    "readings of one day": (
        {
            "events.csv": "time,machine,kwh\n"
            + "".join(f"2024-03-{1 + n // 8:02}T{n % 8:02}:15:00,M{n % 2},{n % 5}\n" for n in range(24))
        },
        {
            "How many events are there?": [24],
            "What is the total kwh of the events?": [sum(hour % 5 for hour in range(24))],
        },
    ),
    "names of any alphabet, whatever their case": (
        {
            "wineries.csv": "name,country\nWeingut A Hof,Österreich\nWeingut B Hof,Österreich\n"
            "Weingut C Hof,Österreich\nWeingut D Hof,Île Nord\nWeingut E Hof,Île Nord\n"
        },
        {
            'LEN get_winery(None) where(eq(country, "ÖSTERREICH"))': 3,
            'LEN get_winery(None) where(neq(country, "Österreich"))': 2,
            'LEN get_winery(None) where(like(country, "%île%"))': 2,
            "How many wineries are in Österreich?": [3],
        },
    ),
    "days, names as they are written, and what has none": (
        {
            "players.csv": "name,instrument,joined\nMarc Dell,flute,2001\nIda Roth,oboe,2009\nUna Falk,flute,2012\n",
            "concerts.csv": "concert_id,day,hall,conductor,soloist,end_date\n"
            "C1,2024-01-05,Old Mill,Pia Moor,Ida Roth,2024-04-01\nC2,2024-03-21,Rotunda,Jon Berg,,2024-03-22\n"
            "C3,2024-03-28,Rotunda,Pia Moor,,2024-03-29\n",
            "boats.csv": "boat,home,speed_kn\nMV Isle of Harn,Vik,12\nMV Corrin,Harn,14\nMV Tern,Harn,9\n",
        },
        {
            "Who conducted the concert on 21 March 2024?": [["Jon Berg"]],
            "Which concerts had no soloist?": [["C2", "C3"]],
            "When did the last concert end?": [["2024-04-01"]],
            "Which concert ended last?": [["C1"]],
            "What is the end date of the first concert?": [["2024-04-01"]],
            "What is the first concert's end date?": [["2024-04-01"]],
            "Which boats have between 10 and about 13 knots?": [["MV Isle of Harn"]],
            "Who joined in 2009 or later?": [["Ida Roth", "Una Falk"]],
            "How fast is the Isle of Harn?": [[12]],
            "Which is faster, the Tern or the Isle of Harn?": [[9], [12]],
        },
    ),
    "flags of what is offered, and when": (
        {
            "hotels.csv": "hotel,city,rooms,cars,room_service,paid_parking,sunday_opening,winter_service\n"
            "Alpenhof,Bern,120,40,yes,yes,no,yes\nSeeblick,Bern,30,20,no,no,yes,no\n"
            "Bellevue,Thun,80,10,yes,no,yes,no\n",
        },
        {
            "How many rooms does the Alpenhof have?": [[120]],
            "Which hotel has the most rooms?": [["Alpenhof"]],
            "Which hotels have room service?": [["Alpenhof", "Bellevue"]],
            "Which hotels are open on Sundays?": [["Bellevue", "Seeblick"]],
            "Which hotels run in winter?": [["Alpenhof"]],
        },
    ),
    "more rows than are shown, to go on from": (
        {
            "customers.csv": "id,name,birth_year\n" + "".join(f"{n},Buyer No{n},{1950 + n % 30}\n" for n in range(110)),
            "orders.csv": "order_id,customer_id,total\n" + "".join(f"{1000 + n},{n % 110},{n}\n" for n in range(220)),
        },
        {'get_customer(None)["name"]\nLEN get_order(None, *["name"])': 220},
    ),
}


@pytest.fixture(scope="module")
def staff(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DraftedDomain]:
    files = {
        "staff.csv": "name,manager,hired,left\nAnn May,,2012-03-21,\nMarc Holt,Ida Roth,2020-06-10,2023-09-01\n"
        "Otto Klein,Ida Roth,2020-09-01,\nJune Park,Uwe Fink,2021-02-01,\n",
        "hosts.csv": "host,os\nweb-01,Linux\nweb-02,Linux\ndb-01,Solaris\n",
        "faults.csv": "fault_id,host,reporter,due_date\nF1,web-01,Ann May,2024-01-05\nF2,web-02,Pia Moor,2024-02-05\n"
        "F3,db-01,Ann May,\nF4,,,2024-04-05\n",
    }
    with team(tmp_path_factory.mktemp("staff"), files) as domain:
        yield domain


@pytest.mark.parametrize(
    "question",
    [
        "How many staff were hired in 2020 after Otto Klein?",
        "How many staff were hired in May?",
        "Who was hired in June?",
        "Which staff have no manager Ann May?",
        "Which staff have no manager called Ann May?",
        "Which faults have no host with Linux?",
        "Which faults are not in by the due date?",
    ],
)
def test_what_is_said_of_a_name_or_a_value_is_said_of_no_empty_cell_and_no_time(
    staff: DraftedDomain, question: str
) -> None:
    assert staff.program(question) == "none"


@pytest.mark.parametrize(("files", "answers"), CASES.values(), ids=CASES)
def test_nothing_of_a_table_is_lost(tmp_path: Path, files: dict[str, str], answers: dict[str, Any]) -> None:
    with team(tmp_path, files) as domain:
        assert {one: run(domain, one) if "get_" in one else domain.values(one) for one in answers} == answers


def test_a_file_that_several_mappings_take_is_refused(tmp_path: Path) -> None:
    header_ = "id,name,city\n"
    data = write(tmp_path, {f"{name}.csv": f"{header_}1,A b,C\n2,D e,F\n3,G h,I\n" for name in ("pear", "plum")})
    draft("team", sorted(data.iterdir()), tmp_path / "domains")
    other = tmp_path / "other.csv"
    other.write_text(f"{header_}7,J k,L\n")
    engine = open_store(f"sqlite:///{tmp_path / 'kg.sqlite'}", read_only=False)
    with pytest.raises(BadMapping, match="the mappings pear and plum"):
        load(other, engine, catalogue=read_catalogue(CATALOGUE, tmp_path / "domains"))


@pytest.mark.parametrize(
    ("content", "names", "rows"),
    [
        ("name,price,stock,price\nAxle,10,1,99\n", ["name", "price", "stock", "price 2"], [["Axle", "10", "1", "99"]]),
        ('name,"price\n(EUR)",stock\nAxle,10,1\n', ["name", "price (EUR)", "stock"], [["Axle", "10", "1"]]),
        ("\n\nname,price\nAxle,10\n,\nBolt,\n", ["name", "price"], [["Axle", "10"], ["Bolt", ""]]),
        # German: points between thousands, a comma before decimals.
        (
            "name;price\nA;1.250,75\nB;1.250\nC;7,5\n",
            ["name", "price"],
            [["A", "1250.75"], ["B", "1250"], ["C", "7.5"]],
        ),
        ("name;price\nA;12.5\nB;1.250\n", ["name", "price"], [["A", "12.5"], ["B", "1.250"]]),
        # In amounts too; a time of day tells nothing of numbers.
        (
            "weight;price;share;from\n12,500 kg;1.200 €;91,5 %;8.30 Uhr\n-1.250,5 kg;€ 7;5%;9.15 Uhr\n",
            ["weight", "price", "share", "from"],
            [["12.500 kg", "1200 €", "91.5 %", "8.30 Uhr"], ["-1250.5 kg", "€ 7", "5%", "9.15 Uhr"]],
        ),
    ],
)
def test_headers_and_cells(tmp_path: Path, content: str, names: list[str], rows: list[list[str]]) -> None:
    path = write(tmp_path, {"items.csv": content}) / "items.csv"
    assert header(path) == names
    assert [list(row.values()) for _, row in records(path)] == rows
    assert all(list(row) == names for _, row in records(path))


def test_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "towns.csv"
    path.write_bytes("name,size\nBonn,1\nKöln,2\n".encode("cp1252"))
    with pytest.raises(LoadError, match=r"no UTF-8 in line 3: save it as UTF-8"):
        list(records(path))


@pytest.mark.parametrize(("value", "text"), [(0.0004, "0.0004"), (0.00412, "0.00412"), (0.5, "0.5"), (1234.0, "1,234")])
def test_small_numbers_are_not_nothing(value: float, text: str) -> None:
    assert grouped(value) == text


TICKETS = "name,assignee,hours\n" + "\n".join(
    f"Ticket of {letter},{'Ann' if number < 4 else 'Bob' if number < 7 else ''},{number if number < 5 else ''}"
    for number, letter in enumerate("ABCDEFGHIJKLMNOPQRST")
)


COUNTED = "SELECT assignee, COUNT(*) AS n FROM ticket WHERE assignee IS NOT NULL GROUP BY assignee"


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DraftedDomain]:
    with team(tmp_path_factory.mktemp("tickets"), {"tickets.csv": TICKETS}) as domain:
        yield domain


def test_what_is_unknown_is_no_group_and_no_value(tickets: DraftedDomain) -> None:
    assert tickets.facts("Which assignee has the most tickets?") == ["Tickets by assignee: Ann (count 4)."]
    outcome = outcome_of(tickets, "SELECT COUNT(DISTINCT assignee) FROM ticket")
    assert (outcome.value, outcome.conditions) == (2, ("each assignee once",))
    outcome = outcome_of(tickets, 'AVG get_ticket(None)["hours"]')
    assert (outcome.value, outcome.total) == (2.0, 5)


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("SELECT COUNT(*), assignee FROM ticket GROUP BY assignee ORDER BY 1 DESC LIMIT 1", ["Ann"]),
        ("SELECT name, hours FROM ticket ORDER BY 2 DESC LIMIT 1", [4]),
        (f"{COUNTED} HAVING n > 3", [4]),
        (f"{COUNTED} ORDER BY n LIMIT 1", [3]),
        ("SELECT name || ' of ' || assignee FROM ticket WHERE hours = 0", ["Ticket of A of Ann"]),
    ],
)
def test_a_select_orders_groups_and_joins(tickets: DraftedDomain, program: str, shown: list[Any]) -> None:
    assert run(tickets, program) == shown


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("SELECT name FROM ticket ORDER BY 3", "there is no output 3"),
        (f'{COUNTED} HAVING "nonsense" > 2', "there is no nonsense to narrow groups by"),
        (
            "SELECT name || name || name || name || name || name FROM ticket",
            "joins texts by || at most 4 times",
        ),
    ],
)
def test_a_select_that_is_refused_says_why(tickets: DraftedDomain, program: str, message: str) -> None:
    outcome = outcome_of(tickets, program)
    assert outcome.status == "parse_error"
    assert message in outcome.message


def test_the_group_of_most_rows_is_the_answer_where_no_other_is_level(tmp_path: Path) -> None:
    rows = "".join(f"{n},{host}\n" for n, host in enumerate(("oak", "oak", "elm", "ash", "elm", "oak")))
    with team(tmp_path, {"outages.csv": "id,host\n" + rows}) as outages:
        assert outages.settled("Which host had the most outages?") == "oak"


@pytest.mark.parametrize("line", ['1,"unclosed,10\n2,B,20\n', '1,"A "quoted" name",10\n'])
def test_a_stray_quote_swallows_no_rows(line: str, tmp_path: Path) -> None:
    (tmp_path / "parts.csv").write_text(f"id,name,height\n{line}", encoding="utf-8")
    with pytest.raises(LoadError, match="is no CSV"):
        list(records(tmp_path / "parts.csv"))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("1,Bolt, M8,10", "has 4 cells where the header has 3"),
        ("1,Bolt,10,,x", "has 5 cells where the header has 3"),
        ("1,Bolt", "has 2 cells where the header has 3"),
        ("1,Bolt,10,,", ""),
        ("1,Bolt,", ""),
    ],
)
def test_a_row_has_the_cells_of_the_header(row: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "part.csv"
    path.write_text(f"id,name,height\n{row}\n2,Nut,20\n", encoding="utf-8")
    bad: list[tuple[int, str]] = []
    read = records(path, lambda line, error, _: bad.append((line, error.reason)))
    names = [record["name"] for _, record in read]
    assert (names, bad) == ((["Nut"], [(2, problem)]) if problem else (["Bolt", "Nut"], []))
    if problem:
        # A draft of it would have guessed wrong.
        with pytest.raises(LoadError, match=f"part.csv:2 {problem}"):
            draft("shop", [path], tmp_path / "domains")


def test_columns_without_a_name_at_the_end_need_no_cells(tmp_path: Path) -> None:
    (tmp_path / "part.csv").write_text("id,name,,\n1,Bolt\n2,Nut,,\n", encoding="utf-8")
    assert [record["name"] for _, record in records(tmp_path / "part.csv")] == ["Bolt", "Nut"]


def test_what_a_question_names_is_no_answer_to_it(tmp_path: Path) -> None:
    files = {
        "staff.csv": "initials,name\nSV,Stefan Varga\nRD,Ruth Dansie\nGP,Gethin Pugh\n",
        "jobs.csv": "Job no,Job,Lead\nORG-410,Saxby soundboard,SV\nORG-411,Tuba revoicing,RD\n"
        "ORG-412,Console rebuild,SV\nORG-413,Full clean,GP\n",
    }
    with team(tmp_path, files) as jobs:
        assert jobs.settled("Which jobs is Stefan Varga leading or has he led?") == ""
        # Codes are no names where there are names.
        assert jobs.settled("Which jobs does Stefan Varga lead?") == "Console rebuild, Saxby soundboard"


def test_what_was_not_done_in_a_year_is_not_what_was_never_done(tmp_path: Path) -> None:
    rows = "\n".join(f"Club {letter} East,{1900 + 5 * number}" for number, letter in enumerate("ABCD"))
    with team(tmp_path, {"clubs.csv": f"name,founded\n{rows}\n"}) as domain:
        for question in ("How many clubs were not founded in 1900?", "How many clubs were not founded before 1910?"):
            assert "isnull" not in domain.program(question)
        assert domain.values("How many clubs were founded before 1910?") == [2]


def test_changed_types_and_new_columns_are_loaded(tmp_path: Path) -> None:
    rows = ["Axle,9", "Bolt,10", "Crank,100", "Disc,n.a.", "Edge,25"]
    data = write(tmp_path, {"parts.csv": "\n".join(["name,price", *rows]), "shops.csv": "name,city\nA b,C\nD e,F\n"})
    draft("team", sorted(data.iterdir()), tmp_path / "domains")
    url = f"sqlite:///{tmp_path / 'kg.sqlite'}"
    engine = open_store(url, read_only=False)
    load(data, engine, catalogue=read_catalogue(CATALOGUE, tmp_path / "domains"))
    tables, domain = (tmp_path / "domains" / "team" / name for name in ("tables.yaml", "domain.yaml"))
    tables.write_text(tables.read_text().replace("price: text", "price: number\n    colour: text"))
    domain.write_text(domain.read_text().replace("price: {}", "price: {type: number}"))
    catalogue = read_catalogue(CATALOGUE, tmp_path / "domains")
    # As would rows of which no record can be used.
    write(tmp_path, {"parts.csv": "name,price\nAxle,cheap\n"})
    with pytest.raises(LoadError, match=r"no record of data/parts.csv fits"):
        load(data, engine, catalogue=catalogue)
    write(tmp_path, {"parts.csv": "\n".join(["name,price", *rows])})
    # What fills the other tables of the domain would be lost.
    with pytest.raises(LoadError, match=r"data/parts.csv, data/shops.csv filled them"):
        load(
            write(tmp_path / "domains", {"more.csv": "name,price\nFork,3\n"}) / "more.csv", engine, catalogue=catalogue
        )
    report = load(data, engine, catalogue=catalogue)
    assert not report.unchanged
    assert load(data, engine, catalogue=catalogue).unchanged
    engine.dispose()
    reading = open_store(url)
    executor = Executor(reading, NameIndex(reading, catalogue), catalogue)
    (outcome,) = executor.execute(
        'get_part(None) where(gt(price, 20))["name"]', domain="team", query_time=NOW, seconds=5.0
    )
    assert sorted(str(row["name"]) for row in outcome.rows) == ["Crank", "Edge"]
    reading.dispose()


@pytest.mark.parametrize(
    "files",
    [
        {
            "customers.csv": "customer_id,name,order_count\n" + "".join(f"{n},Cust No{n},{n}\n" for n in range(1, 9)),
            "orders.csv": "order_id,customer_id,customer_name,total\n"
            + "".join(f"{1000 + n},{1 + n % 8},Cust No{1 + n % 8},{n}\n" for n in range(20)),
        },
        {
            "authors.csv": "name,born\nAda Pine,1950\nBo Reed,1960\nCy Page,1970\nDi Ash,1980\n",
            "books.csv": "title,author\nBy Night,Ada Pine\nBy Day,Bo Reed\nAt Dawn,Cy Page\nAt Dusk,Di Ash\n",
            "book_authors.csv": "book,author,share\nBy Night,Ada Pine,50\nBy Night,Bo Reed,50\nAt Dawn,Cy Page,100\n"
            "At Dusk,Di Ash,100\n",
        },
        {"sales.csv": "item,$ amount\nLamp,12\nDesk,40\nSofa,90\n"},
        {"goods.csv": "name,цена\nLamp,12\nDesk,40\nSofa,90\n"},
        {"cases.csv": "Case,Drop,No,Null\nA v. B,x,1200,2\nC v. D,x,900,3\nE v. F,y,70,5\n"},
    ],
    ids=["both-names", "links", "sign", "alphabet", "keywords"],
)
def test_a_draft_can_be_loaded(tmp_path: Path, files: dict[str, str]) -> None:
    with team(tmp_path, files) as domain:
        assert domain.executor.catalogue.domains["team"].functions


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("Order,Item,Price (£)\n1,Lamp,12\n1,Desk,40\n2,Lamp,13\n", "[order, item]"),  # and no price
        ("Check #,Item,Score\n5,Lamp,12\n6,Desk,40\n7,Lamp,13\n", "[check_no]"),
        ("Item,Score,Invoice No\nLamp,12,31\nDesk,40,32\nLamp,13,33\n", "[invoice_no]"),
    ],
)
def test_what_tells_rows_apart(tmp_path: Path, content: str, key: str) -> None:
    draft("team", [write(tmp_path, {"lines.csv": content}) / "lines.csv"], tmp_path / "domains")
    assert f"  key: {key}" in (tmp_path / "domains" / "team" / "tables.yaml").read_text()


def test_long_headers_that_begin_alike_have_names_of_their_own() -> None:
    headers = [f"How satisfied were you with the following aspects of our service: {one}" for one in ("a", "b", "c")]
    names = [column.name for column in read_columns(headers, [["1", "2", "3"]])]
    assert len(set(names)) == 3


DIG = {
    "people.csv": "id,name,university\n1,Ada Quill,Bergen\n2,Bo Reed,Leipzig\n3,Cy Page,Lund\n",
    "trenches.csv": "trench,trench_name,period,supervisor_id\nT1,North Gate,Iron Age,2\nT2,Granary,Roman,3\n",
    "finds.csv": "find_no,find_name,trench,found_by,lent_to\nF1,Ram cup,T1,1,Lund\nF2,Pin,T2,1,\nF3,Axe,T1,2,Bergen\n",
    "samples.csv": "sample_id,trench,taken_by,lab\nKH-1,T1,1,Poznan\nKH-2,T2,1,Poznan\nKH-3,T1,2,Kiel\n",
}


def test_a_fact_of_what_a_row_names_is_not_that_of_what_its_other_names_name(tmp_path: Path) -> None:
    with team(tmp_path, DIG) as dig:
        domain = dig.executor.catalogue.domains["team"]
        told = Statement(parse_select("SELECT university FROM find WHERE find_name = 'Ram cup'"), domain)
        assert run(dig, told.sql(NOW.date())) == ["Bergen"]
        # Nobody asks for the trench that its taker supervises.
        assert "taken_by" not in dig.program("What is the period of the trench sample KH-1 was taken in?")
