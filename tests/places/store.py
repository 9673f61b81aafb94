"""A graph with the domain of places, loaded as `cragmesh kg load` does."""

import csv
from collections.abc import Container
from functools import cache
from pathlib import Path

from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.language.catalogue import Catalogue
from services.kg.load import load
from services.kg.store.engine import open_store
from tests.places import tables

DOMAINS = Path(__file__).with_name("domains")


@cache
def places() -> Catalogue:
    """The bundled domains and that of places."""
    return read_catalogue(CATALOGUE, DOMAINS)


def fill(folder: Path, *, countries: Container[str] | None = None) -> str:
    """The URL of a graph that holds the CSV files, which are left in `folder/csv`.

    Args:
        folder: an empty one.
        countries: ISO codes; rows of other countries are left out.
    """
    for path in tables.write(folder / "csv"):
        if countries is not None:
            _narrow(path, countries)
    url = f"sqlite:///{folder / 'kg.sqlite'}"
    engine = open_store(url, read_only=False)
    load(folder / "csv", engine, catalogue=places())
    engine.dispose()
    return url


def _narrow(path: Path, countries: Container[str]) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    place = header.index("country" if "country" in header else "iso")
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *(row for row in rows if row[place] in countries)])
