"""Data tables of a page, in Markdown.

A table goes to the generator in readable form: spans filled in, so that every row stands by itself, under a name and a
header that are repeated wherever the table is split.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.retriever.markup import clean_line

# Of all tables of a page. ElectricSheep keeps 4,000 (section 4.1); a long ranking needs more to be searched.
MAX_TABLE_CHARS = 60_000
MAX_TABLES = 200
MAX_CELLS = 20_000
# Of a document that is to be found whole, so many times as much as of a page that is searched for one question.
OF_DOCUMENT = 32
MAX_COLUMNS = 64
# HTML allows a cell 1,000 columns; a few of that size would fill the memory. Rows must be there to be spanned.
MAX_SPAN = 50
MAX_ROWS = 65_534
MAX_CELL_CHARS = 500
MAX_NAME_CHARS = 160
MAX_HEADER_ROWS = 3

_HIDDEN = ["script", "style", "noscript", "template", "button", "footer", "select", "svg"]
# Sort keys and the like, and Wikipedia's footnote marks.
_INVISIBLE = "sup.reference, [hidden], [style*='display:none'], [style*='display: none']"
_PRESENTATION = frozenset({"presentation", "none"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table in Markdown: its name, an empty line, the header row, the header rule, then one line a row.

    Attributes:
        markdown: the whole of it, without a newline at the end.
        head: number of characters before the first row.
    """

    markdown: str
    head: int

    @property
    def rows(self) -> int:
        """How many rows stand below the header."""
        return self.markdown.count("\n", self.head) + 1


def find_tables(document: LexborHTMLParser, page: str = "", *, times: int = 1) -> tuple[tuple[Table, ...], str]:
    """The data tables of a document, in its order, up to `MAX_TABLE_CHARS`: the last is cut to the rows that fit.

    With them comes in words what more there was of tables or rows, empty for nothing. Omits empty tables and those for
    layout, which hold a table, have such a role, or a single row or column. A table is named by its caption or the
    heading before it, and by the page's name.

    Args:
        times: how many times a page's bounds are allowed.
    """
    if document.root is None or document.css_first("table") is None:
        return (), ""
    document.root.strip_tags(_HIDDEN, recursive=True)
    for node in document.css(_INVISIBLE):
        node.decompose()
    layout = {node.mem_id for node in document.css("table:has(table)")}
    tables: list[Table] = []
    heading: LexborNode | None = None
    max_chars, max_cells, max_tables = (times * bound for bound in (MAX_TABLE_CHARS, MAX_CELLS, MAX_TABLES))
    chars, cells = max_chars, max_cells
    is_cut = False
    for node in document.css("h1, h2, h3, h4, h5, h6, table"):
        if node.tag != "table":
            heading = node
            continue
        if node.mem_id in layout or node.attributes.get("role") in _PRESENTATION:
            continue
        if len(tables) == max_tables or chars <= 0 or cells <= 0:
            is_cut = True
            break
        name = next(filter(None, (_text(label, MAX_NAME_CHARS) for label in (node.css_first("caption"), heading))), "")
        header, rows, is_whole = read_grid(node, cells)
        cells -= max(1, len(header) * (len(rows) + 1))
        table = to_markdown(_name(page, name), header, rows, chars)
        is_cut |= not is_whole or len(rows) > (0 if table is None else table.rows)
        if table is not None:
            tables.append(table)
            chars -= len(table.markdown)
    limits = f"{max_chars:,} characters, {max_cells:,} cells or {max_tables:,} tables"
    return tuple(tables), f"tables cut at {limits}" if is_cut else ""


def read_grid(node: LexborNode, max_cells: int) -> tuple[list[str], list[list[str]], bool]:
    """Header and rows of a `<table>` as a rectangle, and whether these are all: spans filled, no empty row or column.

    A header of several rows is joined column by column. A table with row headers only (first cells `<th>`, as in an
    infobox) has an empty header. Both are empty for less than two columns or two rows, header included.
    """
    grid, headings, is_whole = _fill_spans(node, max_cells)
    headings = [heading for row, heading in zip(grid, headings, strict=True) if any(row)]
    rows = _rectangle(grid)
    if not rows:
        return [], [], is_whole
    top = 0
    # Below the header a row of one text is the name of the section that follows.
    while (
        top < min(MAX_HEADER_ROWS, len(rows) - 1) and headings[top] == {"th"} and (not top or len(set(rows[top])) > 1)
    ):
        top += 1
    if top == 0:
        if {"th", "td"} in headings:
            return [""] * len(rows[0]), rows, is_whole
        top = 1
    header = [" / ".join(dict.fromkeys(filter(None, column))) for column in zip(*rows[:top], strict=True)]
    return header, rows[top:], is_whole


