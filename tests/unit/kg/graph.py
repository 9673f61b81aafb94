"""A small graph of invented and well-known things that holds one of every case the language must handle."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml
from sqlalchemy import Engine, Table, insert, select

from services.kg.domains import CATALOGUE
from services.kg.store import names, tables
from services.kg.store.tables import METADATA

ASKED = datetime(2024, 2, 28, 8, 12, tzinfo=ZoneInfo("America/Los_Angeles"))

TABLES = {**CATALOGUE.tables, **{table.name: table for table in (tables.source, tables.stated_total)}}
ROWS: Mapping[Table, list[dict[str, Any]]] = {
    TABLES[name]: [dict(zip(columns, values, strict=True)) for values in rows]
    for name, (columns, *rows) in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")).items()
}
NAMES: Mapping[str, list[tuple[str, str]]] = {
    "movie": [("1", "Harbour Lights"), ("2", "Harbour Lights"), ("3", "The Glass Orchard"), ("4", "Harbour Lights 2")],
    "movie_person": [("10", "Ada Lindqvist"), ("11", "Bo O'Hara"), ("12", "Chiara Muñoz")],
    "company": [("ZZT", "ZZT"), ("ZZT", "Zuzana Tools Corp."), ("QQN", "QQN"), ("QQN", "Quarry Nine Inc.")],
    "artist": [("a1", "Ilse Vant"), ("a2", "The Paper Kites Club")],
    "song": [("w1", "Hallow"), ("w2", "Twenty One Miles")],
    "soccer_team": [("t1", "Riverside")],
    "nba_team": [("t2", "Denver Foxes")],
    "open": [("Mount Zephyr", "Mount Zephyr"), ("Zephyria", "Zephyria")],
}


def fill(engine: Engine) -> None:
    """Make all tables and put the graph into them."""
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        for table, rows in ROWS.items():
            connection.execute(insert(table), rows)
        names.create_index(connection)
        for kind, surfaces in NAMES.items():
            names.replace_names(connection, kind, [names.Surface(*surface, 1.0) for surface in surfaces])
        names.refresh(connection, tuple(NAMES))


@contextmanager
def disposed(engine: Engine) -> Iterator[Engine]:
    """An engine whose connections are closed afterwards."""
    try:
        yield engine
    finally:
        engine.dispose()


def rows_of(engine: Engine, name: str, **where: Any) -> list[dict[str, Any]]:
    """The rows of a table whose columns hold these values."""
    table = TABLES[name]
    statement = select(table).where(*(table.c[key] == value for key, value in where.items()))
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(statement)]


def row(domain: str, kind: str, entity: str, **attrs: Any) -> dict[str, Any]:
    """A line of a file of rows to load."""
    return {"domain": domain, "kind": kind, "entity": entity, "attrs": attrs}
