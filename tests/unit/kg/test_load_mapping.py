"""Rows of tables, and files that mappings describe: by a file of one's own, or out of a domain's folder."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, select
from typer.testing import CliRunner

from services.cli.kg import app
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.language.catalogue import Catalogue
from services.kg.load import BadMapping, LoadReport, UnknownFormat, load
from services.kg.load.reading import Merge
from services.kg.store.tables import source
from tests.unit.kg.library import write_lines

MAPPING = """
domain: movie
tables:
  - table: movie
    columns:
      movie_id: {slug: [Name, Released]}
      title: Name
      release_date: Released
      revenue: figures.gross
      original_language: {value: fr}
  - table: movie_genre
    columns:
      movie_id: {slug: [Name, Released]}
      genre: {from: Genres, split: ","}
"""


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path / 'kg.sqlite'}")
    yield engine
    engine.dispose()


def rows_of(engine: Engine, table: str, catalogue: Catalogue = CATALOGUE) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(select(catalogue.tables[table]))]


def problems(report: LoadReport) -> list[tuple[int, str, str]]:
    return [(one.line, one.field, one.reason) for file in report.files for one in file.problems]


# -- rows --------------------------------------------------------------------------------------------------------------


def test_rows_are_checked_against_the_tables(store: Engine, tmp_path: pathlib.Path) -> None:
    path = write_lines(
        tmp_path,
        "some.jsonl",
        {"table": "movie", "row": {"movie_id": "949", "title": "Heat", "release_date": "19951215", "budget": "6,000"}},
        {"table": "movie", "row": {"movie_id": "949", "title": "heat", "revenue": 7}, "fill": True},
        {"table": "movie", "row": {"movie_id": "950", "title": "Null"}},
        {"table": "recipe", "row": {"name": "Soup"}},
        {"table": "movie", "row": {"movie_id": "1", "title": "A", "colour": "red"}},
        {"table": "movie", "row": {"movie_id": "1"}},
        {"table": "movie", "row": {"movie_id": "1", "title": "A", "release_date": "soon"}},
        {"table": "movie", "row": [1]},
        {"table": "source", "row": {"name": "x"}},
        "{",
    )
    report = load(path, store)
    assert [(one["title"], one["release_date"], one["budget"], one["revenue"]) for one in rows_of(store, "movie")] == [
        ("Heat", "1995-12-15", 6_000, 7),
        ("Null", None, None, None),
    ]
    skipped = problems(report)
    assert [(line, field) for line, field, _ in skipped] == [
        (4, "table"), (5, "colour"), (6, "title"), (7, "release_date"), (8, ""), (9, "table"), (10, ""),
    ]  # fmt: skip
    assert "is no column of movie: movie_id" in skipped[1][2]
    assert NameIndex(store, CATALOGUE).resolve("heat", ["movie"]).entities == ("949",)
    assert load(path, store).unchanged


def test_totals_count_for_the_domain_of_their_relation(store: Engine, tmp_path: pathlib.Path) -> None:
    row = {"relation": "music.works", "entity_id": "adele", "total": 40}
    load(write_lines(tmp_path, "some.jsonl", {"table": "stated_total", "row": row}), store)
    with store.connect() as connection:
        assert connection.scalars(select(source.c.domain)).all() == ["music"]


def test_a_csv_file_that_is_named_like_a_table_is_its_rows(store: Engine, tmp_path: pathlib.Path) -> None:
    path = write_lines(
        tmp_path, "dividend.csv", "ticker,date,value", "ACM,2024-02-27,0.5", "ACM,2024-02-28,", "NAN,2024,1"
    )
    report = load(path, store)
    assert [(one["ticker"], one["date"], one["value"]) for one in rows_of(store, "dividend")] == [
        ("ACM", "2024-02-27", 0.5),
        ("NAN", "2024", 1.0),
    ]
    assert problems(report) == [(3, "value", "is missing")]
    with pytest.raises(UnknownFormat):
        load(write_lines(tmp_path, "dividend.tsv", "ticker\tday", "ACM\t2024"), store)


def test_records_that_cannot_be_used_are_set_aside_with_the_reason(store: Engine, tmp_path: pathlib.Path) -> None:
    bad = {"table": "movie", "row": {"movie_id": "1"}}
    path = write_lines(
        tmp_path, "some.jsonl", {"table": "movie", "row": {"movie_id": "2", "title": "A"}}, *[bad] * 30, "{"
    )
    report = load(path, store, aside=tmp_path / "aside.jsonl")
    aside = [json.loads(line) for line in (tmp_path / "aside.jsonl").read_text().splitlines()]
    assert (report.skipped, len(problems(report)), len(aside)) == (31, 20, 31)
    assert aside[0] == {"file": "some.jsonl", "line": 2, "field": "title", "reason": "is missing", "record": bad}
    assert aside[-1]["record"] == "{"


# -- a mapping of one's own --------------------------------------------------------------------------------------------


def test_a_mapping_fills_tables_from_json_lines(store: Engine, tmp_path: pathlib.Path) -> None:
    mapping = write_lines(tmp_path, "own.yaml", MAPPING)
    path = write_lines(
        tmp_path,
        "own.jsonl",
        {"Name": "Un Film", "Released": "20010425", "figures": {"gross": "1,000"}, "Genres": "Drama, War"},
        {"Name": "Two", "Released": "soon", "figures": {"gross": 1}, "Genres": ""},
        {"Name": "Three", "Released": "2001", "Genres": ""},
        {"Name": "Four", "Released": "2001", "figures": 4},
        {"Released": "2001"},
        "no json",
    )
    report = load(path, store, mapping=mapping)
    assert [(one["movie_id"], one["revenue"], one["original_language"]) for one in rows_of(store, "movie")] == [
        ("un-film-20010425", 1000, "fr"),
        ("three-2001", None, "fr"),
    ]
    assert {one["genre"] for one in rows_of(store, "movie_genre")} == {"Drama", "War"}
    assert [(line, field) for line, field, _ in problems(report)] == [
        (2, "Released"), (4, "figures.gross"), (5, "Name"), (6, ""),
    ]  # fmt: skip
    assert NameIndex(store, CATALOGUE).resolve("un film", ["movie"]).status == "ok"
    assert load(path, store, mapping=mapping).unchanged
    mapping.write_text(MAPPING.replace("value: fr", "value: en"))
    assert not load(path, store, mapping=mapping).unchanged


def test_a_mapping_fills_tables_from_csv(store: Engine, tmp_path: pathlib.Path) -> None:
    path = write_lines(tmp_path, "p.csv", "sym,when,last", "acm,2024-02-27,10.5", "acm,2024-02-28,n/a", ",2024-02-28,1")
    columns = "{ticker: {from: sym, as: upper}, date: when, close: last}"
    mapping = f"domain: finance\ntables: [{{table: price_daily, as_of: when, columns: {columns}}}]"
    report = load(path, store, mapping=write_lines(tmp_path, "own.yaml", mapping))
    assert [(one["ticker"], one["date"], one["close"]) for one in rows_of(store, "price_daily")] == [
        ("ACM", "2024-02-27", 10.5),
        ("ACM", "2024-02-28", None),
    ]
    assert problems(report) == [(4, "sym", "is missing")]
    with store.connect() as connection:
        assert connection.scalars(select(source.c.as_of)).all() == ["2024-02-28"]


def test_lists_entities_and_several_kinds_of_records(store: Engine, tmp_path: pathlib.Path) -> None:
    mapping = """
