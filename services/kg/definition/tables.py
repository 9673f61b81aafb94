"""`tables.yaml` as SQLAlchemy's tables."""

from collections.abc import Mapping
from typing import Any

from pydantic import RootModel
from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

from services.kg.definition.folder import BrokenDomain, Content, Fault, Folder
from services.kg.definition.schema import Name, TablePart

TYPES: Mapping[str, type[TypeEngine[Any]]] = {
    "text": Text,
    "date": Text,
    "integer": Integer,
    "bigint": BigInteger,
    "number": Float,
    "flag": Boolean,
}


class TablesFile(RootModel[dict[Name, TablePart]]):
    """`tables.yaml`: name -> table."""


def read_tables(folder: Folder, metadata: MetaData) -> dict[str, Table]:
    """The tables of a domain.

    Raises:
        BrokenDomain: the file cannot be read, or names a column or a table that it must not.
    """
    file, content = folder.model("tables.yaml", TablesFile)
    faults = [fault for name, part in file.root.items() for fault in _faults(name, part, content, metadata)]
    if faults:
        raise BrokenDomain(folder.name, faults)
    return {name: _table(name, part, metadata) for name, part in file.root.items()}


def _faults(name: str, part: TablePart, content: Content, metadata: MetaData) -> list[Fault]:
    faults = []
    if name in metadata.tables:
        faults.append(content.fault((name,), f"there is another table {name}"))
    uses = {("key",): part.key} | {("indexes", index): columns for index, columns in part.indexes.items()}
    for place, columns in uses.items():
        for column in columns:
            if column not in part.columns:
                known = ", ".join(part.columns)
                faults.append(content.fault((name, *place), f"there is no column {column}; there are {known}"))
    return faults


def _table(name: str, part: TablePart, metadata: MetaData) -> Table:
    columns: list[Column[Any]] = [
        Column(
            column,
            TYPES[one.type],
            primary_key=column in part.key,
            autoincrement=False,
            nullable=not one.required and column not in part.key,
            default=one.default,
            info={"type": one.type},
        )
        for column, one in part.columns.items()
    ]
    indexes = [Index(index, *of) for index, of in part.indexes.items()]
    return Table(name, metadata, *columns, *indexes)
