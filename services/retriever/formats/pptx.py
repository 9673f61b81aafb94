"""PowerPoint by python-pptx: a section a slide, its tables as tables, its notes after its text."""

import io
from collections.abc import Iterable, Iterator
from typing import Any

from pptx import Presentation

from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import Opened, Section, Unreadable, unpacked
from services.retriever.markup import clean_line, clean_text
from services.retriever.tables import Table, table_of

# Groups in groups; real slides have three at most.
MAX_DEPTH = 16


def read(content: bytes, title: str) -> Opened:
    """The slides; raises as `formats.read`."""
    unpacked(content).close()
    try:
        deck = Presentation(io.BytesIO(content))
        own = clean_line(deck.core_properties.title or "", MAX_TITLE_CHARS)
        sections = tuple(Section(_slide(slide, title or own), number) for number, slide in enumerate(deck.slides, 1))
    except Exception as error:  # python-pptx raises what lxml and zipfile do, and KeyError for a missing part
        raise Unreadable("it is damaged: no PowerPoint presentation") from error
    return Opened(own, sections)


def _slide(slide: Any, title: str) -> Extraction:
    texts: list[str] = []
    tables: list[Table] = []
    for shape in _shapes(slide.shapes):
        if shape.has_text_frame:
            texts.append(shape.text_frame.text)
        elif shape.has_table:
            rows = [[cell.text for cell in row.cells] for row in shape.table.rows]
            tables += filter(None, [table_of(title, rows)])
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        texts.append(slide.notes_slide.notes_text_frame.text)
    return Extraction(clean_text("\n\n".join(filter(None, texts))), tuple(tables), title)


def _shapes(shapes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < MAX_DEPTH:
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape
