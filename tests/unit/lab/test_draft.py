"""A domain drafted from CSV files: what is guessed, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import text
from typer.testing import CliRunner

from lab.draft import DraftError, draft, vocabulary
from lab.draft.cells import guess_type, read_columns
from lab.draft.headers import column_name
from lab.draft.tables import read_tables
from lab.draft.vocabulary import plural
from services.cli.ending import PROBLEM, USAGE
from services.cli.kg_domain import app
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.lint import lint
from services.kg.load import load
from services.kg.load.errors import LoadError
from services.kg.store.engine import open_store
from tests.unit.kg.library import tables_of, write, write_lines

FILES = tables_of("library")


@pytest.fixture
def drafted(tmp_path: Path) -> Path:
    draft("library", FILES, tmp_path / "domains")
    return tmp_path / "domains" / "library"


def read(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / name).read_text(encoding="utf-8"))


def test_a_box_that_is_not_ticked_says_no(tmp_path: Path) -> None:
    rows = [["Name", "Cancelled", "Paid"], ["Abe", "yes", "yes"], ["Bea", "", ""], ["Cal", "", "no"]]
    draft("trips", [write(tmp_path, "trip.csv", rows)], tmp_path / "domains")
    view = read(tmp_path / "domains" / "trips", "domain.yaml")["functions"]["get_trip"]["view"]
    assert "coalesce(t.cancelled, 0) AS cancelled" in view
    assert "t.paid AS paid" in view


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (("1", "-20", "1,200"), "integer"),
        (("5000000000", "1"), "bigint"),
        (("1", "2.5", "1e6"), "number"),
        (("0.5", "-0.25"), "number"),
        (("01067", "10115"), "text"),
        (("2003-04-21", "2003-04"), "date"),
        (("2003-04-21 10:00:00",), "date"),
        (("yes", "No"), "flag"),
        (("yes", "maybe"), "text"),
        (("1", "n/a"), "text"),
    ],
)
def test_the_narrowest_type_of_all_values_is_taken(values: tuple[str, ...], type_: str) -> None:
    assert guess_type(frozenset(values)) == type_


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Area (km²)", "area_km2"),
        ("Größe", "grosse"),
        ("Øre", "ore"),
        ("2023 sales", "n2023_sales"),
        ("Share %", "share_percent"),
        ("---", ""),
        ("D.O.B.", "date_of_birth"),
        ("E-mail", "email"),
        ("Next appt.", "next_appointment"),
        ("Cost/yr (EUR)", "cost_per_year_eur"),
        ("Rate/wk", "rate_per_week"),
        ("Encr. Y/N", "encrypted"),
        ("Paid (yes/no)", "paid"),
        # Only the dot says that it is short for something.
        ("Cat.", "category"),
        ("Cat", "cat"),
        ("Cat. No.", "catalogue_no"),
        ("Age (yr)", "age_yr"),
        ("Range (nm)", "range_nm"),
        ("Common nm.", "common_name"),
        ("Rep. by", "reported_by"),
        ("Time (min.)", "time_min"),
        ("Y/N", ""),
        ("Inspection #", "inspection_no"),
        ("N° client", "no_client"),
        ("# of seats", "of_seats"),
    ],
)
def test_headers_become_names_with_words_for_abbreviations(header: str, name: str) -> None:
    assert column_name(header) == name


@pytest.mark.parametrize(
    ("header", "cells", "words"),
    [
        ("top_speed_kn", ("12.5", "9"), {"how many (kn|knot)"}),
        ("distance_nm", ("12.5", "9"), {"how many (nm|nautical mile)"}),
        ("Budget (k€)", ("125", "90"), {"how many (thousand eur|thousand euro|eur|euro)"}),
        ("Responder", ("Ben Okafor", "Nadia Brandt"), {"respond"}),
        ("joined", ("2001-02-03", "2004-05-06"), {"join"}),
        ("car_fare", ("12.5", "9.75"), {"cost", "car cost"}),
        ("crossing_time_min", ("12", "90"), {"crossing"}),
        ("ticket_eur", ("12", "8"), {"ticket price", "entry fee", "admission"}),
        ("length_min", ("133", "95"), {"runtime", "running time", "duration"}),
        ("length", ("201", "180"), {"runtime", "duration"}),
        ("Accepts Glass", ("yes", "no"), {"accept glass"}),
    ],
)
def test_words_ask_for_columns(header: str, cells: tuple[str, ...], words: set[str]) -> None:
    (column,) = read_columns((header,), [(one,) for one in cells])
    assert words <= set(column.words), column.words


def test_a_length_in_metres_is_no_duration() -> None:
    (column,) = read_columns(("length_m",), [("12",), ("30",)])
    assert "duration" not in column.words


def test_words_need_no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise ValueError("not installed")

    monkeypatch.setattr(vocabulary, "bundled_model", missing)
    vocabulary.usual_words.cache_clear()
    assert vocabulary.english_of(("sav", "save")) == ["sav", "save"]
    vocabulary.usual_words.cache_clear()


def test_words_are_english() -> None:
    headers = ("top_speed_kn", "joined", "retired", "duration_min", "broadcast")
    columns = read_columns(
        headers, [("12", "2001-02-03", "2004-05-06", "90", "yes"), ("9", "2002-02-03", "", "12", "no")]
    )
    words = {
        word for column in columns for phrase in (*column.words, *column.idle) for word in re.findall("[a-z]+", phrase)
    }
    assert words.isdisjoint({"spee", "joine", "retir", "dure", "durate", "broadcastly"})


def test_what_has_no_other_plural() -> None:
    written = {
        "nursing_staff": "nursing staff",
        "nurse": "nurses",
        "parts_used": "parts used",
        "flower_bed": "flower beds",
    }
    assert {one: plural(one) for one in written} == written


def test_the_abbreviation_still_asks_for_its_column() -> None:
    columns = read_columns(("Pet", "D.O.B.", "Wt (kg)"), [("Rex", "2020-01-01", "4.5"), ("Tom", "2021-01-01", "5.5")])
    assert [column.key for column in columns] == ["pet", "date_of_birth", "weight"]
    assert {"d o b", "dob"} < set(columns[1].words)
    assert "wt" in columns[2].words


def test_tables_of_one_year_are_called_without_it_where_no_other_is(tmp_path: Path) -> None:
    rows = [("seat", "price"), ("S1", "4"), ("S2", "5")]
    first = write(tmp_path, "Tickets 2024.csv", rows)
    assert [one.name for one in read_tables([first])] == ["ticket"]
    second = write(tmp_path, "Tickets 2025.csv", rows)
    assert sorted(one.name for one in read_tables([first, second])) == ["tickets_2024", "tickets_2025"]
    others = ("Route 66.csv", "SEATS v7.csv", "row_export.csv", "Loans 2023-24.csv")
    assert [read_tables([write(tmp_path, one, rows)])[0].name for one in others] == ["route_66", "seat", "row", "loan"]


def test_tables_and_their_columns_are_spelt_out_alike(tmp_path: Path) -> None:
    teams = write(tmp_path, "dept.csv", [("dept_id", "dept", "floor"), ("D1", "Sales", "1"), ("D2", "Labs", "2")])
    rows = [("job", "dept"), *((f"J{number}", f"D{number % 2 + 1}") for number in range(6))]
    tables = {one.name: one for one in read_tables([teams, write(tmp_path, "jobs.csv", rows)])}
    assert tables["department"].label == tables["department"].column("department")
    assert [join.table for join in tables["job"].joins] == ["department"]


def test_columns_of_one_name_stay_apart_and_empty_ones_go() -> None:
    columns = read_columns(("Name", "name", "note"), [("a", "b", ""), ("c", "d", " ")])
    assert [column.name for column in columns] == ["name", "name2"]


def test_keys_names_and_joins_are_found() -> None:
    tables = {table.name: table for table in read_tables(FILES)}
    assert tables["author"].key == ("author_id",)
    assert tables["book"].key == ("isbn",)
    assert tables["loan"].key == ("reader", "book")
    labels = {name: table.label.name if table.label else "" for name, table in tables.items()}
    assert labels == {"author": "name", "book": "title", "loan": ""}
    assert [(join.column.name, join.table, join.role) for join in tables["book"].joins] == [
        ("author_id", "author", "author")
    ]
    assert [join.table for join in tables["loan"].joins] == ["book"]


def test_a_folder_says_what_the_files_hold(drafted: Path) -> None:
    domain, tables = read(drafted, "domain.yaml"), read(drafted, "tables.yaml")
    assert list(domain["kinds"]) == ["author", "book"]
    book = domain["functions"]["get_book"]
    assert book["parameters"]["author"] == {"kinds": ["author"], "column": "_author"}
    assert book["keys"]["price"] == {"type": "money"}
    assert book["keys"]["weight"] == {"type": "number", "unit": "kg"}
    assert book["keys"]["year"] == {"type": "integer", "spell": "plain"}
    assert book["keys"]["in_print"] == {"type": "flag"}
    assert book["keys"]["author"] == {"kind": "author", "id": "_author"}
    assert domain["functions"]["get_author"]["keys"]["book_count"]["label"] == "number of books"
    assert domain["functions"]["get_author"]["facets"]["books"] == {"function": "get_book", "show": ["title"]}
    assert tables["book"]["columns"]["copies"] == "bigint"
    assert tables["book"]["indexes"] == {"book_by_author_id": ["author_id"]}
    assert [str(one) for one in lint(drafted) if one.fault] == []
    assert (drafted / "domain.yaml").read_text(encoding="utf-8").count("# guess") >= 4


def test_things_without_a_key_are_told_apart_by_name_and_switches_are_flags(tmp_path: Path) -> None:
    draft("office", tables_of("office"), tmp_path)
    domain = read(tmp_path / "office", "domain.yaml")
    assert domain["kinds"]["van"]["id"] == "name"
    # The name of a team is one of another domain's kinds.
    assert domain["kinds"]["office_team"].keys() == {"table", "id", "name"}, "who heads a team is no code for it"
    keys = domain["functions"]["get_employee"]["keys"] | domain["functions"]["get_office_team"]["keys"]
    assert keys["is_trainee"] == {"type": "flag"}
    assert keys["salary"] == {"type": "integer", "unit": "EUR"}
    assert keys["founded_on"]["aliases"] == ["founded"]
    assert keys["employee_count"]["label"] == "number of employees"
    assert not any(one.fault for one in lint(tmp_path / "office"))


def test_rows_that_nothing_names_are_a_domain_too(tmp_path: Path) -> None:
    draft("weather", [write(tmp_path, "days.csv", [("day", "rain_mm"), ("2020-01-01", "3")])], tmp_path)
    assert read(tmp_path / "weather", "domain.yaml")["kinds"] == {}
    assert read(tmp_path / "weather", "words.yaml")["functions"] == {"get_day": {"words": ["day"]}}
    assert not any(one.fault for one in lint(tmp_path / "weather"))


def test_what_has_no_name_is_called_by_its_key_and_what_has_no_key_is_numbered(tmp_path: Path) -> None:
    draft("shop", tables_of("shop"), tmp_path)
    domain, tables = read(tmp_path / "shop", "domain.yaml"), read(tmp_path / "shop", "tables.yaml")
    assert domain["kinds"]["order"] == {"table": "order", "id": "order_id", "name": "order_id"}
    assert domain["functions"]["get_line"]["pair"] == ["order", "product"]
    assert tables["guest"]["key"] == ["class", "sex", "came_back", "occurrence"], "an age may be unknown"
    assert (tables["guest"]["columns"]["age"], tables["guest"]["columns"]["came_back"]) == ("integer", "flag")
    assert not any(one.fault for one in lint(tmp_path / "shop"))


def test_a_column_of_ones_own_is_not_the_number_among_alike(tmp_path: Path) -> None:
    rows = [("occurrence", "plot"), ("wet", "a"), ("wet", "a"), ("dry", "b")]
    draft("moss", [write(tmp_path, "finds.csv", rows)], tmp_path)
    assert read(tmp_path / "moss", "tables.yaml")["find"]["key"] == ["occurrence", "plot", "occurrence_number"]
    assert not any(one.fault for one in lint(tmp_path / "moss"))


def test_what_tells_each_row_apart_in_few_words_names_it(tmp_path: Path) -> None:
    rows = [("mushroom", "edible", "note"), ("Red Cap", "no", "grows under old birches in all woods of the north")]
    (table,) = read_tables([write(tmp_path, "finds.csv", [*rows, ("Fir Cup", "yes", "found once")])])
    assert table.label is not None
    assert (table.label.name, table.nouns) == ("mushroom", ["find", "mushroom"])


def test_semicolons_part_cells_and_commas_decimals_where_the_header_has_no_comma(tmp_path: Path) -> None:
    path = tmp_path / "towers.csv"
    path.write_text("\ufeffname;height_m;note\nOld;1,250;red, round\nNew;1.030,5;\n", encoding="utf-8")
    (table,) = read_tables([path])
    assert [(column.name, column.type) for column in table.columns] == [
        ("name", "text"), ("height_m", "number"), ("note", "text"),
    ]  # fmt: skip
    assert table.sample["note"] == "red, round"
    assert [column.values for column in table.columns if column.name == "height_m"] == [{"1.250", "1030.5"}]


def test_worked_examples_name_what_the_files_hold(drafted: Path) -> None:
    examples = [json.loads(line) for line in (drafted / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
    many = {"query": "How many books does Ada Quill have?", "program": 'LEN get_author("Ada Quill")["books"]'}
    assert many in examples
    programs = [one["program"] for one in examples]
    # A model writes what it is shown: conditions, both ends of an order, counts and totals.
    for part in ("where(gt(", "where(eq(", "sort(None, -", "SUM get_", "LEN get_"):
        assert any(part in program for program in programs), part
    assert any(re.search(r"sort\(None, [a-z]", program) for program in programs)


@pytest.mark.parametrize("name", ["", "My Data", "2fast", "a" * 41, "../x"])
def test_a_domain_needs_a_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(DraftError, match="name of a domain"):
        draft(name, FILES, tmp_path)


def test_a_name_that_a_bundled_domain_has_is_refused_as_the_check_does(tmp_path: Path) -> None:
    folder = draft("library", FILES, tmp_path)[0].parent
    (finding,) = lint(folder.rename(tmp_path / "movie"))
    with pytest.raises(DraftError, match=f"movie: {finding.place.reason}"):
        draft("movie", FILES, tmp_path / "domains")
    assert not (tmp_path / "domains").exists()


def test_a_folder_is_never_overwritten(drafted: Path) -> None:
    before = (drafted / "domain.yaml").read_bytes()
    with pytest.raises(DraftError, match="is there"):
        draft("library", FILES, drafted.parent)
    assert (drafted / "domain.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("header.csv", "a,b\n", "no rows"),
        ("book.xlsx", "PK", "no .csv"),
        ("missing.csv", None, "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(name: str, content: str | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(LoadError, match=reason):
        draft("library", [path], tmp_path)
    assert not (tmp_path / "library").exists()


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    paths = [write(tmp_path, name, [("isbn", "title"), ("1", "By Night")]) for name in ("books.csv", "book.csv")]
    with pytest.raises(LoadError, match="both be the table book"):
        draft("library", paths, tmp_path)


def test_a_name_that_the_graph_has_gets_the_domains_before_it(tmp_path: Path) -> None:
    rows = [("id", "name"), ("1", "Rosa Lind"), ("2", "Tom Ask"), ("3", "Ada Berg")]
    draft("club", [write(tmp_path, "artists.csv", rows), write(tmp_path, "sources.csv", rows)], tmp_path / "domains")
    folder = tmp_path / "domains" / "club"
    assert set(read(folder, "tables.yaml")) == {"club_artist", "club_source"}
    assert "get_club_artist" in read(folder, "domain.yaml")["functions"]


@pytest.mark.parametrize("failing", ["domain.yaml", "examples.jsonl"])
def test_a_folder_is_written_whole_or_not_at_all(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text = Path.write_text

    def full(path: Path, text: str, encoding: str) -> None:
        if path.name == failing:
            raise OSError(28, "No space left on device", str(path))
        write_text(path, text, encoding)

    monkeypatch.setattr(Path, "write_text", full)
    done = CliRunner().invoke(app, ["new", "library", "--from", *map(str, FILES), "--to", str(tmp_path)])
    assert (done.exit_code, list(tmp_path.iterdir())) == (PROBLEM, [])
    assert f"No space left on device: '{tmp_path / 'library'}'" in done.stderr


def test_a_place_where_no_folder_can_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "domains").write_text("")
    done = CliRunner().invoke(app, ["new", "library", "--from", *map(str, FILES), "--to", str(tmp_path / "domains")])
    assert (done.exit_code, f"'{tmp_path / 'domains' / 'library'}'" in done.stderr) == (PROBLEM, True)


def test_a_wrong_setting_ends_the_command_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_KG_WORKERS", "none")
    done = CliRunner().invoke(app, ["new", "library", "--from", str(FILES[0])])
    assert (done.exit_code, "CRAGMESH_KG_WORKERS: " in done.stderr) == (USAGE, True)


@pytest.mark.parametrize(
    ("header", "cells", "guess"),
    [
        ("Start", ("03/09/2016", "17/05/2021"), ("start", "date", "day_first", "")),
        ("Start", ("03/09/2016", "05/17/2021"), ("start", "date", "month_first", "")),
        ("Start", ("3.9.2016", "1.2.2021"), ("start", "date", "day_first", "")),
        ("Start", ("3 Sep 2016", "May 17, 2021"), ("start", "date", "day_first", "")),
        ("Start", ("03-Sep-16", "17-May-21"), ("start", "date", "day_first", "")),
        ("Start", ("2016-09-03", "2021-05-17"), ("start", "date", "", "")),
        ("Start", ("1.10.24", "1.9.3"), ("start", "text", "", "")),  # versions
        ("Start", ("September 2016", "May 2021"), ("start", "text", "", "")),
        ("Start", ("03/09/2016", "soon"), ("start", "text", "", "")),
        ("Start", ("03/09/2016", "31/02/2021"), ("start", "text", "", "")),  # no day of any month
        ("£ per kg", ("£7.20", "£1,200"), ("price_gbp_per_kg", "number", "amount", "GBP per kg")),
        ("Cost", ("$7.20", "$12", "-"), ("cost_usd", "number", "amount", "")),
        ("Weight (kg)", ("7.5 kg", "12"), ("weight_kg", "number", "amount", "kg")),
        ("Share", ("7.5%", "12 %"), ("share_percent", "number", "amount", "")),
        ("Cost", ("£7.20", "$12"), ("cost", "text", "", "")),
        ("Flat", ("3a", "4b"), ("flat", "text", "", "")),
        ("Road", ("007 m", "012 m"), ("road", "text", "", "")),
        ("Revenue", ("1.5M", "2M"), ("revenue", "text", "", "")),  # a scale
        ("Nitrate (mg/l)", ("1.5", "2"), ("nitrate_mg_l", "number", "", "")),  # a quotient
        ("Volume (l)", ("1.5", "2"), ("volume_l", "number", "", "litres")),
        ("Length", ("12 m", "9 m"), ("length_m", "integer", "amount", "m")),
        ("Called to the bar", ("1999", "2008"), ("called_to_the_bar", "date", "", "")),
    ],
)
def test_days_and_amounts_as_people_write_them(header: str, cells: tuple[str, ...], guess: tuple[str, ...]) -> None:
    (column,) = read_columns((header,), [(one,) for one in cells])
    assert (column.name, column.type, column.transform, column.unit) == guess


def test_a_load_reads_days_and_amounts_as_they_were_guessed(tmp_path: Path) -> None:
    headers = ("van", "start", "sold", "£ per kg", "Weight (kg)", "Share")
    first = ("Van 1", "03/09/2016", "03/09/2016", "£7.20", "7.5 kg", "7.5%")
    path = write(tmp_path, "vans.csv", [headers, first, ("Van 2", "17/05/2021", "05/17/2021", "£1,200", "12", "12 %")])
    draft("fleet", [path], tmp_path / "domains")
    engine = open_store(f"sqlite:///{tmp_path / 'kg.sqlite'}", read_only=False)
    load(path, engine, catalogue=read_catalogue(CATALOGUE, tmp_path / "domains"))
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM van ORDER BY van")).all()
    engine.dispose()
    assert tuple(rows[0]) == ("Van 1", "2016-09-03", "2016-03-09", 7.2, 7.5, 7.5)


CLUB = {
    "member": "memb no,name,town\n101,Ada Quill,Otley\n102,Bo Reed,Otley\n103,Cy Page,Leeds",
    "walk": "walk,lead (memb no)\nMoor,101\nMill,103\nWood,101",
    "loan": "loan,borrower\nL1,Bo Reed\nL2,Ada Quill\nL3,Cy Page\nL4,Bo Reed",
    "customer": "cust no,customer\n9,Deli\n8,Bar\n7,Inn",
    "order": "order no,cust\n5001,9\n5002,9\n5003,7",
    "piece": "cat no,title\n101,Lantern Hymn\n102,Nightjar\n103,Salt and Rope",
    "room": "no,hall\n1,Old Hall\n2,New Hall\n3,Barn",
    # Small numbers are keys of any table; pieces are counted here.
    "line": "line,piece cat no,hall no,rooms\n1,102,1,1\n2,103,2,2\n3,102,3,3",
}


def test_columns_join_a_table_by_its_key_or_by_another_column(tmp_path: Path) -> None:
    files = [write_lines(tmp_path, f"{name}.csv", lines) for name, lines in CLUB.items()]
    joins = {table.name: [(one.role, one.table, one.key) for one in table.joins] for table in read_tables(files)}
    assert {name: some for name, some in joins.items() if some} == {
        "walk": [("lead", "member", "member_no")],
        "loan": [("borrower", "member", "name")],
        "order": [("customer", "customer", "customer_no")],
        "line": [("piece", "piece", "catalogue_no")],
    }
    draft("club", files, tmp_path / "domains")
    view = read(tmp_path / "domains" / "club", "domain.yaml")["functions"]["get_walk"]["view"]
    assert "lead_.name AS _lead" in view
    assert "LEFT JOIN member AS lead_ ON lead_.member_no = t.lead_member_no" in view
