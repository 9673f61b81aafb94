"""SQL of a domain's files: what is refused, and that it means the same in both databases."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Connection, Float, Integer, MetaData, Table, Text, create_engine, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from services.kg.definition.folder import BrokenPart
from services.kg.definition.views import Sources, read_query, select_of

METADATA = MetaData()
CITY = Table(
    "city",
    METADATA,
    Column("city_id", Text, primary_key=True),
    Column("name", Text),
    Column("people", Integer),
    Column("area", Float),
    Column("capital", Boolean),
    Column("order", Integer),
)
TAG = Table("tag", METADATA, Column("city_id", Text), Column("tag", Text))
SOURCES = Sources({"city": CITY, "tag": TAG}, {})


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(
            insert(CITY),
            [
                {"city_id": "a", "name": "Aare: 'x'", "people": 7, "area": 2.0, "capital": True, "order": 2},
                {"city_id": "b", "name": "Bern", "people": None, "area": 1.5, "capital": False, "order": 1},
                {"city_id": "c", "name": "Chur", "people": 3, "area": None, "capital": None, "order": 3},
            ],
        )
        connection.execute(insert(TAG), [{"city_id": "a", "tag": "river"}, {"city_id": "a", "tag": "old"}])
        yield connection
    engine.dispose()


def view(sql: str, *flags: str, sources: Sources = SOURCES) -> Any:
    return select_of(read_query(sql, sources), sources, flags)


NO_SELECT = (
    "DELETE FROM city", "SELECT name FROM city; DROP TABLE city", "DROP TABLE city", "PRAGMA table_info(city)",
    "ATTACH DATABASE 'x' AS y", "INSERT INTO city (name) VALUES ('x')", "UPDATE city SET name = 'x'",
    "CREATE TABLE x (a int)", "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        *((sql, "one SELECT") for sql in NO_SELECT),
        ("SELECT * INTO other FROM city", "INTO"),
        ("SELECT name FROM sqlite_master", "no table sqlite_master"),
        ("SELECT name FROM movie", "no table movie"),
        ("SELECT name FROM main.city", "no table of this domain"),
        ("SELECT (SELECT name FROM source) AS x FROM city", "no table source"),
        ("SELECT name FROM pragma_table_info('city')", "no table of this domain"),
        ("SELECT load_extension('x') AS x FROM city", "load_extension is not among"),
        ("SELECT pg_sleep(10) AS x FROM city", "pg_sleep is not among"),
        ("SELECT randomblob(1000000000) AS x FROM city", "(?i)randomblob is not among"),
        ("SELECT lower(name) AS a, random() AS b FROM city", "(?i)rand.* is not among"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", "RECURSIVE"),
        ("SELECT name FROM city WHERE name = ?", "a parameter"),
        ("SELECT name FROM city WHERE name = :x", "a parameter"),
        ("SELECT nmae FROM city", "nmae"),
        ("SELECT people + 1 FROM city", "needs a name"),
        ("SELECT name, city_id AS name FROM city", "name is selected twice"),
        ("SELECT name FROM", "(?i)expected"),
    ],
)
def test_what_is_no_view_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(BrokenPart, match=reason):
        view(sql)


def test_the_line_of_what_is_wrong_is_named() -> None:
    with pytest.raises(BrokenPart) as caught:
        view("SELECT\n  name,\n  load_extension('x') AS y\nFROM city")
    assert caught.value.line == 2


def test_a_view_is_run_as_it_was_understood(connection: Connection) -> None:
    selectable = view(
        "SELECT name, 'a:b' AS colon, '50%' AS percent, \"order\" FROM city -- a comment\nORDER BY \"order\""
    )
    rows = connection.execute(select(selectable.subquery())).all()
    assert rows == [("Bern", "a:b", "50%", 1), ("Aare: 'x'", "a:b", "50%", 2), ("Chur", "a:b", "50%", 3)]


def test_columns_have_the_types_of_what_they_come_from() -> None:
    selectable = view(
        "SELECT name, people, area, capital, people * 2 AS twice, count(*) AS n FROM city GROUP BY 1, 2, 3, 4, 5"
    )
    types = [type(column.type).__name__ for column in selectable.selected_columns]
    assert types == ["Text", "Integer", "Float", "Boolean", "Integer", "BigInteger"]


def test_flags_are_numbers_in_both_databases(connection: Connection) -> None:
    selectable = view("SELECT name, capital FROM city", "capital")
    assert [row.capital for row in connection.execute(select(selectable.subquery()))] == [1, 0, None]
    both = view("SELECT name, capital FROM city UNION ALL SELECT tag, NOT TRUE FROM tag", "capital")
    capitals = sorted(str(row.capital) for row in connection.execute(select(both.subquery())))
    assert capitals == ["0", "0", "0", "1", "None"]


def test_named_views_are_written_out(connection: Connection) -> None:
    big = read_query("SELECT city_id AS _id, name, people FROM city WHERE people > 2", SOURCES)
    sources = Sources(SOURCES.tables, {"big": big})
    selectable = view("SELECT big.*, tag.tag FROM tag JOIN big ON big._id = tag.city_id", sources=sources)
    assert [column.name for column in selectable.selected_columns] == ["_id", "name", "people", "tag"]
    rows = connection.execute(select(selectable.subquery().c.tag)).scalars().all()
    assert sorted(rows) == ["old", "river"]


def test_each_database_gets_its_own_sql() -> None:
    selectable = view(
        "SELECT name, (SELECT group_concat(tag, ', ') FROM tag WHERE tag.city_id = city.city_id) AS tags,"
        " CAST(substr(name, 1, 2) AS INTEGER) AS year FROM city WHERE name <> '50%'"
    )
    lite = str(select(selectable.subquery()).compile(dialect=sqlite.dialect()))
    postgres = str(select(selectable.subquery()).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
    assert "GROUP_CONCAT" in lite
    assert "STRING_AGG" in postgres
    assert "GROUP_CONCAT" not in postgres
    assert "50%%" in postgres
