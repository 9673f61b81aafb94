"""Files as they lie about, and as an attacker makes them: what is read of each, on which page, and what is refused."""

import io
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import openpyxl
import pptx
import pytest

from services.retriever.formats import READERS, base, read
from services.retriever.formats.base import Unreadable
from services.retriever.formats.pdf import _paragraphs
from tests.unit.retriever.formats.files import MAIL, docx, drawn, epub, packed, pdf

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
    return saved(presentation)


def workbook(*rows: tuple[str | int | None, ...], merged: tuple[str, ...] = (), name: str = "Dues") -> bytes:
    """A workbook whose second sheet is of one column."""
    workbook = openpyxl.Workbook()
    workbook.active.title = name
    for row in rows:
        workbook.active.append(row)
    for cells in merged:
        workbook.active.merge_cells(cells)
    workbook.create_sheet("List").append(["One column alone"])
    return saved(workbook)


def saved(file: Any) -> bytes:
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "pdf": lambda: pdf("First page.", "Second page."),
    "docx": lambda: docx("The keepers met at noon.", table=TABLE),
    "pptx": deck,
    "xlsx": lambda: workbook(*TABLE, name="Lamps"),
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
        assert section.text.endswith(text)


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx"])
def test_tables_stay_tables(kind: str) -> None:
    tables = [table for section in read(FILES[kind](), kind, "Lamps").sections for table in section.tables]
    assert [line for line in tables[0].markdown.split("\n") if line in MARKDOWN] == list(MARKDOWN)
    assert tables[0].markdown.startswith("Lamps")


def ruled() -> bytes:
    rules = [f"40 {y} 200 0.5 re f" for y in (700, 720, 740, 760)] + [f"{x} 700 0.5 60 re f" for x in (40, 140, 240)]
    cells = [
        f"BT /F1 11 Tf {45 + 100 * column} {745 - 20 * row} Td ({cell}) Tj ET"
        for row, line in enumerate(TABLE)
        for column, cell in enumerate(line)
    ]
    return drawn("\n".join((*rules, *cells)))


def test_a_ruled_table_of_a_pdf_is_a_table() -> None:
    (section,) = read(ruled(), "pdf").sections
    assert [table.markdown.split("\n") for table in section.tables] == [[MARKDOWN[0], "| --- | --- |", *MARKDOWN[1:]]]


def test_lines_of_a_paragraph_are_joined_and_running_heads_left_out() -> None:
    full = "The keeper of the harbour light wrote down every ship that"
    pages = [f"The Light\n{full}\npassed in year {number}.\n{number}" for number in range(1, 6)]
    texts = [section.text for section in read(pdf(*pages), "pdf").sections]
    assert texts[2] == f"{full} passed in year 3."


@pytest.mark.parametrize(
    ("head", "foot", "is_kept"),
    [
        ("Room {room}", "Total due: {room},234.00 crowns", True),
        ("The Light {page}", "iv", False),
        ("The Light, 2024", "Page {page} of 40", False),
        ("{page} The Light", "- {before} -", False),
    ],
)
def test_a_running_head_repeats_or_counts_pages(head: str, foot: str, is_kept: bool) -> None:
    body = ["The bed is of oak.", "The stand is of pine."]
    pages = []
    for number in range(1, 7):
        values = {"page": number, "before": number - 1, "room": 100 + 13 * number}
        pages.append([head.format(**values), *body, foot.format(**values)])
    sections = read(pdf(*map("\n".join, pages)), "pdf").sections
    for page, section in zip(pages, sections, strict=True):
        assert section.text.split() == " ".join(page if is_kept else body).split()


@pytest.mark.parametrize(
    ("before", "behind", "joined"),
    [
        ("who found har-", "bours", "who found harbours"),
        ("had no COVID-", "19", "had no COVID-19"),
        ("saw the Notre-", "Dame", "saw the Notre-Dame"),
        ("was in the HAR-", "BOUR", "was in the HARBOUR"),
        ("in the years 1990-", "1995", "in the years 1990-1995"),
        ("had to leave the", "pier", "had to leave the pier"),
    ],
)
def test_a_word_that_a_line_parts_is_joined(before: str, behind: str, joined: str) -> None:
    first = "The keeper of the light wrote down every ship"
    (section,) = read(pdf(f"{first} of\n{first} {before}\n{behind} of it and went on"), "pdf").sections
    assert section.text == f"{first} of {first} {joined} of it and went on"


