"""A folder of data becomes a domain that answers; what is wrong in it is named by file, line and key."""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, insert

from services.kg.app import create_app
from services.kg.definition.domain import STORE, read_catalogue, read_domain
from services.kg.definition.folder import BrokenDomain, BrokenPart
from services.kg.definition.functions import check_facets
from services.kg.domains import BUNDLED, CATALOGUE
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.examples import load_library
from services.kg.generate.spans import Spotter
from services.kg.language.catalogue import Catalogue
from services.kg.language.decoding import decoding_grammar, schema_text
from services.kg.load.surfaces import index_names
from services.kg.settings import KgSettings
from services.kg.store.names import name_table
from services.kg.store.tables import METADATA
from services.kg.verbalize import verbalize
from tests.unit.kg.conftest import DIALECTS, database
from tests.unit.kg.graph import disposed

ELEMENTS = Path(__file__).parent / "elements"
NOW = datetime(2024, 2, 28, tzinfo=UTC)

Edit = Callable[[str, str, str], Path]


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    """A copy of the folder of elements in a folder of its own, with one thing in it replaced."""

    def edited(file: str, before: str, after: str) -> Path:
        folder = tmp_path / "domains" / "elements"
        shutil.copytree(ELEMENTS, folder, dirs_exist_ok=True)
        text = (folder / file).read_text() if (folder / file).exists() else ""
        assert before in text
        (folder / file).write_text(text.replace(before, after, 1))
        return folder

    return edited


def line_of(file: Path, text: str) -> int:
    return file.read_text().partition(text)[0].count("\n") + 1


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    folder = tmp_path_factory.mktemp("domains")
    shutil.copytree(ELEMENTS, folder / "elements")
    return read_catalogue(CATALOGUE, folder)


@pytest.fixture(scope="module", params=DIALECTS)
def graph(request: pytest.FixtureRequest, catalogue: Catalogue) -> Iterator[Engine]:
    url = database(request.param, Path(f"{catalogue.domains['elements'].folder.place}.sqlite"))
    with disposed(create_engine(url)) as engine, engine.begin() as connection:
        tables = catalogue.domains["elements"].tables
        for table in tables.values():
            table.drop(connection, checkfirst=True)
        METADATA.create_all(connection)
        catalogue.create_tables(connection)
        connection.execute(
            insert(tables["element"]),
            [
                {"symbol": "Xq", "name": "Quornium", "atomic_number": 201, "density": 7.5, "abundance": 5e4}
                | {"discovered": "1801-05", "radioactive": False, "melting_point": 1811.25},
                {"symbol": "Zz", "name": "Zephyrium", "atomic_number": 202, "density": 9.25, "abundance": 1e-3}
                | {"discovered": "1898", "radioactive": True, "melting_point": None},
                {"symbol": "Vy", "name": "Vyrnium", "atomic_number": 203, "density": 5.5, "abundance": 1e-2}
                | {"discovered": "1898-12-21", "radioactive": True, "melting_point": 973.0},
            ],
        )
        connection.execute(insert(tables["scientist"]), [{"person": "al", "name": "Anna Lindqvist", "country": "SE"}])
        connection.execute(
            insert(tables["element_discoverer"]), [{"symbol": "Zz", "person": "al"}, {"symbol": "Vy", "person": "al"}]
        )
        index_names(connection, catalogue, ["elements"])
        connection.commit()
        yield engine


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ('get_element("quornium")["melting_point"]', "The melting point of Quornium is 1,811.25 K."),
        ('get_element("Zephyrium")["melting_point"]', "No melting point of Zephyrium is known."),
        ('get_element("xq")["atomic_number"]', "The atomic number of Quornium is 201."),
        ('get_element("quornum")["sign"]', "The symbol of Quornium is Xq."),
        ('get_discoverers(None, "anna lindqvist")["name"]', "(2): Zephyrium; Vyrnium."),
        ('get_element("vyrnium")["discovered_by"]', "Discoverers of Vyrnium (1): Anna Lindqvist."),
        ("LEN get_element(None) where(gt(density, 6))", "Number of chemical elements: 2."),
        ("LEN get_element(None) where(eq(radioactive, true))", "Number of chemical elements: 2."),
        ("LEN get_element(None) where(eq(discovered, 1898))", "Number of chemical elements: 2."),
        ('get_element(None) sort(None, -density)["density"][:1]', "The density of Zephyrium is 9.25 g/cm3."),
        ('MAX get_element(None)["density"]', "The highest density of chemical elements is 9.25 g/cm3, of Zephyrium."),
        ('get_element("zephyrium")["colour"]', "no"),
    ],
)
def test_it_answers(graph: Engine, catalogue: Catalogue, program: str, text: str) -> None:
    executor = Executor(graph, NameIndex(graph, catalogue), catalogue)
    outcomes = executor.execute(program, domain="elements", query_time=NOW)
    assert text in " ".join(verbalize(outcomes, catalogue.domains, date(2024, 2, 28), max_tokens=500))


