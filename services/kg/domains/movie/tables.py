"""The tables of this domain by name, for loaders that name them in Python."""

from sqlalchemy import Table

from services.kg.store.base import METADATA


def __getattr__(name: str) -> Table:
    if name not in METADATA.tables:
        raise AttributeError(name)
    return METADATA.tables[name]
