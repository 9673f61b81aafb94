"""Word documents by mammoth: converted to HTML, which is read as a web page."""

import io
import logging

import mammoth

from services.retriever.formats.base import MAX_CHARS, Contents, Unreadable, open_archive, read_html


def read(content: bytes, title: str) -> Contents:
    """One section, since a Word file has no fixed pages; raises as `formats.read`."""
    open_archive(content).close()
    logging.getLogger("mammoth").setLevel(logging.ERROR)
    # Pictures would come as data URIs, each longer than the text.
    pictures = mammoth.images.img_element(lambda _: {"src": ""})
    html = mammoth.convert_to_html(io.BytesIO(content), convert_image=pictures).value
    if len(html) > MAX_CHARS:
        raise Unreadable(f"it holds more than {MAX_CHARS:,} characters")
    page = read_html(f"<html><body><main><article>{html}</article></main></body></html>", title)
    return Contents("", (page,))
