"""Tables of domains of one's own, a folder of CSV files each in `tables/`.

library      authors, their books, and who lent them
office       teams and who works there; vans that nothing tells apart
shop         orders and their lines; a year that names its row; guests aligned in columns, some of no known age
yard         ports of two countries, one called as its city; ships that sail there, and races of two ships
press        two tables that join a third by the same role; people whom people manage, by name
tours        small numbers for keys, called by what they are to a row; ends of a way; a value that is also a date
almanac      mills, space probes, elections, stews, episodes, flats, geysers: tables of little in common
academy      columns called as their table; numbers of unknown units, and those that number; brooks that are no rows
guild        people of a first and a last name, one without the last, who stand under the tag of their guild
coast        headers without gaps, Y and N, numbers in millions, several values in a cell, people named in another table
gym          abbreviations, a flag that says so, cells with slashes, a value that is called as a column
depot        trucks with several logs and checks each, told by a number sign; two columns in metres; what has not come
school       times, states and rows that a question means and a model's statement does not say; tutors' own phones
ferries, club, gallery      times of day; games of two players; painters, whose paintings are called as what they do
"""

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from lab.draft import graph
from services.kg.language.catalogue import Catalogue

TABLES = Path(__file__).parent / "tables"


def tables_of(domain: str) -> list[Path]:
    return sorted((TABLES / domain).glob("*.csv"))


@contextmanager
def drafted_graph(folder: Path, domain: str, data: Path | None = None) -> Iterator[tuple[Engine, Catalogue]]:
    """The graph of a domain as it is drafted, of its folder in `tables/` or of `data`, beside the bundled domains."""
    with graph.drafted_graph(domain, data or TABLES / domain, folder) as drafted:
        yield drafted


def write(folder: Path, name: str, rows: Sequence[Sequence[str]]) -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_lines(folder: Path, name: str, *lines: Any) -> Path:
    """A file of texts and of values as JSON, a line each."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in lines))
    return path
