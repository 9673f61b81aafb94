"""Files to sections of text and tables: PDF, Word, PowerPoint, Excel, EPUB and mail, each read in a killable process.

A reader is one function `(content, title) -> Contents`; `READERS` names them by format, and each is imported on first
use. Adding one means adding a module and its name.
"""

from collections.abc import Callable
from importlib import import_module

from services.retriever.formats.base import Contents, Section, Unreadable

__all__ = ["READERS", "Contents", "Section", "Unreadable", "read"]

READERS = {
    "pdf": "services.retriever.formats.pdf",
    "docx": "services.retriever.formats.docx",
    "pptx": "services.retriever.formats.pptx",
    "xlsx": "services.retriever.formats.xlsx",
    "epub": "services.retriever.formats.epub",
    "mail": "services.retriever.formats.mail",
}


def read(content: bytes, kind: str, title: str = "") -> Contents:
    """The sections of a file.

    Args:
        kind: a key of `READERS`.
        title: the document's name, for its tables; the file's own title where empty.

    Raises:
        Unreadable: the file is damaged, encrypted or larger than a bound; the message is for its owner.
    """
    reader: Callable[[bytes, str], Contents] = import_module(READERS[kind]).read
    return reader(content, title)
