"""PowerPoint by python-pptx: a section a slide, its tables as tables, its notes after its text."""

import io
from collections.abc import Iterable, Iterator
from typing import Any

from pptx import Presentation

from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import Contents, open_archive, read_cells
from services.retriever.markup import clean_line, clean_text
from services.retriever.tables import Table

# Groups in groups; real slides have three at most.
MAX_DEPTH = 16


def read(content: bytes, title: str) -> Contents:
    """The slides; raises as `formats.read`."""
    open_archive(content).close()
    deck = Presentation(io.BytesIO(content))
    own_title = clean_line(deck.core_properties.title or "", MAX_TITLE_CHARS)
    return Contents(
        own_title, tuple(_slide(slide, title or own_title, page) for page, slide in enumerate(deck.slides, 1))
    )


def _slide(slide: Any, title: str, page: int) -> Extraction:
    texts: list[str] = []
    tables: list[Table] = []
    for shape in _shapes(slide.shapes):
        if shape.has_text_frame:
            texts.append(shape.text_frame.text)
        elif shape.has_table:
            cells = read_cells([[cell.text for cell in row.cells] for row in shape.table.rows], title, title)
            texts.append(cells.text)
            tables += cells.tables
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        texts.append(slide.notes_slide.notes_text_frame.text)
    return Extraction(clean_text("\n\n".join(filter(None, texts))), tuple(tables), title, page=page)


def _shapes(shapes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < MAX_DEPTH:
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape
