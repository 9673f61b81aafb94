"""Small real files of each format, made here."""

import io
import zipfile


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text a page; lines are parted by newlines."""
    streams = []
    for text in pages:
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in text.replace("(", r"\(").replace(")", r"\)").split("\n"))
        streams.append(f"BT /F1 11 Tf 40 780 Td {lines}ET")
    return drawn(*streams)


def drawn(*streams: str) -> bytes:
    """A PDF of what draws each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for stream in streams:
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    return assembled(objects)


def assembled(objects: list[str]) -> bytes:
    """A PDF of objects, the first its catalogue."""
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{content}\nendobj\n".encode())
    start = out.tell()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    out.write(f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R >>\n".encode())
    out.write(f"startxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def packed(members: dict[str, str | bytes], *, like: bytes = b"") -> bytes:
    """A packed file; the members of another one with these in their place."""
    originals: dict[str, str | bytes] = {}
    if like:
        with zipfile.ZipFile(io.BytesIO(like)) as archive:
            originals = {name: archive.read(name) for name in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**originals, **members}.items():
            archive.writestr(name, content)
    return out.getvalue()


def _paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def docx(*paragraphs: str, table: tuple[tuple[str, ...], ...] = ()) -> bytes:
    """A Word document."""
    body = "".join(map(_paragraph, paragraphs))
    rows = "".join(
        f"<w:tr>{''.join(f'<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>' for cell in row)}</w:tr>"
        for row in table
    )
    words = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{types}"><Override PartName="/word/document.xml" '
            f'ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{words}"><w:body>{body}<w:tbl>{rows}</w:tbl></w:body>'
            "</w:document>",
        }
    )


def epub(title: str, *chapters: str) -> bytes:
    """An EPUB of chapters in XHTML."""
    names = [f"c{number}.xhtml" for number in range(len(chapters))]
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(names)
    )
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(names)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book/content.opf"/></rootfiles></container>'
    )
    bodies = {
        f"book/{name}": f"<html><body><h1>Chapter</h1><p>{text}</p></body></html>"
        for name, text in zip(names, chapters, strict=True)
    }
    return packed({"META-INF/container.xml": container, "book/content.opf": package, **bodies})


MAIL = (
    b"From: Marta <marta@example.org>\r\nTo: office@example.org\r\nDate: Mon, 4 May 2020 10:00:00 +0200\r\n"
    b"Subject: The lamp\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThe lamp was repaired on Friday.\r\n"
    b"--b\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=lamp.png\r\n\r\nx\r\n--b--\r\n"
)
