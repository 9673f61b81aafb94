"""Excel by openpyxl: a table a sheet, with the values that were computed when it was saved."""

import io
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from openpyxl import load_workbook
from openpyxl.utils import column_index_from_string

from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import Contents, Unreadable, open_archive, read_cells, read_member
from services.retriever.markup import clean_line
from services.retriever.tables import MAX_COLUMNS, MAX_HEADER_ROWS, MAX_NAME_CHARS

MAX_SHEETS = 200
MAX_ROWS = 50_000
# Cells of a column that are one: "A3:A6".
_MERGED = re.compile(rb'<(?:\w{1,20}:)?mergeCell\s[^<>]{0,200}?ref="([A-Z]{1,3})(\d{1,7}):\1(\d{1,7})"')


def read(content: bytes, title: str) -> Contents:
    """The sheets, each a table that is named by it; raises as `formats.read`."""
    with open_archive(content) as archive, warnings.catch_warnings():
        # Of lost styles and extensions; only values are read.
        warnings.simplefilter("ignore")
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        own_title = clean_line(book.properties.title or "", MAX_TITLE_CHARS)
        if len(book.worksheets) > MAX_SHEETS:
            raise Unreadable(f"it holds {len(book.worksheets):,} sheets, more than {MAX_SHEETS}")
        sections = tuple(
            # The reader of rows leaves out which cells are merged.
            _sheet(sheet, title or own_title, _merged(read_member(archive, sheet._worksheet_path)))
            for sheet in book.worksheets
        )
        book.close()
    return Contents(own_title, sections)


def _sheet(sheet: Any, title: str, merged: dict[int, dict[int, int]]) -> Extraction:
    # The sheet's declared size is a guess of its writer, and may be a million empty columns.
    sheet.reset_dimensions()
    rows = list(_rows(sheet, merged))
    names, heading = list(filter(None, (title, sheet.title))), _heading(rows)
    if len(": ".join((*names, *heading))) > 2 * MAX_NAME_CHARS:
        heading = []
    return read_cells(rows[len(heading) :], ": ".join((*names, *heading)), title)


def _merged(xml: bytes) -> dict[int, dict[int, int]]:
    """By its first row, each column's merged cells: the column's index and the last row."""
    merged: dict[int, dict[int, int]] = defaultdict(dict)
    for column, first, last in _MERGED.findall(xml):
        merged[int(first)][column_index_from_string(column.decode()) - 1] = int(last)
    return merged


def _heading(rows: list[list[str]]) -> list[str]:
    """The texts of the rows above a table's header that hold one text, no further right than the header begins."""
    above = next((number for number, row in enumerate(rows[: MAX_HEADER_ROWS + 1]) if sum(map(bool, row)) > 1), 0)
    if len(rows) < above + 2 or max(map(_first, rows[:above]), default=0) > _first(rows[above]):
        return []
    return [row[_first(row)] for row in rows[:above]]


def _first(row: list[str]) -> int:
    return next(column for column, cell in enumerate(row) if cell)


def _rows(sheet: Any, merged: dict[int, dict[int, int]]) -> Iterator[list[str]]:
    """The rows that hold a value, merged cells filled downwards; raises Unreadable where there are more, or wider ones,
    than may be.
    """
    # By column, a merged cell's text and its last row.
    hanging: dict[int, tuple[str, int]] = {}
    values = sheet.iter_rows(max_row=MAX_ROWS + 1, max_col=MAX_COLUMNS + 1, values_only=True)
    for number, row in enumerate(values, 1):
        cells = ["" if value is None else str(value) for value in row]
        if any(value is not None for value in row[MAX_COLUMNS:]):
            raise Unreadable(f"a sheet holds more than {MAX_COLUMNS} columns")
        hanging |= {
            column: (cells[column], last) for column, last in merged.get(number, {}).items() if column < len(cells)
        }
        if not any(cells):
            continue
        if number > MAX_ROWS:
            raise Unreadable(f"a sheet holds more than {MAX_ROWS:,} rows")
        for column, (text, last) in hanging.items():
            if number <= last and not cells[column]:
                cells[column] = text
        yield cells