def _rectangle(grid: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows without empty rows and columns, filled up to one length; none for less than two rows or columns."""
    width = max(map(len, grid), default=0)
    columns = [column for column in range(width) if any(column < len(row) and row[column] for row in grid)]
    rows = [[row[column] if column < len(row) else "" for column in columns] for row in grid if any(row)]
    return rows if len(columns) >= 2 and len(rows) >= 2 else []


def to_markdown(name: str, header: Sequence[str], rows: Sequence[Sequence[str]], max_chars: int) -> Table | None:
    """The table of at most `max_chars` characters, or `None` when it is empty or not one row fits."""
    title = f"{name}\n\n" if name else ""
    head = f"{title}{_line(header)}\n|{' --- |' * len(header)}\n"
    lines, size = [], len(head) - 1
    for row in rows:
        line = _line(row)
        size += len(line) + 1
        if size > max_chars:
            break
        lines.append(line)
    return Table(head + "\n".join(lines), len(head)) if lines else None


def table_of(name: str, rows: Sequence[Sequence[str]]) -> Table | None:
    """A table of a file's cells, all of them, the first row its header; `None` for less than two rows or columns.

    Rows may be of different lengths.
    """
    lines = _rectangle([[_escape(clean_line(cell, len(cell))) for cell in row] for row in rows])
    return to_markdown(clean_line(name, 2 * MAX_NAME_CHARS), lines[0], lines[1:], sys.maxsize) if lines else None


def split_rows(table: Table, max_chars: int, start: int = -1, end: int = -1) -> list[tuple[int, int, int]]:
    """Cut a table, or the part of it from `start` to `end`, into pieces of whole rows.

    Returns:
        `(head, start, end)` a piece, whose text is `markdown[:head] + markdown[start:end]`: the head is repeated in
        all, or in none (0) where it would fill more than half of `max_chars`. Only a row that is too long for a piece
        of its own is cut.
    """
    markdown = table.markdown
    start, end = (start, end) if start >= 0 else (table.head, len(markdown))
    head = table.head
    if 2 * head > max_chars:
        head, start = 0, 0 if start == table.head else start
    room = max_chars - head
    pieces: list[tuple[int, int, int]] = []
    first = last = start
    for row_start, row_end in _lines(markdown, start, end):
        if row_end - first > room and last > first:
            pieces.append((head, first, last))
            first = row_start
        while row_end - first > room:
            pieces.append((head, first, first + room))
            first += room
        last = row_end
    if last > first:
        pieces.append((head, first, last))
    return pieces


def _fill_spans(node: LexborNode, max_cells: int) -> tuple[list[list[str]], list[set[str]], bool]:
    """The texts of each row's cells, and their tags, the table's head `th` alone; and whether all rows are there."""
    for block in node.css("br, div, li, p, dt, dd, h1, h2, h3, h4, h5, h6"):
        # Cells are read without a separator, lest H<sub>2</sub>O falls apart; what starts a line needs one.
        block.insert_before(" ")
        block.insert_after(" ")
    grid: list[list[str]] = []
    headings: list[set[str]] = []
    # By column, the text of a cell above that spans down, and the number of rows that it still fills.
    hanging: dict[int, tuple[str, int]] = {}
    group_before, is_whole = 0, True
    for group, in_head, row_node in _rows(node):
        if group != group_before:
            hanging, group_before = {}, group
        row: list[str] = []
        spans: dict[int, tuple[str, int]] = {}
        tags: set[str] = set()
        for cell in row_node.iter():
            if cell.tag not in ("td", "th"):
                continue
            _hang(row, hanging)
            text = _escape(_text(cell, MAX_CELL_CHARS))
            across, down = max(1, _span(cell, "colspan", MAX_SPAN)), _span(cell, "rowspan", MAX_ROWS)
            if row or text or cell.tag == "th":
                # An empty corner is no cell of data.
                tags.add(cell.tag)
            is_whole &= not text or len(row) < MAX_COLUMNS
            for _ in range(min(across, MAX_COLUMNS - len(row))):
                if down != 1:
                    # 0 means: to the end of the row group.
                    spans[len(row)] = (text, (down or MAX_ROWS) - 1)
                row.append(text)
        _hang(row, hanging, to_end=True)
        hanging = {column: (text, more - 1) for column, (text, more) in hanging.items() if more > 1} | spans
        max_cells -= max(1, len(row))
        if max_cells < 0:
            return grid, headings, False
        grid.append(row)
        headings.append({"th"} if in_head else tags)
    return grid, headings, is_whole


def _hang(row: list[str], hanging: dict[int, tuple[str, int]], *, to_end: bool = False) -> None:
    last = max(hanging, default=-1) if to_end else -1
    while len(row) in hanging or len(row) <= last:
        row.append(hanging.get(len(row), ("", 0))[0])


def _rows(table: LexborNode) -> Iterator[tuple[int, bool, LexborNode]]:
    """Number of the row group, whether it is the table's head, and the row."""
    for group, part in enumerate(table.iter()):
        if part.tag == "tr":
            yield 0, False, part
        elif part.tag in ("thead", "tbody", "tfoot"):
            yield from ((group, part.tag == "thead", row) for row in part.iter() if row.tag == "tr")


def _text(node: LexborNode | None, max_chars: int) -> str:
    return clean_line(node.text(), max_chars) if node else ""


def _span(cell: LexborNode, attribute: str, most: int) -> int:
    value = (cell.attributes.get(attribute) or "1").strip()
    # Ten digits are more than any span, and parsing more is quadratic.
    return min(int(value[:10]), most) if value.isascii() and value.isdigit() else 1


def _escape(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|")


def _name(page: str, table: str) -> str:
    return clean_line(": ".join(dict.fromkeys(filter(None, (page, table)))), 2 * MAX_NAME_CHARS)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _lines(markdown: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        newline = markdown.find("\n", start, end)
        yield start, newline if newline >= 0 else end
        start = newline + 1 if newline >= 0 else end