def test_lines_of_a_script_without_spaces_are_joined_without_one() -> None:
    assert _paragraphs(["灯塔由玛尔塔在维尔港的北岸", "设计并建造完成高四十米的灯", "Vell light"]) == (
        "灯塔由玛尔塔在维尔港的北岸设计并建造完成高四十米的灯 Vell light"
    )


@pytest.mark.parametrize(
    ("size", "rise", "raised", "text"),
    [
        (7, 4, "2", "In 1864^2"),
        (7, 4, "-2", "In 1864^-2"),
        (7, 4, "2\\244", "In 1864 2\u2044"),
        (7, -2, "2", "In 18642"),
        (11, 4, "2", "In 18642"),
        (11, 0, "2", "In 18642"),
    ],
)
def test_small_raised_digits_stay_apart_from_a_number(size: int, rise: int, raised: str, text: str) -> None:
    stream = f"BT /F1 11 Tf 40 780 Td (In 1864) Tj /F1 {size} Tf {rise} Ts ({raised}) Tj ET"
    (section,) = read(drawn(stream), "pdf").sections
    assert section.text == text


@pytest.mark.parametrize(
    ("kind", "size"), [(kind, size) for kind in READERS for size in (3, 1) if (kind, size) != ("mail", 1)]
)
def test_a_damaged_file_is_refused_in_words(kind: str, size: int) -> None:
    """Cut to its first third, and a few bytes of nothing; a mail is a mail from its first line on."""
    content = FILES[kind]()
    with pytest.raises(Unreadable, match="damaged"):
        read(content[: len(content) // 3] if size == 1 else b"\x00\x01 nothing of it", kind)


def test_memory_that_runs_out_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("services.retriever.formats.docx.read", exhausted)
    with pytest.raises(MemoryError):
        read(FILES["docx"](), "docx")


def test_a_pdf_with_a_damaged_page_is_refused() -> None:
    content = pdf("First.", "Second.", "Third.").replace(b"[3 0 R 5 0 R 7 0 R]", b"[3 0 R 9 0 R 7 0 R]")
    with pytest.raises(Unreadable, match="page 2 is damaged"):
        read(content, "pdf")


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx"])
def test_an_office_file_with_a_password_is_not_called_damaged(kind: str) -> None:
    with pytest.raises(Unreadable, match="encrypted, or of a format before"):
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(3_000), kind)


ENCRYPTION = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"
 xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>
 <enc:CipherReference URI="{}"/></enc:CipherData></enc:EncryptedData></encryption>"""


def test_an_epub_with_encrypted_chapters_is_refused_and_one_with_encrypted_fonts_read() -> None:
    book = FILES["epub"]()
    with pytest.raises(Unreadable, match="it is encrypted"):
        read(packed({"META-INF/encryption.xml": ENCRYPTION.format("book/c%30.xhtml")}, like=book), "epub")
    assert len(read(packed({"META-INF/encryption.xml": ENCRYPTION.format("a.otf")}, like=book), "epub").sections) == 2


def test_a_chapter_of_an_epub_is_read_in_the_encoding_that_it_declares() -> None:
    chapter = "<html><head><meta charset='windows-1251'/></head><body><p>Маяк</p></body></html>".encode("cp1251")
    sections = read(packed({"book/c0.xhtml": chapter}, like=FILES["epub"]()), "epub").sections
    assert sections[0].text == "Маяк"


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
    ("kind", "bound", "value", "match"),
    [
        ("docx", "base.MAX_MEMBERS", 2, "packs"),
        ("docx", "base.MAX_UNPACKED_BYTES", 100, "unpacks to"),
        ("docx", "base.MAX_RATIO", 0, "times its size"),
        ("pdf", "pdf.MAX_PAGES", 1, "2 pages, more than 1"),
        ("xlsx", "xlsx.MAX_ROWS", 2, "more than 2 rows"),
        ("xlsx", "xlsx.MAX_COLUMNS", 1, "more than 1 columns"),
        ("xlsx", "xlsx.MAX_SHEETS", 1, "2 sheets, more than 1"),
        ("xlsx", "base.MAX_SHEET_CHARS", 10, "more than 10 characters"),
        ("pptx", "base.MAX_SHEET_CHARS", 10, "more than 10 characters"),
    ],
)
def test_a_file_beyond_a_bound_is_refused(
    monkeypatch: pytest.MonkeyPatch, kind: str, bound: str, value: int, match: str
) -> None:
    monkeypatch.setattr(base, "RATIO_FROM_BYTES", 0)
    monkeypatch.setattr(f"services.retriever.formats.{bound}", value)
    with pytest.raises(Unreadable, match=match):
        read(FILES[kind](), kind)


@pytest.mark.parametrize(
    ("rows", "merged", "lines"),
    [
        (
            [("Harbour dues 2024",), ("In crowns",), ("Harbour", "Class", "Dues"), ("Vell", "a", 7), (None, "b", 9)],
            ("A1:C1", "A4:A5"),
            [
                *("Dues: Harbour dues 2024: In crowns", "", "| Harbour | Class | Dues |", "| --- | --- | --- |"),
                *("| Vell | a | 7 |", "| Vell | b | 9 |"),
            ],
        ),
        ([(None, "2020"), ("Vell", 7)], (), ["Dues", "", "|  | 2020 |", "| --- | --- |", "| Vell | 7 |"]),
        ([("Dues",), ("Vell", 7)], (), ["Dues", "", "| Dues |  |", "| --- | --- |", "| Vell | 7 |"]),
        ([("long " * 80,), ("a", "b"), ("c", "d")], (), ["Dues", "", f"| {'long ' * 80}|  |"]),
    ],
    ids=["heading", "corner", "no header", "long heading"],
)
def test_rows_above_a_sheets_header_name_it_and_merged_cells_are_filled(
    rows: list[tuple[str | int | None, ...]], merged: tuple[str, ...], lines: list[str]
) -> None:
    section, _ = read(workbook(*rows, merged=merged), "xlsx").sections
    (table,) = section.tables
    assert table.markdown.split("\n")[: len(lines)] == lines


def test_a_cell_is_read_to_its_end() -> None:
    answer = "First look at the wick. " * 100 + "Then call 555-1864."
    section, _ = read(workbook(("Question", "Answer"), ("How?", answer)), "xlsx").sections
    assert f"| How? | {answer} |" in section.tables[0].markdown


def test_a_slides_table_of_one_column_is_text() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(2, 1, 0, 0, 900_000, 90_000).table
    for row, text in enumerate(("The lamp costs 77 crowns", "The oil costs 5")):
        table.cell(row, 0).text = text
    (section,) = read(saved(presentation), "pptx").sections
    assert section.text == "The lamp costs 77 crowns\nThe oil costs 5"


@pytest.mark.parametrize("charset", ["", "windows-874", "unknown-8bit", "x-gbk"])
def test_mail_in_a_charset_that_is_unknown_loses_no_letter(charset: str) -> None:
    content, encoding = ("Köln, €500", "utf-8") if not charset else ("It was repaired on Friday.", "ascii")
    head = f"Subject: The lamp\r\nContent-Type: text/plain{charset and '; charset='}{charset}\r\n"
    mail = f"{head}Content-Transfer-Encoding: 8bit\r\n\r\n{content}\r\n".encode(encoding)
    assert read(mail, "mail").sections[1].text == content


def test_of_alternatives_html_is_read_where_the_plain_text_is_blank() -> None:
    for plain, text in (("It was repaired.", "It was repaired."), (" \n", "It was mended.")):
        mail = EmailMessage()
        mail["Subject"] = "The lamp"
        mail.set_content(plain)
        mail.add_alternative("<p>It was <b>mended</b>.</p>", subtype="html")
        assert [section.text for section in read(bytes(mail), "mail").sections][1:] == [text]


def test_all_texts_of_a_mail_and_the_mails_attached_to_it_are_read() -> None:
    price = EmailMessage()
    price["Subject"] = "The price"
    price.set_content("It is 77 crowns.")
    mail = EmailMessage()
    mail["Subject"] = "The lamp"
    mail.set_content("See below.")
    mail.add_attachment(price)
    mail.add_attachment("Beyond.", disposition="inline")
    mail.add_attachment("Of the office.", filename="notes.txt")
    assert [section.text for section in read(bytes(mail), "mail").sections] == [
        "Subject: The lamp\nAttached: The price\nAttached: notes.txt",
        "See below.",
        "Subject: The price",
        "It is 77 crowns.",
        "Beyond.",
    ]
