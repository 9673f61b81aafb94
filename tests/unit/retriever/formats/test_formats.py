"""Files as they lie about, and as an attacker makes them: what is read of each, on which page, and what is refused."""

import io
from collections.abc import Callable

import openpyxl
import pptx
import pytest

from services.retriever.formats import READERS, Unreadable, base, read
from tests.unit.retriever.formats.files import MAIL, assembled, docx, epub, packed, pdf

TABLE = (("Lamp", "Watts"), ("Harbour", "1,000"), ("Pier", "250"))
MARKDOWN = ("| Lamp | Watts |", "| Harbour | 1,000 |", "| Pier | 250 |")
BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'


def deck() -> bytes:
    presentation = pptx.Presentation()
    for title in ("First", "Second"):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = f"{title} slide"
    table = slide.shapes.add_table(3, 2, 0, 0, 9_000_000, 900_000).table
    for row, cells in enumerate(TABLE):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    slide.notes_slide.notes_text_frame.text = "Said aloud"
    presentation.core_properties.title = "Of the light"
    out = io.BytesIO()
    presentation.save(out)
    return out.getvalue()


def book() -> bytes:
    workbook = openpyxl.Workbook()
    workbook.active.title = "Lamps"
    for row in TABLE:
        workbook.active.append(row)
    workbook.create_sheet("List").append(["One column alone"])
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "pdf": lambda: pdf("First page.", "Second page."),
    "docx": lambda: docx("The keepers met at noon.", table=TABLE),
    "pptx": deck,
    "xlsx": book,
    "epub": lambda: epub("The Light", "It was built in 1864.", "It burned in 1901."),
    "mail": lambda: MAIL,
}


@pytest.mark.parametrize(
    ("kind", "title", "texts", "pages"),
    [
        ("pdf", "", ["First page.", "Second page."], [1, 2]),
        ("docx", "", ["The keepers met at noon.\n\nLamp\n\nWatts\n\nHarbour\n\n1,000\n\nPier\n\n250"], [0]),
        ("pptx", "Of the light", ["First slide", "Second slide\n\nSaid aloud"], [1, 2]),
        ("xlsx", "", ["", "One column alone"], [0, 0]),
        ("epub", "The Light", ["Chapter\n\nIt was built in 1864.", "Chapter\n\nIt burned in 1901."], [0, 0]),
        ("mail", "The lamp", ["Subject: The lamp\nAttached: lamp.png", "The lamp was repaired on Friday."], [0, 0]),
    ],
)
def test_text_is_read_with_its_pages(kind: str, title: str, texts: list[str], pages: list[int]) -> None:
    opened = read(FILES[kind](), kind)
    assert opened.title == title
    assert [section.page for section in opened.sections] == pages
    for section, text in zip(opened.sections, texts, strict=True):
        assert section.content.text.endswith(text)


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx"])
def test_tables_stay_tables(kind: str) -> None:
    tables = [table for section in read(FILES[kind](), kind, "Lamps").sections for table in section.content.tables]
    assert [line for line in tables[0].markdown.split("\n") if line in MARKDOWN] == list(MARKDOWN)
    assert tables[0].markdown.startswith("Lamps")


def ruled() -> bytes:
    rules = [f"40 {y} 200 0.5 re f" for y in (700, 720, 740, 760)] + [f"{x} 700 0.5 60 re f" for x in (40, 140, 240)]
    cells = [
        f"BT /F1 11 Tf {45 + 100 * column} {745 - 20 * row} Td ({cell}) Tj ET"
        for row, line in enumerate(TABLE)
        for column, cell in enumerate(line)
    ]
    stream = "\n".join((*rules, *cells))
    return assembled(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    )


def test_a_ruled_table_of_a_pdf_is_a_table() -> None:
    (section,) = read(ruled(), "pdf").sections
    assert [table.markdown.split("\n") for table in section.content.tables] == [
        [MARKDOWN[0], "| --- | --- |", *MARKDOWN[1:]]
    ]


def test_lines_of_a_paragraph_are_joined_and_running_heads_left_out() -> None:
    full = "The keeper of the harbour light wrote down every ship that"
    pages = [f"The Light\n{full}\npassed in year {number}.\n{number}" for number in range(1, 6)]
    texts = [section.content.text for section in read(pdf(*pages), "pdf").sections]
    assert texts[2] == f"{full} passed in year 3."


@pytest.mark.parametrize(
    ("kind", "size"), [(kind, size) for kind in READERS for size in (3, 1) if (kind, size) != ("mail", 1)]
)
def test_a_damaged_file_is_refused_in_words(kind: str, size: int) -> None:
    """Cut to its first third, and a few bytes of nothing; a mail is a mail from its first line on."""
    content = FILES[kind]()
    with pytest.raises(Unreadable, match="damaged"):
        read(content[: len(content) // 3] if size == 1 else b"\x00\x01 nothing of it", kind)


@pytest.mark.parametrize(
    ("kind", "part"), [("docx", "word/document.xml"), ("pptx", "ppt/presentation.xml"), ("xlsx", "xl/workbook.xml")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_entities_of_xml_are_refused(kind: str, part: str, encoding: str) -> None:
    content = packed({part: f"{BOMB}<x>&b;</x>".encode(encoding)}, like=FILES[kind]())
    with pytest.raises(Unreadable, match="declares entities"):
        read(content, kind)


def test_an_epub_expands_no_entity() -> None:
    content = packed({"META-INF/container.xml": f"{BOMB}<x>&b;</x>"}, like=FILES["epub"]())
    with pytest.raises(Unreadable, match="no EPUB"):
        read(content, "epub")


@pytest.mark.parametrize(
    ("limit", "value", "match"),
    [("MAX_MEMBERS", 2, "packs"), ("MAX_UNPACKED_BYTES", 100, "unpacks to"), ("MAX_RATIO", 0, "times its size")],
)
def test_archives_are_bounded(monkeypatch: pytest.MonkeyPatch, limit: str, value: int, match: str) -> None:
    monkeypatch.setattr(base, limit, value)
    monkeypatch.setattr(base, "RATIO_FROM_BYTES", 0)
    with pytest.raises(Unreadable, match=match):
        read(FILES["docx"](), "docx")


def test_a_pdf_of_too_many_pages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.retriever.formats.pdf.MAX_PAGES", 1)
    with pytest.raises(Unreadable, match="2 pages, more than 1"):
        read(FILES["pdf"](), "pdf")


@pytest.mark.parametrize(
    ("bound", "value", "match"),
    [
        ("MAX_ROWS", 2, "more than 2 rows"),
        ("MAX_COLUMNS", 1, "more than 1 columns"),
        ("MAX_SHEETS", 1, "2 sheets, more than 1"),
    ],
)
def test_a_workbook_beyond_a_bound_is_refused(
    monkeypatch: pytest.MonkeyPatch, bound: str, value: int, match: str
) -> None:
    monkeypatch.setattr(f"services.retriever.formats.xlsx.{bound}", value)
    with pytest.raises(Unreadable, match=match):
        read(FILES["xlsx"](), "xlsx")


@pytest.mark.parametrize("charset", ["windows-874", "unknown-8bit", "x-gbk"])
def test_mail_in_a_charset_that_python_does_not_know_is_read(charset: str) -> None:
    mail = b"Subject: The lamp\r\nContent-Type: text/plain; charset=" + charset.encode()
    contents = read(mail + b"\r\nContent-Transfer-Encoding: 8bit\r\n\r\nIt was repaired on Friday.\r\n", "mail")
    assert contents.sections[1].content.text == "It was repaired on Friday."
