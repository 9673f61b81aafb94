"""The tables of the bundled domains by name: `from tests.unit.kg.tables import movie`."""

from sqlalchemy import Table

from services.kg.domains import CATALOGUE


def __getattr__(name: str) -> Table:
    if name not in CATALOGUE.tables:
        raise AttributeError(name)
    return CATALOGUE.tables[name]
