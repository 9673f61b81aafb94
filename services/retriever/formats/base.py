"""Sections of files, and the bounds of packed files, for all readers."""

import io
import re
import zipfile
from collections.abc import Sequence
from typing import NamedTuple

from services.retriever.extract import Extraction, extract
from services.retriever.markup import clean_text
from services.retriever.tables import OF_DOCUMENT, table_of

MAX_MEMBERS = 10_000
MAX_UNPACKED_BYTES = 256 * 1024 * 1024
# Office files hold XML that packs to a twentieth; a bomb packs to a thousandth.
MAX_RATIO = 200
# Below this a ratio says nothing: an empty sheet of columns packs well.
RATIO_FROM_BYTES = 8 * 1024 * 1024
# Characters of all text: a shelf of books.
MAX_CHARS = 16 * 1024 * 1024
# Of the cells of a sheet, or of a slide's table.
MAX_SHEET_CHARS = 2_000_000
# What Office files with a password are packed in, and those before 2007.
_COMPOUND = b"\xd0\xcf\x11\xe0"
# No office format declares entities; a file that does is an attack on its reader. In both encodings of XML.
_ENTITY = re.compile(b"<!ENTITY|<\0!\0E\0N\0T\0I\0T\0Y|\0<\0!\0E\0N\0T\0I\0T\0Y")


class Unreadable(Exception):
    """The file cannot be read; the message says why, in words for its owner."""


class Contents(NamedTuple):
    """A file's own title, and its sections in order: pages, slides, sheets, chapters."""

    title: str
    sections: tuple[Extraction, ...]


def read_html(html: str, title: str, *, is_page: bool = False) -> Extraction:
    """HTML of a document, within the bounds of one: more of it is read than of a page; raises as `extract`.

    Args:
        is_page: whether there may be something around the content, as on a web page.
    """
    extractor = "resiliparse" if is_page else "resiliparse-all"
    return extract(html, extractor, name=title, max_chars=MAX_CHARS, table_times=OF_DOCUMENT)


def read_cells(rows: Sequence[Sequence[str]], name: str, title: str) -> Extraction:
    """A file's cells as a table; as text, a line a row, where they are a list, which has no columns to lose.

    Args:
        name: the table's.

    Raises:
        Unreadable: they hold more characters than the bound.
    """
    if sum(len(cell) for row in rows for cell in row) > MAX_SHEET_CHARS:
        raise Unreadable(f"a table of it holds more than {MAX_SHEET_CHARS:,} characters")
    if table := table_of(name, rows):
        return Extraction("", (table,), title)
    return Extraction(clean_text("\n".join(" ".join(filter(None, row)) for row in rows)), title=title)


def open_archive(content: bytes, *, entities: bool = False) -> zipfile.ZipFile:
    """A packed file, within the bounds.

    Checks the declared sizes: `zipfile` reads no byte more.

    Args:
        entities: whether its XML may declare entities, since its readers expand none.

    Raises:
        Unreadable: it is damaged, encrypted, larger than a bound, or declares entities.
    """
    if content.startswith(_COMPOUND):
        raise Unreadable("it is encrypted, or of a format before Office 2007")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise Unreadable("it is damaged: no such file as its name says") from error
    if len(members) > MAX_MEMBERS:
        raise Unreadable(f"it packs {len(members):,} files, more than {MAX_MEMBERS:,}")
    size = sum(member.file_size for member in members)
    if size > MAX_UNPACKED_BYTES:
        raise Unreadable(f"it unpacks to {size:,} bytes, more than {MAX_UNPACKED_BYTES:,}")
    if size > RATIO_FROM_BYTES and size > MAX_RATIO * len(content):
        raise Unreadable(f"it unpacks to {size // max(1, len(content)):,} times its size, more than {MAX_RATIO}")
    if any(member.flag_bits & 1 for member in members):
        raise Unreadable("it is encrypted")
    if not entities:
        for member in members:
            if member.filename.lower().endswith((".xml", ".rels", ".vml")) and _ENTITY.search(
                read_member(archive, member)
            ):
                raise Unreadable("its XML declares entities, which no such file needs")
    return archive


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo | str) -> bytes:
    """A member's bytes.

    Raises:
        Unreadable: it is missing or damaged.
    """
    try:
        return archive.read(member)
    except Exception as error:  # zlib, lzma and bz2 each raise their own
        raise Unreadable("it is damaged: a part of it cannot be unpacked") from error