def test_its_names_are_found_in_questions(graph: Engine, catalogue: Catalogue) -> None:
    spotter = Spotter(graph, catalogue)
    spots = spotter.spot("did Anna Lindqvist find zephyrium?", "elements")
    assert [(spot.text, spot.kind) for spot in spots] == [("Anna Lindqvist", "scientist"), ("zephyrium", "element")]


def test_names_are_as_popular_as_the_file_says(graph: Engine) -> None:
    with graph.connect() as connection:
        rows = connection.execute(name_table.select().where(name_table.c.kind == "element")).mappings().all()
    weights = {row["surface"]: row["weight"] for row in rows}
    assert weights["Quornium"] == pytest.approx(0.8245, abs=1e-3)
    assert weights["Xq"] == pytest.approx(0.9 * weights["Quornium"])
    assert weights["Zephyrium"] < weights["Vyrnium"] < weights["Quornium"]


def test_models_are_shown_it_and_held_to_it(catalogue: Catalogue) -> None:
    assert "get_element(element)[name|symbol|" in schema_text(catalogue, "elements")
    grammar = decoding_grammar(catalogue, "elements")
    assert '"melting_point" | "melts"' in grammar
    assert 'element ::= "get_element(" ("None" | ' in grammar
    assert load_library(catalogue).examples["elements"] == ()


def test_the_bundled_ones_come_first_and_stay_as_they_are(catalogue: Catalogue) -> None:
    assert tuple(catalogue.domains) == (*BUNDLED, "elements")
    assert [catalogue.domains[one] for one in BUNDLED] == list(CATALOGUE.domains.values())
    assert read_catalogue(CATALOGUE, None) is CATALOGUE
    assert "element" not in METADATA.tables


# By file: what stands in it, what replaces it, the key and the reason of the fault, and how many lines below it lies.
BROKEN: dict[str, list[tuple[Any, ...]]] = {
    "domain.yaml": [
        ("summary: chem", "# chem", "", "it needs summary"),
        ("timed: false", "time: false", "time", "there is no field time here"),
        ("summary: chem", "sumary: chem", "", "it needs summary"),
        ("type: date, aliases: [disc", "type: day, aliases: [disc", "discovered.type", "'date'"),
        ("kind: element, id: _symbol}", "kind: metal, id: _symbol}", "name.kind", "no kind metal"),
        ("kind: element, id: _symbol}", "kind: element, id: _id}", "name.id", "no column of the view _id"),
        ("kind: element, id: _symbol}", "compare: {vocabulary: {'(': a}}}", "name.compare", "valid regular expression"),
        ("      group: {aliases", "      groups: {aliases", "keys.groups", "no column of the view groups"),
        ("melting_point, boiling_point, density", "melting_point, boilng, density", "get_element.view", "boilng"),
        ("      FROM element\n", "      FROM elements\n", "get_element.view", "no table elements"),
        ("default: [symbol,", "default: [sign,", "get_element.default", "no key sign"),
        ("order: [atomic_number]", "order: [-weight]", "get_element.order", "no column of the view weight"),
        ("function: get_discoverers,", "function: get_finders,", "discoverers.function", "get_finders"),
        ("show: [person],", "show: [persons],", "discoverers.show", "no key of get_discoverers persons"),
        ("pair: [element, person]", "pair: [element, finder]", "get_discoverers.pair", "no parameter finder"),
        ('row: "{{ name }}"', 'row: "{{ nme }}"', "get_element.row", "nme cannot be named here"),
        ('row: "{{ name }}"', 'row: "{{ name }"', "get_element.row", "unexpected"),
        ("    whole: true", "    whole: true\n    python: os.system", "python", "no Python is taken", 1),
        ("column: abundance}", "column: plenty}", "kinds.element", "plenty"),
        ("top: 500000, ", "", "popularity.0", "needs `top`"),
        ("functions:\n", "functions:\n  get_element: {}\n", "get_element", "stands here twice", 2),
    ],
    "tables.yaml": [
        ("period: integer", "period: int", "columns.period", "'integer'"),
        ("key: [symbol]", "key: [sign]", "element.key", "no column sign"),
        ("element:\n", "element: [\n", "", "expected", 2),
    ],
}


