"""Files to sections of text and tables: PDF, Word, PowerPoint, Excel, EPUB and mail, each read in a killable process.

A reader is one function `(content, title) -> Contents` in the module of its format, imported on first use.
"""

from collections.abc import Callable
from importlib import import_module

from services.retriever.extract import ExtractionError
from services.retriever.formats.base import Contents, Unreadable

# What a file of each format is called.
READERS = {
    "pdf": "PDF",
    "docx": "Word document",
    "pptx": "PowerPoint presentation",
    "xlsx": "Excel workbook",
    "epub": "EPUB",
    "mail": "mail",
}


def read(content: bytes, kind: str, title: str = "") -> Contents:
    """The sections of a file.

    Args:
        kind: a key of `READERS`.
        title: the document's name, for its tables; the file's own title where empty.

    Raises:
        Unreadable: the file is damaged, encrypted or larger than a bound; the message is for its owner.
        ExtractionError: a part of it defeated the extractor.
    """
    reader: Callable[[bytes, str], Contents] = import_module(f"{__name__}.{kind}").read
    try:
        return reader(content, title)
    except (Unreadable, ExtractionError, MemoryError):
        raise
    except Exception as error:  # the formats' libraries raise errors of any type
        raise Unreadable(f"it is damaged: no {READERS[kind]}") from error
