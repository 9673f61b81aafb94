"""The graph of tables as they are drafted, nothing of it edited."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from lab.draft.folder import draft
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.language.catalogue import Catalogue
from services.kg.load import load
from services.kg.store.engine import open_store


@contextmanager
def drafted_graph(name: str, tables: Path, folder: Path) -> Iterator[tuple[Engine, Catalogue]]:
    """The graph of a domain as it is drafted of a folder of CSV files, beside the bundled domains; takes seconds.

    Args:
        folder: empty; the domain and its database lie there.

    Raises:
        DraftError: the files are no tables.
    """
    draft(name, sorted(tables.glob("*.csv")), folder / "domains")
    catalogue = read_catalogue(CATALOGUE, folder / "domains")
    url = f"sqlite:///{folder / 'kg.sqlite'}"
    writable = open_store(url, read_only=False)
    try:
        load(tables, writable, catalogue=catalogue)
    finally:
        writable.dispose()
    engine = open_store(url)
    try:
        yield engine, catalogue
    finally:
        engine.dispose()
