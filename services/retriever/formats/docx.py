"""Word documents by mammoth: their meaning as HTML, then as a web page is read."""

import io
import logging

import mammoth

from services.retriever.extract import extract
from services.retriever.formats.base import MAX_CHARS, Opened, Section, Unreadable, unpacked


def read(content: bytes, title: str) -> Opened:
    """One section, since a Word file's pages are made by who prints it; raises as `formats.read`."""
    unpacked(content).close()
    logging.getLogger("mammoth").setLevel(logging.ERROR)
    try:
        # Pictures would come as data URIs, each longer than the text.
        html = mammoth.convert_to_html(
            io.BytesIO(content), convert_image=mammoth.images.img_element(lambda _: {"src": ""})
        ).value
    except Exception as error:  # mammoth raises what its XML readers do, from KeyError to ExpatError
        raise Unreadable("it is damaged: no Word document") from error
    if len(html) > MAX_CHARS:
        raise Unreadable(f"it holds more than {MAX_CHARS:,} characters")
    page = extract(f"<html><body><main><article>{html}</article></main></body></html>", name=title, max_chars=MAX_CHARS)
    return Opened("", (Section(page),))
