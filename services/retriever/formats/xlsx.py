"""Excel by openpyxl: a table a sheet, with the values that were computed when it was saved."""

import io
import warnings
from collections.abc import Iterator
from typing import Any

from openpyxl import load_workbook

from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import Contents, Section, Unreadable, open_archive
from services.retriever.markup import clean_line, clean_text
from services.retriever.tables import MAX_COLUMNS, MAX_SHEET_CHARS, table_of

MAX_SHEETS = 200
MAX_ROWS = 50_000


def read(content: bytes, title: str) -> Contents:
    """The sheets, each a table that is named by it; raises as `formats.read`."""
    open_archive(content).close()
    try:
        with warnings.catch_warnings():
            # Of lost styles and extensions; only values are read.
            warnings.simplefilter("ignore")
            book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
            own_title = clean_line(book.properties.title or "", MAX_TITLE_CHARS)
            if len(book.worksheets) > MAX_SHEETS:
                raise Unreadable(f"it holds {len(book.worksheets):,} sheets, more than {MAX_SHEETS}")
            sections = tuple(_sheet(sheet, title or own_title) for sheet in book.worksheets)
            book.close()
    except Unreadable:
        raise
    except Exception as error:  # openpyxl raises its XML reader's errors, and KeyError for a missing part
        raise Unreadable("it is damaged: no Excel workbook") from error
    return Contents(own_title, sections)


def _sheet(sheet: Any, title: str) -> Section:
    # The sheet's declared size is a guess of its writer, and may be a million empty columns.
    sheet.reset_dimensions()
    rows = list(_rows(sheet))
    name = ": ".join(filter(None, (title, sheet.title)))
    table = table_of(name, rows)
    if table is not None and table.rows < len(rows) - 1:
        raise Unreadable(f"a sheet holds more than {MAX_SHEET_CHARS:,} characters")
    if table is None:
        # A list, which has no columns to lose.
        return Section(Extraction(clean_text("\n".join(" ".join(filter(None, row)) for row in rows)), title=title))
    return Section(Extraction("", (table,), title))


def _rows(sheet: Any) -> Iterator[list[str]]:
    """The rows that hold a value; raises Unreadable where there are more, or wider ones, than may be."""
    values = sheet.iter_rows(max_row=MAX_ROWS + 1, max_col=MAX_COLUMNS + 1, values_only=True)
    for number, row in enumerate(values, 1):
        cells = ["" if value is None else str(value) for value in row]
        if any(value is not None for value in row[MAX_COLUMNS:]):
            raise Unreadable(f"a sheet holds more than {MAX_COLUMNS} columns")
        if all(value is None for value in row):
            continue
        if number > MAX_ROWS:
            raise Unreadable(f"a sheet holds more than {MAX_ROWS:,} rows")
        yield cells
