"""The questions, in two halves that nobody chose, with the right answers computed from the CSV files."""

import csv
import hashlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.places.tables import HEADERS

Half = Literal["work", "held-out"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Args:
        text: as a person types it.
        kind: look-up, comparison, arithmetic, count, superlative, filter, two hops, unknown or misspelt.
        gold: the right answer as SQL over the CSV files; empty where they hold none.
        any: whether one of its rows will do.
    """

    text: str
    kind: str
    gold: str = ""
    any: bool = False


def questions(half: Half) -> tuple[Question, ...]:
    """Sixty questions: of each kind every other one, in the order of a digest of the text."""
    path = Path(__file__).with_name("questions.yaml")
    every = [
        Question(one["ask"], one["kind"], one.get("gold", ""), one.get("any", False))
        for one in yaml.safe_load(path.read_text("utf-8"))
    ]
    every.sort(key=lambda one: (one.kind, hashlib.sha256(one.text.encode()).hexdigest()))
    return tuple(every[0 if half == "work" else 1 :: 2])


def open_tables(folder: Path) -> sqlite3.Connection:
    """The CSV files as tables in memory; columns compare as numbers where all of their values are some."""
    connection = sqlite3.connect(":memory:")
    for table, header in HEADERS.items():
        with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file))[1:]
        columns = ", ".join(f"{name} NUMERIC" if name in NUMBERS else name for name in header)
        connection.execute(f"CREATE TABLE {table} ({columns})")
        marks = ", ".join("?" * len(header))
        cells = [[cell or None for cell in line] for line in lines]
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", cells)  # noqa: S608 names of our own
    return connection


NUMBERS = frozenset({"area_km2", "population", "latitude", "longitude", "elevation_ft"})


def gold_rows(question: Question, tables: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The right answer's rows; none for a question that the tables do not answer."""
    return tables.execute(question.gold).fetchall() if question.gold else []