domain: music
rules:
  - when: {type: [band, group]}
    order: 1
    let:
      band: {entity: artist, name: name}
    rows:
      - table: artist
        columns: {artist_id: $band, begin_date: [founded, begun], is_band: {value: true}}
      - table: band_member
        each: members
        unless: .left
        columns:
          band_id: $band
          member_name: .who
          member_id: {entity: artist, name: .who}
          ord: $place
  - when: {type: hit}
    order: 2
    let:
      known: {find: artist, name: by}
    rows:
      - table: work
        if: $known
        columns: {work_id: {text: "{$known}/{title}"}, title: title, kind: {from: kind, else: song}}
  - when: {type: note}
"""
    path = write_lines(
        tmp_path,
        "own.jsonl",
        {"type": "hit", "title": "Tune", "by": "the hives"},
        {"type": "hit", "title": "Lost", "by": "Nobody"},
        {"type": "band", "name": "The Hives", "begun": "1993", "members": [{"who": "Cee"}, {"who": "Al", "left": 1}]},
        {"type": "group", "name": "the hives", "founded": "1994", "members": {}},
        {"type": "note"},
        {"type": ["band"]},
    )
    report = load(path, store, mapping=write_lines(tmp_path, "own.yaml", mapping))
    assert {(one["artist_id"], one["name"], one["begin_date"]) for one in rows_of(store, "artist")} == {
        ("the-hives", "The Hives", "1994"), ("cee", "Cee", None),
    }  # fmt: skip
    assert [(one["member_name"], one["ord"]) for one in rows_of(store, "band_member")] == [("Cee", 0)]
    assert [(one["work_id"], one["kind"]) for one in rows_of(store, "work")] == [("the-hives/Tune", "song")]
    assert problems(report) == [(6, "", "is no record that a mapping describes")]


def test_a_field_that_a_csv_file_lacks_stops_the_load(store: Engine, tmp_path: pathlib.Path) -> None:
    mapping = "domain: finance\ntables: [{table: company, columns: {ticker: sym, name: title}}]"
    with pytest.raises(BadMapping, match=r"p\.csv has no column 'title': sym"):
        load(write_lines(tmp_path, "p.csv", "sym", "ACM"), store, mapping=write_lines(tmp_path, "own.yaml", mapping))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("domain: cooking\ntables: [{table: a, columns: {b: c}}]", 1, "there is no domain 'cooking'"),
        ("domain: movie\ntables:\n- table: recipe\n  columns: {a: b}", 3, "no table recipe"),
        ("domain: movie\ntables:\n- table: movie\n  columns:\n    movie_id: a\n    tint: c", 6, "of movie tint"),
        ("domain: movie\ntables: [{table: movie, columns: {movie_id: a}}]", 2, "needs title"),
        ("domain: movie\ntables:\n- table: movie\n  columns:\n    title: a\n    movie_id: {eval: '1'}", 6, "eval"),
        ("domain: movie\ntables: [{table: movie, columns: {movie_id: a, title: b}, where: c}]", 2, "where"),
        ("domain: movie\ntables: [{table: name, columns: {name_id: a}}]", 2, "no table name"),
        ("domain: movie\ntables:\n- table: movie\n  columns:\n    title: {from: b, as: eval}", 5, "no transform"),
        ("domain: movie\ntables:\n- table: movie\n  columns:\n    movie_id: $x\n    title: b", 5, "there is no $x"),
        ("domain: movie\ntables: [{table: movie, columns: {movie_id: {entity: team, name: a}}}]", 2, "no kind team"),
        ("domain: movie\ntables: [{record: recipe, columns: {a: b}}]", 2, "no record recipe"),
        ("domain: movie\nthrough: sieve\ntables: [{table: movie, columns: {movie_id: a, title: b}}]", 2, "no filter"),
        ("domain: movie", 1, "either `tables` or `rules`"),
        ("!!python/object/apply:os.system ['true']", 1, "is no tag"),
        ("domain: movie\na: [", 3, "expected node"),
        ("just words", 1, "dictionary"),
    ],
)
def test_a_mapping_that_is_wrong_is_refused_with_the_place(
    store: Engine, tmp_path: pathlib.Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(BadMapping) as error:
        load(write_lines(tmp_path, "own.jsonl", {}), store, mapping=write_lines(tmp_path, "own.yaml", text))
    assert f"own.yaml, line {line}" in str(error.value)
    assert says in str(error.value)


# -- a domain of one's own ---------------------------------------------------------------------------------------------

TABLES = """
peak:
  columns: {peak_id: text, name: {type: text, required: true}, metres: integer, climbed: date, range_id: text}
  key: [peak_id]
