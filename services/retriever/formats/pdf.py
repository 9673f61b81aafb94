"""PDF by PDFium: text page by page, lines joined to paragraphs, ruled tables as tables.

Each page is a section of its own, so that a passage lies on one page and a citation can name it.
"""

import ctypes
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise

import pypdfium2
import pypdfium2.raw as pdfium

from services.kit.text.cutting import UNSPACED
from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import MAX_CHARS, Contents, Unreadable
from services.retriever.formats.ruled import ruled_tables
from services.retriever.markup import clean_line, clean_text
from services.retriever.tables import Table

MAX_PAGES = 5_000
# PDFium's mark of a hyphen at the end of a line, whose break it leaves out, and ours, which `clean_text` keeps.
_HYPHEN, _PARTED = "\ufffe", "\ue000"
# A number or a name keeps its hyphen, COVID-19 or Notre-Dame, and a word in capitals does not.
_KEEPS_HYPHEN = re.compile("-[0-9]|(?<![A-Z]{2})-[A-Z]")
# Digits, with a sign between them where the rear ones may be a power.
_DIGITS = re.compile(r"[0-9]+[-+\u2212]?[0-9]+")
# Stands behind the raised digits of a fraction, which are no power.
_FRACTION = "\u2044"
# Raised digits are smaller than this share of the others, and their feet this share of a size higher.
_SMALLER, _HIGHER = 0.9, 0.1
# A line that is this much of the page's usual width is full: its paragraph goes on in the next.
_FULL = 0.75
# What a new paragraph or entry of a list begins with.
_BEGINS = re.compile(r"(?:[\u2022\u2023\u25aa\u25cf\u2013\u2014*-]|\(?[0-9ivx]{1,4}[.)])\s")
# Two lines that a space would part within a word or a range of years.
_UNBROKEN = re.compile(rf"[{UNSPACED}]\n[{UNSPACED}]|[0-9][-\u2013]\n[0-9]")
# A page's first and last line are running heads where so many pages share them.
_MIN_REPEATED = 4
_REPEATED = 0.3
_MIN_LINES = 3
# Numbers that may be a page's.
_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,4}(?![0-9])")
_MAX_NUMBERS = 8
_ROMAN = re.compile(r"[ivxlc]+")


def read(content: bytes, title: str) -> Contents:
    """The pages of a PDF; raises as `formats.read`."""
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):
            raise Unreadable("it is encrypted") from error
        raise
    try:
        if len(document) > MAX_PAGES:
            raise Unreadable(f"it has {len(document):,} pages, more than {MAX_PAGES:,}")
        own_title = clean_line(document.get_metadata_value("Title"), MAX_TITLE_CHARS)
        pages = list(_pages(document, title or own_title))
    finally:
        document.close()
    heads = _running_heads([lines for lines, _ in pages])
    sections = tuple(
        Extraction(_paragraphs(_body(lines, page, heads)), tables, title or own_title, page=page)
        for page, (lines, tables) in enumerate(pages, 1)
    )
    return Contents(own_title, sections)


def _pages(document: pypdfium2.PdfDocument, name: str) -> Iterator[tuple[list[str], tuple[Table, ...]]]:
    """Lines and tables, page by page."""
    chars = 0
    for number in range(len(document)):
        try:
            page = document[number]
            text = page.get_textpage()
        except pypdfium2.PdfiumError as error:
            raise Unreadable(f"its page {number + 1} is damaged") from error
        try:
            content = _with_powers(text)
            tables = tuple(ruled_tables(page, text, name))
        finally:
            text.close()
            page.close()
        chars += len(content)
        if chars > MAX_CHARS:
            raise Unreadable(f"it holds more than {MAX_CHARS:,} characters")
        content = content.replace(_PARTED, " ").replace(_HYPHEN, f"{_PARTED}\n")
        yield [line.strip() for line in clean_text(content).split("\n")], tables


def _with_powers(page: pypdfium2.PdfTextPage) -> str:
    """A page's text with ^ before digits that are raised behind others, or a space where they begin a fraction.

    It holds 1864^2 and no 18642.
    """
    text = page.get_text_range()
    pieces: list[str] = []
    copied = 0
    for digits in _DIGITS.finditer(text):
        size, foot = _place(page, digits.start())
        if _place(page, digits.end() - 1)[0] >= _SMALLER * size:
            continue
        for index in range(digits.start() + 1, digits.end()):
            raised_size, raised_foot = _place(page, index)
            if raised_size < _SMALLER * size and raised_foot > foot + _HIGHER * size:
                pieces += text[copied:index], " " if text[digits.end() :][:1] == _FRACTION else "^"
                copied = index
                break
    return "".join((*pieces, text[copied:]))


def _place(page: pypdfium2.PdfTextPage, index: int) -> tuple[float, float]:
    """The size of a character of the text, and where it stands above the page's foot."""
    char = pdfium.FPDFText_GetCharIndexFromTextIndex(page, index)
    across, above = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(page, char, across, above)
    return float(pdfium.FPDFText_GetFontSize(page, char)), above.value


def _running_heads(pages: list[list[str]]) -> frozenset[str]:
    """The forms of first and last lines that many pages share: a chapter's name, a page's number."""
    forms = Counter(
        form
        for page, lines in enumerate(pages, 1)
        for form in {form for line in (*lines[:1], *lines[-1:]) for form in _forms(line, page)}
    )
    least = max(_MIN_REPEATED, _REPEATED * len(pages))
    return frozenset(form for form, count in forms.items() if count >= least)


def _body(lines: list[str], page: int, heads: frozenset[str]) -> list[str]:
    """The page without its running heads; a page of few lines has none."""
    if len(lines) < _MIN_LINES:
        return lines
    has_head, has_foot = (not heads.isdisjoint(_forms(line, page)) for line in (lines[0], lines[-1]))
    return lines[has_head : len(lines) - has_foot]


def _forms(line: str, page: int) -> set[str]:
    """What a line shares with those of other pages: itself, or itself with a number counted from the page's.

    Other numbers are a room's or a sum's.
    """
    if _ROMAN.fullmatch(line):
        return {"#"}
    numbers = islice(_NUMBER.finditer(line), _MAX_NUMBERS)
    return {line, *(f"{line[: number.start()]}#{int(number[0]) - page}{line[number.end() :]}" for number in numbers)}


def _paragraphs(lines: list[str]) -> str:
    """Lines, joined where their paragraph goes on, since a line break ends a sentence for the chunkers."""
    widths = sorted(len(line) for line in lines if line)
    if not widths:
        return ""
    usual = statistics.quantiles(widths, n=10, method="inclusive")[-1] if len(widths) > 1 else widths[0]
    text = lines[0]
    for before, line in pairwise(lines):
        if before.endswith(_PARTED):
            text = (
                text.removesuffix(_PARTED) + ("-" if _KEEPS_HYPHEN.search(f"{before[-3:-1]}-{line[:1]}") else "") + line
            )
        elif len(before) < _FULL * usual or not line or _BEGINS.match(line):
            text += f"\n{line}"
        else:
            text += line if _UNBROKEN.search(f"{before[-2:]}\n{line[0]}") else f" {line}"
    return text.replace(_PARTED, "-")
