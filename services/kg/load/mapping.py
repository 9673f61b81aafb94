"""CSV and JSONL files of one's own, by a YAML file that says which of their columns go where.

    domain: movie
    tables:
      - table: movie
        columns:
          movie_id: {slug: [Name, Released]}   # an identifier made of these columns
          title: Name                          # a column of the file, by its header or its key in the JSON
          release_date: Released
          revenue: figures.gross               # a key within an object
          original_language: {value: fr}       # the same for all rows
      - table: movie_genre
        columns:
          movie_id: {slug: [Name, Released]}
          genre: {column: Genres, split: ","}  # one row for each part

Values are read by the type of the table's column: dates are ISO 8601 or 20240228, complete or not. A row whose keys are
empty is skipped and reported. What the tables name (titles, companies, artists) is found by name afterwards.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from sqlalchemy import Boolean, Column, Float, Integer, Table

from services.kg.domains import CATALOGUE
from services.kg.load.errors import BadMapping, BadRow
from services.kg.load.files import Line, lines, records, suffix
from services.kg.load.graph import Graph
from services.kg.load.identity import slug
from services.kg.load.values import day, moment, number, text, truth, whole
from services.kg.store.tables import stated_total

MAX_MAPPING_BYTES = 256 * 1024
TABLES: dict[str, dict[str, Table]] = {
    domain.name: {**domain.tables, stated_total.name: stated_total} for domain in CATALOGUE.domains.values()
}
_DATES = frozenset({"release_date", "birthday", "date", "begin_date", "end_date", "start", "end"})
_MOMENTS = frozenset({"at"})
_UPPER = frozenset({"ticker"})

Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FromColumn(_Strict):
    """A column of the file; `split` makes a row of each part."""

    column: Name
    split: str | None = Field(None, min_length=1, max_length=5)


class Constant(_Strict):
    """The same value for all rows."""

    value: str | int | float | bool


class Slug(_Strict):
    """An identifier of the words of these columns."""

    slug: tuple[Name, ...] = Field(min_length=1, max_length=6)


ColumnSource = FromColumn | Constant | Slug


class TableMapping(_Strict):
    """What one table gets of each row."""

    table: Name
    columns: dict[Name, ColumnSource] = Field(min_length=1, max_length=60)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("columns"), dict):
            columns = {key: {"column": one} if isinstance(one, str) else one for key, one in value["columns"].items()}
            return {**value, "columns": columns}
        return value

    @model_validator(mode="after")
    def _at_most_one_split(self) -> "TableMapping":
        if sum(isinstance(one, FromColumn) and one.split is not None for one in self.columns.values()) > 1:
            raise ValueError("only one column of a table can be split")
        return self


class _File(_Strict):
    domain: Literal["movie", "finance", "music", "sports", "open"]
    tables: tuple[TableMapping, ...] = Field(min_length=1, max_length=20)

    @model_validator(mode="after")
    def _tables_exist(self) -> "_File":
        for mapped in self.tables:
            table = TABLES[self.domain].get(mapped.table)
            if table is None:
                raise ValueError(
                    f"domain {self.domain} has no table {mapped.table!r}: {', '.join(TABLES[self.domain])}"
                )
            unknown = [name for name in mapped.columns if name not in table.c]
            if unknown:
                raise ValueError(f"table {table.name} has no column {unknown[0]!r}: {', '.join(table.c.keys())}")
            missing = [
                column.name
                for column in table.c
                if not column.nullable and column.default is None and column.name not in mapped.columns
            ]
            if missing:
                raise ValueError(f"table {table.name} needs {', '.join(missing)}")
        return self


class Mapping:
    """A mapping file that was read and found valid. Make one with `read`."""

    def __init__(self, content: _File, digest: str) -> None:
        self.domain = content.domain
        self.digest = digest
        self._tables = [(TABLES[content.domain][mapped.table], mapped.columns) for mapped in content.tables]

    @staticmethod
    def read(path: Path) -> "Mapping":
        """The mapping in a YAML file.

        Raises:
            BadMapping: it is no YAML, or names what is not there; the message says what and where.
        """
        try:
            raw = path.read_bytes()
            if len(raw) > MAX_MAPPING_BYTES:
                raise BadMapping(f"{path} is longer than {MAX_MAPPING_BYTES // 1024} KiB")
            content = _File.model_validate(yaml.safe_load(raw))
        except OSError as error:
            raise BadMapping(f"{path} cannot be read: {error.strerror}") from None
        except (yaml.YAMLError, RecursionError) as error:
            raise BadMapping(f"{path} is no YAML: {str(error)[:200]}") from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"] if part not in ("FromColumn", "Constant", "Slug"))
            raise BadMapping(f"{path}: {place or 'the file'}: {first['msg']}") from None
        return Mapping(content, hashlib.sha256(raw).hexdigest())

    def load(
        self, graph: Graph, path: Path, bad: Callable[[int, BadRow], None], done: Callable[[str, int], None]
    ) -> None:
        """Put the rows of a file."""
        for line, row in _rows(path, bad):
            try:
                for table, columns in self._tables:
                    for values in _values(table, columns, row):
                        graph.put(table, **values)
                        for column in ("date", "at"):
                            if column in values and table.name in {"price_daily", "price_minute", "billboard"}:
                                graph.seen(self.domain, values[column])
                done(self.domain, line.end)
            except BadRow as error:
                bad(line.number, error)


def _rows(path: Path, bad: Callable[[int, BadRow], None]) -> Iterator[tuple[Line, dict[str, Any]]]:
    if suffix(path) in {".csv", ".tsv"}:
        yield from records(path, csv.excel_tab if suffix(path) == ".tsv" else csv.excel)
        return
    for line in lines(path):
        try:
            row = json.loads(line.checked())
            if not isinstance(row, dict):
                raise BadRow("", "is no JSON object")
        except BadRow as error:
            bad(line.number, error)
        except (ValueError, RecursionError):
            bad(line.number, BadRow("", "is no JSON"))
        else:
            yield line, row


def _values(table: Table, columns: dict[str, ColumnSource], row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    split = next(
        ((name, one) for name, one in columns.items() if isinstance(one, FromColumn) and one.split is not None), None
    )
    fixed = {
        name: _typed(table.c[name], _stated(one, row)) for name, one in columns.items() if not split or name != split[0]
    }
    if split is None:
        yield _checked(table, fixed)
        return
    name, source = split
    for part in str(_stated(source, row) or "").split(source.split):
        if part.strip():
            yield _checked(table, fixed | {name: _typed(table.c[name], part.strip())})


def _stated(source: ColumnSource, row: dict[str, Any]) -> object:
    if isinstance(source, Constant):
        return source.value
    if isinstance(source, Slug):
        parts = [text(_cell(row, column)) for column in source.slug]
        return slug("-".join(part for part in parts if part)) if parts[0] else None
    return _cell(row, source.column)


def _cell(row: dict[str, Any], column: str) -> object:
    if column in row:
        return row[column]
    value: object = row
    for key in column.split("."):
        if not isinstance(value, dict) or key not in value:
            raise BadRow(column, "is not a column of the file")
        value = value[key]
    return value


def _typed(column: Column[Any], value: object) -> Any:
    if column.name in _DATES:
        return day(value, column.name)
    if column.name in _MOMENTS:
        return moment(value, column.name)
    if isinstance(column.type, Boolean):
        return truth(value, column.name)
    if isinstance(column.type, Integer):
        return whole(value, column.name)
    if isinstance(column.type, Float):
        return number(value, column.name)
    plain = text(value)
    return plain.upper() if plain and column.name in _UPPER else plain


def _checked(table: Table, values: dict[str, Any]) -> dict[str, Any]:
    for column in table.c:
        if not column.nullable and column.default is None and values.get(column.name) is None:
            raise BadRow(column.name, "is missing")
    return values