mountain_range:
  columns: {range_id: text, name: {type: text, required: true}}
  key: [range_id]
"""
DOMAIN = """
summary: mountains
kinds:
  peak: {table: peak, id: peak_id, name: name, popularity: [{top: 9000, column: metres}]}
  range: {table: mountain_range, id: range_id, name: name}
functions:
  get_peak:
    summary: a mountain's height and first ascent
    parameters:
      peak: {kinds: [peak], column: _peak_id}
    view: SELECT peak_id AS _peak_id, name, metres, climbed FROM peak
    keys: {name: {kind: peak, id: _peak_id}, metres: {type: integer, unit: m}, climbed: {type: date}}
    subject: [name]
    default: [metres]
"""
PEAKS = """
domain: peaks
tables:
  - table: peak
    columns:
      peak_id: {slug: [Mountain]}
      name: Mountain
      metres: Height
      climbed: First ascent
      range_id: {entity: range, name: Range}
"""
CSV = ["Mountain,Height,First ascent,Range", "Kestrel Horn,4478,1865-07-14,Öland Alps", "Bay Top,4634,no,Öland alps"]


@pytest.fixture
def own(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of one domain, without a line of Python."""
    folder = tmp_path / "own" / "peaks"
    (folder / "sources").mkdir(parents=True)
    write_lines(folder, "tables.yaml", TABLES)
    write_lines(folder, "domain.yaml", DOMAIN)
    write_lines(folder / "sources", "peaks.yaml", PEAKS)
    return tmp_path / "own"