@pytest.mark.parametrize(
    ("file", "before", "after", "key", "reason", "below"),
    [(file, *fault[:4], sum(fault[4:])) for file, faults in BROKEN.items() for fault in faults],
)
def test_what_is_wrong_is_named(
    edit: Edit, file: str, before: str, after: str, key: str, reason: str, below: int
) -> None:
    folder = edit(file, before, after)
    line = line_of(ELEMENTS / file, before) + below
    with pytest.raises(BrokenDomain, match=re.escape(reason)) as caught:
        read_domain(folder)
    fault = caught.value.faults[0]
    assert (fault.file, fault.line) == (str(folder / file), line)
    assert key in fault.key


def test_a_facet_is_of_a_function_that_takes_what_the_other_is_about(catalogue: Catalogue) -> None:
    functions = {one.name: one for one in catalogue.functions if one.domain == "elements"}
    check_facets(functions, "get_element")
    finders = functions["get_discoverers"]
    functions["get_discoverers"] = replace(finders, parameters=finders.parameters[1:])
    with pytest.raises(BrokenPart, match="get_discoverers takes no element, which get_element is about"):
        check_facets(functions, "get_element")


def test_all_that_is_wrong_is_named_at_once(edit: Edit) -> None:
    folder = edit("domain.yaml", "default: [symbol,", "default: [sign,")
    file = folder / "domain.yaml"
    file.write_text(file.read_text().replace("default: [person]", "default: [finder]"))
    with pytest.raises(BrokenDomain) as caught:
        read_domain(folder)
    places = [line_of(folder / "domain.yaml", text) for text in ("default: [sign,", "default: [finder]")]
    assert [fault.line for fault in caught.value.faults] == places


def test_its_calendar_is_its_own(edit: Edit) -> None:
    folder = edit("calendar.yaml", "", "zone: Europe/Berlin\nzone_label: CET\nseason_month: 9\n")
    assert str(read_domain(folder).calendar.zone) == "Europe/Berlin"
    assert str(read_domain(ELEMENTS).calendar.zone) == "America/Los_Angeles"


@pytest.mark.parametrize("text", ["zone: Nowhere/At_All", "seasons: 3", "[1, 2]", "season_month: 13", "zone: ["])
def test_a_calendar_that_is_none_is_named(edit: Edit, text: str) -> None:
    folder = edit("calendar.yaml", "", text)
    with pytest.raises(BrokenDomain, match=r"calendar\.yaml, line [12]"):
        read_domain(folder)


@pytest.mark.parametrize("file", ["domain.yaml", "tables.yaml"])
def test_a_file_that_is_missing_is_named(edit: Edit, file: str) -> None:
    folder = edit(file, "", "")
    (folder / file).unlink()
    with pytest.raises(BrokenDomain, match=f"{file}, line 1: No such file"):
        read_domain(folder)


def test_python_in_a_folder_is_never_imported(edit: Edit, tmp_path: Path) -> None:
    folder = edit("__init__.py", "", f"open({str(tmp_path / 'trace')!r}, 'w')")
    (folder / "rules.py").write_text((folder / "__init__.py").read_text())
    assert read_domain(folder).name == "elements"
    assert not (tmp_path / "trace").exists()


def test_what_another_domain_has_is_refused(edit: Edit) -> None:
    folder = edit("domain.yaml", "", "")
    shutil.copytree(folder, folder.parent / "metals")
    with pytest.raises(BrokenDomain) as caught:
        read_catalogue(CATALOGUE, folder.parent)
    for kind in ("table", "kind"):
        reason = f"the domain elements has a {kind} of this name; take another"
        assert {"element", "scientist"} <= {fault.key for fault in caught.value.faults if fault.reason == reason}


def test_a_folder_named_as_a_bundled_domain_is_refused(edit: Edit) -> None:
    folder = edit("domain.yaml", "", "")
    folder.rename(folder.parent / "movie")
    with pytest.raises(BrokenDomain, match="another domain of this name"):
        read_catalogue(CATALOGUE, folder.parent)


def test_a_folder_of_folders_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenDomain, match="no such folder"):
        read_catalogue(CATALOGUE, tmp_path / "nowhere")


def test_a_broken_folder_stops_the_start_with_its_place(edit: Edit) -> None:
    folder = edit("domain.yaml", "default: [symbol,", "default: [sign,")
    line = line_of(folder / "domain.yaml", "default: [sign,")
    with pytest.raises(
        BrokenDomain, match=rf"the domain elements is broken: .*domain\.yaml, line {line}, .*: there is no"
    ):
        create_app(KgSettings(kg_domains=folder.parent))


def test_the_graph_s_own_tables_are_nobody_s() -> None:
    assert not STORE & CATALOGUE.tables.keys()
