"""Bytes of documents as text, and text as HTML."""

import codecs
import contextlib
import html
import re

# Bytes of a document's beginning in which it declares its encoding.
DECLARED_WITHIN = 4_096
# Share of bytes beyond ASCII in a text of a script other than the Latin one: of French a tenth are, of Russian most.
FOREIGN = 0.3

# Encodings of the web (WHATWG) by their usual names: some of Python's others take minutes for a megabyte.
_ENCODING = re.compile(
    r"utf-?8|utf-?16(?:-?[lb]e)?|(?:us-)?ascii|latin-?1|iso-?8859-?\d{1,2}|cp\d{3,4}|koi8-[ru]|gbk?|gb2312|gb18030"
    r"|big5(?:-hkscs)?|euc-(?:jp|kr)|ks-c-5601-1987|(?:shift-?|s)jis|iso-2022-jp|tis-620|mac(?:intosh|-cyrillic)"
)
# WHATWG reads an encoding as a larger one, by Python's names: web pages declare the one and are written in the other.
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CHARSET = re.compile(
    rb"""(?:charset|^\s{0,100}<\?xml\s[^<>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_ASCII = bytes(range(128))


def decoded(content: bytes, charset: str = "") -> str:
    """The text of a document: by its byte order mark, by its header's `charset`, if it is known, by UTF-8, by the
    encoding that it declares, or else by Windows' own.
    """
    own = codec(declared(content))
    for name, errors in (
        (codec(charset, content), "replace"),
        ("utf-8", "strict"),
        # What declares UTF-16 in ASCII is not written in it.
        ("utf-8" if own.startswith("utf-16") else own, "replace"),
    ):
        # One stray byte must not cost the page.
        if name:
            with contextlib.suppress(UnicodeError):
                return content.decode(name, errors).removeprefix("\ufeff")
    return content.decode("cp1252", "replace")


def codec(charset: str, content: bytes = b"") -> str:
    """Python's name of a content's encoding: its byte order mark's, else the charset's as WHATWG reads it.

    Empty where the charset is none of the web's, whose decoders take time in proportion to the text.
    """
    if marked := next((name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), ""):
        return marked
    name = charset.lower().replace("_", "-").removeprefix("x-").replace("windows-31j", "cp932")
    name = re.sub(r"^windows-(?=\d)", "cp", re.sub(r"^(iso-?8859-?\d{1,2})-[ei]$", r"\1", name))
    if _ENCODING.fullmatch(name):
        with contextlib.suppress(LookupError):
            python = codecs.lookup(name).name
            return _SUPERSETS.get(python, python)
    return ""


def declared(content: bytes) -> str:
    """The encoding that a document's beginning, or a media type, names; empty where it names none."""
    match = _CHARSET.search(content[:DECLARED_WITHIN])
    return match[1].decode("ascii", "replace") if match else ""


def is_foreign(content: bytes) -> bool:
    """Whether a text in an encoding that nothing names is of another script than the Latin one."""
    if codec(declared(content), content) or len(content.translate(None, _ASCII)) <= FOREIGN * len(content):
        return False
    try:
        content.decode()
    except UnicodeError:
        return True
    return False


def as_html(text: str) -> str:
    """Plain text as a page of paragraphs."""
    paragraphs = (html.escape(part) for part in re.split(r"\n\s*\n", text) if part.strip())
    return "<html><body>" + "".join(f"<p>{part}</p>\n" for part in paragraphs) + "</body></html>"
