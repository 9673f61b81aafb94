"""Ruled tables of a PDF's page: lines that cross make a grid, and the texts in its fields are the cells.

A table without lines between its columns stays text, a line a row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise

import pypdfium2
import pypdfium2.raw as pdfium

from services.retriever.tables import Table, table_of

# Points (1/72 inch): a rule is thinner than this, and rules that are no further apart touch.
THIN = 2.5
SHORT = 8.0
# A page with more is a drawing. Embedded drawings have coordinates of their own and are ignored.
MAX_PATHS = 4_000
MAX_RULES = 1_000
MAX_CELLS = 2_000
# A chart has crossing lines as well, and few words between them.
FILLED = 0.5

# PDFium's mark of a hyphen at the end of a line, where a number goes on: COVID-19.
_HYPHEN = re.compile("\ufffe\\s*(?=[0-9])")

# Left, bottom, right, top.
Box = tuple[float, float, float, float]


@dataclass(slots=True)
class _Grid:
    box: Box
    rules: list[Box] = field(default_factory=list)

    def lines(self, across: bool) -> list[float]:
        """Places of the horizontal rules from the top down, or of the vertical ones from the left."""
        low, high = (1, 3) if across else (0, 2)
        places = sorted((rule[low] + rule[high]) / 2 for rule in self.rules if rule[high] - rule[low] < THIN)
        apart = [place for before, place in pairwise([-THIN * 3, *places]) if place - before > THIN]
        return apart[::-1] if across else apart


def ruled_tables(page: pypdfium2.PdfPage, text: pypdfium2.PdfTextPage, name: str) -> Iterator[Table]:
    """The tables of a page, named by the document.

    Args:
        text: of the page, open.
    """
    for grid in _grids(list(islice(_rules(page), MAX_RULES + 1))):
        across, down = grid.lines(True), grid.lines(False)
        if len(across) < 3 or len(down) < 3 or len(across) * len(down) > MAX_CELLS:
            continue
        rows = [
            [
                _HYPHEN.sub("-", text.get_text_bounded(left, bottom, right, top)).strip()
                for left, right in pairwise(down)
            ]
            for top, bottom in pairwise(across)
        ]
        if sum(bool(cell) for row in rows for cell in row) < FILLED * (len(across) - 1) * (len(down) - 1):
            continue
        if table := table_of(name, [row for band in rows for row in _split(band)]):
            yield table


def _rules(page: pypdfium2.PdfPage) -> Iterator[Box]:
    width, height = page.get_size()
    for path in islice(page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_PATH,), max_depth=1), MAX_PATHS):
        left, bottom, right, top = path.get_bounds()
        wide, high = right - left, top - bottom
        if (high < THIN and wide > SHORT) or (wide < THIN and high > SHORT):
            yield left, bottom, right, top
        elif SHORT < high < 0.9 * height and SHORT < wide < 0.95 * width:
            # A frame is four rules.
            yield left, bottom, right, bottom
            yield left, top, right, top
            yield left, bottom, left, top
            yield right, bottom, right, top


def _grids(rules: list[Box]) -> list[_Grid]:
    """Rules that touch, directly or through others."""
    if len(rules) > MAX_RULES:
        return []
    grids: list[_Grid] = []
    for rule in rules:
        union = _Grid(rule, [rule])
        others = []
        for grid in grids:
            if _touch(grid.box, union.box):
                union.box = _around(grid.box, union.box)
                union.rules += grid.rules
            else:
                others.append(grid)
        grids = [*others, union]
    return grids


def _around(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _touch(one: Box, other: Box) -> bool:
    return (
        one[0] <= other[2] + THIN
        and other[0] <= one[2] + THIN
        and one[1] <= other[3] + THIN
        and other[1] <= one[3] + THIN
    )


def _split(band: list[str]) -> list[list[str]]:
    """Rows between two rules: several where every cell has as many lines."""
    lines = [cell.splitlines() for cell in band]
    if len({len(cell) for cell in lines}) == 1:
        return [list(row) for row in zip(*lines, strict=True)]
    return [band]
