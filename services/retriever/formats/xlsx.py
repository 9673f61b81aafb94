"""Excel by openpyxl: a table a sheet, with the values that were computed when it was saved."""

import io
import warnings
from itertools import islice
from typing import Any

from openpyxl import load_workbook

from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import Contents, Section, Unreadable, open_archive
from services.retriever.markup import clean_line, clean_text
from services.retriever.tables import MAX_COLUMNS, table_of

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
            sections = tuple(_sheet(sheet, title or own_title) for sheet in islice(book.worksheets, MAX_SHEETS))
            book.close()
    except Exception as error:  # openpyxl raises its XML reader's errors, and KeyError for a missing part
        raise Unreadable("it is damaged: no Excel workbook") from error
    return Contents(own_title, sections)


def _sheet(sheet: Any, title: str) -> Section:
    # The sheet's declared size is a guess of its writer, and may be a million empty columns.
    sheet.reset_dimensions()
    values = sheet.iter_rows(max_row=MAX_ROWS, max_col=MAX_COLUMNS, values_only=True)
    rows = [["" if value is None else str(value) for value in row] for row in values if any(v is not None for v in row)]
    name = ": ".join(filter(None, (title, sheet.title)))
    table = table_of(name, rows)
    if table is None:
        # A list, which has no columns to lose.
        return Section(Extraction(clean_text("\n".join(" ".join(filter(None, row)) for row in rows)), title=title))
    return Section(Extraction("", (table,), title))
