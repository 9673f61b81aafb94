"""Bytes of documents as text, and text as HTML."""

import contextlib
import html
import re

# Bytes of a document's beginning in which it declares its encoding.
DECLARED_WITHIN = 4_096

# Encodings of the web (WHATWG) by their usual names: some of Python's others take minutes for a megabyte.
_ENCODING = re.compile(
    r"(?:x-)?(?:utf-?8|utf-?16(?:-?[lb]e)?|(?:us-)?ascii|latin-?1|iso-?8859-?\d{1,2}(?:-[ei])?|windows-?\d{3,4}|cp\d{3,4}"
    r"|koi8-[ru]|gbk?|gb2312|gb18030|big5(?:-hkscs)?|euc-(?:jp|kr)|(?:shift[_-]?|s)jis|iso-2022-jp|macintosh)",
    re.IGNORECASE,
)
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)


def decoded(content: bytes, charset: str = "") -> str:
    """The text of a document: by its header's `charset`, if it is known, by UTF-8, by the encoding that it declares, or
    else by Windows' own.
    """
    for name, errors in ((charset, "replace"), ("utf-8-sig", "strict"), (declared(content), "replace")):
        # One stray byte must not cost the page.
        if is_encoding(name.removesuffix("-sig")):
            with contextlib.suppress(LookupError, UnicodeError):
                return content.decode(name, errors).removeprefix("\ufeff")
    return content.decode("cp1252", "replace")


def is_encoding(name: str) -> bool:
    """Whether a charset is one of the web's, whose decoders take time in proportion to the text."""
    return _ENCODING.fullmatch(name) is not None


def declared(content: bytes) -> str:
    """The encoding that a document's beginning, or a media type, names; empty where it names none."""
    match = _CHARSET.search(content[:DECLARED_WITHIN])
    return match[1].decode("ascii", "replace") if match else ""


def as_html(text: str) -> str:
    """Plain text as a page of paragraphs."""
    paragraphs = (html.escape(part) for part in re.split(r"\n\s*\n", text) if part.strip())
    return "<html><body>" + "".join(f"<p>{part}</p>\n" for part in paragraphs) + "</body></html>"
