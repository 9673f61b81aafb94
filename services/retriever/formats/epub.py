"""EPUB: chapters in the order of reading, each read as a web page."""

import posixpath
import zipfile
from urllib.parse import unquote

from lxml import etree

from services.kit.documents import decoded
from services.retriever.extract import MAX_TITLE_CHARS
from services.retriever.formats.base import Contents, Unreadable, open_archive, read_html, read_member
from services.retriever.markup import clean_line

CONTAINER = "META-INF/container.xml"
# Says which files are encrypted; fonts are in many books that anyone may read.
ENCRYPTION = "META-INF/encryption.xml"
MAX_CHAPTERS = 2_000
_NAMES = {
    "container": "urn:oasis:names:tc:opendocument:xmlns:container",
    "opf": "http://www.idpf.org/2007/opf",
    "enc": "http://www.w3.org/2001/04/xmlenc#",
    "dc": "http://purl.org/dc/elements/1.1/",
}


def read(content: bytes, title: str) -> Contents:
    """The chapters; raises as `formats.read`."""
    # Chapters are HTML and may name HTML's entities; no reader here expands a declared one.
    with open_archive(content, entities=True) as archive:
        place = _tree(archive, CONTAINER).find(".//container:rootfile", _NAMES)
        if place is None or not place.get("full-path"):
            raise Unreadable("it is damaged: no EPUB")
        package = str(place.get("full-path"))
        book = _tree(archive, package)
        own_title = clean_line(book.findtext(".//dc:title", "", _NAMES), MAX_TITLE_CHARS)
        files = {item.get("id"): item.get("href", "") for item in book.iterfind(".//opf:item", _NAMES)}
        spine = [files.get(item.get("idref"), "") for item in book.iterfind(".//opf:itemref", _NAMES)]
        if len(spine) > MAX_CHAPTERS:
            raise Unreadable(f"it holds {len(spine):,} chapters, more than {MAX_CHAPTERS:,}")
        folder = posixpath.dirname(package)
        names = [posixpath.normpath(posixpath.join(folder, unquote(href))) for href in spine if href]
        if not _encrypted(archive).isdisjoint(names):
            raise Unreadable("it is encrypted")
        sections = tuple(read_html(decoded(read_member(archive, name)), title or own_title) for name in names)
    return Contents(own_title, sections)


def _encrypted(archive: zipfile.ZipFile) -> set[str]:
    """The names of the encrypted members."""
    if ENCRYPTION not in archive.namelist():
        return set()
    references = _tree(archive, ENCRYPTION).iterfind(".//enc:CipherReference", _NAMES)
    return {posixpath.normpath(unquote(reference.get("URI", ""))) for reference in references}


def _tree(archive: zipfile.ZipFile, name: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    return etree.fromstring(read_member(archive, name), parser)
