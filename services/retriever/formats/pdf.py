"""PDF by PDFium: text page by page, lines joined to paragraphs, ruled tables as tables.

Each page is a section of its own, so that a passage lies on one page and a citation can name it.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pypdfium2

from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import MAX_CHARS, Contents, Section, Unreadable
from services.retriever.formats.ruled import ruled_tables
from services.retriever.markup import clean_line, clean_text
from services.retriever.tables import Table

MAX_PAGES = 5_000
# PDFium's mark of a hyphen that parts a word at the end of a line.
_PARTED = re.compile("\ufffe\\s*")
# A line that is this much of the page's usual width is full: its paragraph goes on in the next.
_FULL = 0.75
# What a new paragraph or entry of a list begins with.
_BEGINS = re.compile(r"(?:[\u2022\u2023\u25aa\u25cf\u2013\u2014*-]|\(?[0-9ivx]{1,4}[.)])\s")
# A page's first and last line are running heads where so many pages share them, figures aside.
_MIN_REPEATED = 4
_REPEATED = 0.3
_MIN_LINES = 3
_FIGURES = re.compile(r"[0-9]+|\b[ivxlc]+\b")


def read(content: bytes, title: str) -> Contents:
    """The pages of a PDF; raises as `formats.read`."""
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        raise Unreadable("it is encrypted" if "assword" in str(error) else "it is damaged: no PDF") from error
    try:
        if len(document) > MAX_PAGES:
            raise Unreadable(f"it has {len(document):,} pages, more than {MAX_PAGES:,}")
        own_title = clean_line(document.get_metadata_value("Title"), MAX_TITLE_CHARS)
        pages = list(_pages(document, title or own_title))
    finally:
        document.close()
    heads = _running_heads([lines for lines, _ in pages])
    sections = tuple(
        Section(Extraction(_paragraphs(_body(lines, heads)), tables, title or own_title), page)
        for page, (lines, tables) in enumerate(pages, 1)
    )
    return Contents(own_title, sections)


def _pages(document: pypdfium2.PdfDocument, name: str) -> Iterator[tuple[list[str], tuple[Table, ...]]]:
    """Lines and tables, page by page."""
    chars = 0
    for number in range(len(document)):
        try:
            page = document[number]
        except pypdfium2.PdfiumError:
            # A damaged page; the others keep their numbers.
            yield [], ()
            continue
        text = page.get_textpage()
        try:
            content = text.get_text_range()
            tables = tuple(ruled_tables(page, text, name))
        finally:
            text.close()
            page.close()
        chars += len(content)
        if chars > MAX_CHARS:
            raise Unreadable(f"it holds more than {MAX_CHARS:,} characters")
        yield [line.strip() for line in clean_text(_PARTED.sub("", content)).split("\n")], tables


def _running_heads(pages: list[list[str]]) -> frozenset[str]:
    """The shapes of first and last lines that many pages share: a chapter's name, a page's number."""
    shapes = Counter(shape for lines in pages for shape in {_shape(line) for line in (*lines[:1], *lines[-1:])})
    least = max(_MIN_REPEATED, _REPEATED * len(pages))
    return frozenset(shape for shape, count in shapes.items() if count >= least)


def _body(lines: list[str], heads: frozenset[str]) -> list[str]:
    """The page without its running heads; a page of few lines has none."""
    if len(lines) < _MIN_LINES:
        return lines
    return lines[_shape(lines[0]) in heads : len(lines) - (_shape(lines[-1]) in heads)]


def _shape(line: str) -> str:
    return _FIGURES.sub("#", line)


def _paragraphs(lines: list[str]) -> str:
    """Lines, joined where their paragraph goes on, since a line break ends a sentence for the chunkers."""
    widths = sorted(len(line) for line in lines if line)
    if not widths:
        return ""
    usual = statistics.quantiles(widths, n=10, method="inclusive")[-1] if len(widths) > 1 else widths[0]
    text = lines[0]
    for before, line in pairwise(lines):
        goes_on = len(before) >= _FULL * usual and line and not _BEGINS.match(line)
        text += f" {line}" if goes_on else f"\n{line}"
    return text