def test_a_domain_of_one_s_own_is_filled_from_csv(store: Engine, own: pathlib.Path, tmp_path: pathlib.Path) -> None:
    catalogue = read_catalogue(CATALOGUE, own)
    report = load(write_lines(tmp_path, "list.csv", *CSV), store, catalogue=catalogue)
    assert [(file.format, file.rows, file.skipped) for file in report.files] == [("peaks", {"peaks": 1}, 1)]
    assert problems(report) == [(3, "First ascent", "'no' is no date")]
    ((*peak,),) = (row.values() for row in rows_of(store, "peak", catalogue))
    assert peak == ["kestrel-horn", "Kestrel Horn", 4478, "1865-07-14", "oland-alps"]
    assert NameIndex(store, catalogue).resolve("kestrel horn", ["peak"]).entities == ("kestrel-horn",)
    load(write_lines(tmp_path, "mountain_range.csv", "range_id,name", "south,South Range"), store, catalogue=catalogue)
    assert {one["name"] for one in rows_of(store, "mountain_range", catalogue)} == {"Öland Alps", "South Range"}


def test_records_that_become_one_row_are_told(store: Engine, own: pathlib.Path, tmp_path: pathlib.Path) -> None:
    horn, *others = CSV[1], "Alder Peak,2100,,Öland Alps", "Kestrel  horn,3000,,Öland Alps"
    catalogue = read_catalogue(CATALOGUE, own)
    report = load(write_lines(tmp_path, "list.csv", CSV[0], horn, horn, *others), store, catalogue=catalogue)
    (file,) = report.files
    assert (file.rows, file.skipped, file.merged) == ({"peaks": 4}, 0, 1)
    assert file.merges == [Merge(5, 2, "peak", ("kestrel-horn",))]
    assert {one["metres"] for one in rows_of(store, "peak", catalogue)} == {2100, 3000}


def test_a_broken_source_of_a_domain_is_named(store: Engine, own: pathlib.Path, tmp_path: pathlib.Path) -> None:
    write_lines(own / "peaks" / "sources", "peaks.yaml", PEAKS.replace("name: Mountain\n", "title: Mountain\n"))
    with pytest.raises(BadMapping, match=r"peaks\.yaml, line 7, tables\.0\.columns\.title: .* no column of peak title"):
        load(write_lines(tmp_path, "list.csv", *CSV), store, catalogue=read_catalogue(CATALOGUE, own))
    write_lines(own / "peaks" / "sources", "peaks.yaml", PEAKS)
    write_lines(own / "peaks" / "sources", "identity.yaml", "peak: {apart: born}")
    with pytest.raises(BadMapping, match=r"identity\.yaml, line 1.* no column of peak born"):
        load(write_lines(tmp_path, "list.csv", *CSV), store, catalogue=read_catalogue(CATALOGUE, own))


def test_no_python_is_taken_from_a_folder_of_one_s_own(
    own: pathlib.Path, store: Engine, tmp_path: pathlib.Path
) -> None:
    write_lines(own / "peaks", "loading.py", "raise SystemExit('taken')")
    report = load(write_lines(tmp_path, "list.csv", *CSV), store, catalogue=read_catalogue(CATALOGUE, own))
    assert report.rows == 1


def test_the_command_fills_a_domain_of_one_s_own(
    own: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAGMESH_KG_DOMAINS", str(own))
    path = write_lines(tmp_path, "list.csv", *CSV)
    url = f"sqlite:///{tmp_path / 'own.sqlite'}"
    aside = tmp_path / "aside.jsonl"
    done = CliRunner().invoke(app, ["load", str(path), "--database", url, "--domain", "peaks", "--aside", str(aside)])
    assert done.exit_code == 0, done.output
    assert "list.csv:3: First ascent 'no' is no date" in done.output
    write_lines(tmp_path, "list.csv", *CSV, "Kestrel Horn,3000,,Öland Alps")
    done = CliRunner().invoke(app, ["load", str(path), "--database", url])
    assert "list.csv:4: its peak kestrel-horn is that of line 2: one row of both" in done.output
    assert json.loads(aside.read_text())["record"]["Mountain"] == "Bay Top"
    assert CliRunner().invoke(app, ["load", str(path), "--database", url, "--domain", "cooking"]).exit_code == 2
