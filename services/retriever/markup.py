"""Making hostile markup safe for native parsers, and text fit for JSON, in time linear in its length.

Parsers are linear in a page's length but not in its depth: nested blocks, unclosed formatting and a tag with thousands
of attributes cost them seconds, and a deep list makes an extractor that indents allocate gigabytes and abort, which no
`except` catches. So the caps are put on the markup, before a parser sees it; a page within them passes untouched, but
for the names of elements that extractors drop with their facts.
"""

import re
from dataclasses import dataclass, field

MAX_PAGE_CHARS = 4 * 1024 * 1024
# The longest of real pages has 32,000.
MAX_TAGS = 150_000
# Browsers stop at 512; real pages stay below 150.
MAX_DEPTH = 256
# Indentation is repeated on every line, so list depth multiplies the text.
MAX_LIST_DEPTH = 32
# An unclosed formatting element is opened again inside every block that follows.
MAX_FORMATTING_DEPTH = 8
# Attributes are searched for duplicates one by one.
MAX_ATTRIBUTES = 128
_LONG_TAG = 2 * MAX_ATTRIBUTES

# A comment, or a tag with quoted values taken whole. Possessive throughout: no input makes it backtrack.
_TAG = re.compile(
    r"""<(?:!--(?:-?>|.*?(?:--!?>|\Z))|(/?)([a-zA-Z][^\s/>]*+)((?:[^>=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?)?)*+)>?)""",
    re.DOTALL,
)
_QUOTED = re.compile(r"""=\s*+(?:"[^"]*+"?|'[^']*+'?)""")
_ATTRIBUTE = re.compile(r"[^\s/=]++")
_MARKUP = re.compile(r"<[a-zA-Z!/?]")

# Elements whose content is text for the parser, whatever it looks like.
_RAW_END = {
    name: re.compile(f"</{name}", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
_LISTS = frozenset({"ul", "ol", "dl", "menu", "dir"})
_FORMATTING = frozenset({"b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u"})
# Void elements, and those that the next of their kind closes.
_FLAT = frozenset(
    re.findall(
        r"\w+",
        "a area base body br col colgroup dd dt embed head hr html img input li link meta nobr optgroup option p param "
        "source tbody td tfoot th thead tr track wbr",
    )
)

# Dates, captions, listings and tables stand in elements that Resiliparse and Trafilatura drop whatever they hold.
_READ_AS = {"time": "span"} | dict.fromkeys(("dialog", "figcaption", "figure", "legend", "search", "summary"), "div")
# Fandom's wikis state their facts in an <aside>, as others put notes: <aside class="portable-infobox pi-background">.
_FACTS_CLASS = "pi-background"

_UNPRINTABLE = re.compile(
    # Controls but tab and newline, lone surrogates, non-characters, and the invisible that split or glue words.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\uffff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]+"
)
# What ends a line or parts words, among the unprintable.
_SEPARATING = re.compile("[\x0b-\x0d\x1c-\x1f\x85]")


def has_markup(text: str) -> bool:
    """Whether anything in the text would be read as a tag or a comment."""
    return _MARKUP.search(text) is not None


def encodable(text: str) -> str:
    """The text without surrogates: pairs become the character they stand for, lone ones U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_text(text: str) -> str:
    """Paragraphs parted by one empty line, words by one space, nothing unprintable, no blank at either end."""
    if _UNPRINTABLE.search(text) is not None:
        text = _UNPRINTABLE.sub("", _SEPARATING.sub("\n", text.replace("\r\n", "\n")))
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(line for line, before in zip(lines, ["", *lines], strict=False) if line or before).strip("\n")


def clean_line(text: str, max_chars: int) -> str:
    """The text as one line of at most `max_chars` characters."""
    # Only its beginning can matter, and a title or a cell can be megabytes long.
    return " ".join(clean_text(text[: 8 * max_chars]).split())[:max_chars].rstrip()


def tame(html: str, max_chars: int = MAX_PAGE_CHARS) -> tuple[str, str]:
    """The page within all caps; and in words what stands behind its end, empty where nothing does.

    Tags beyond a cap of depth are removed and their text stays; a tag with too many attributes loses them all; the page
    ends at `max_chars` characters or at tag `MAX_TAGS`. Times, figures and Fandom's facts get plain names.
    """
    tamer = _Tamer(encodable(html)[:max_chars])
    tamed = tamer.run()
    if tamer.is_cut:
        return tamed, f"cut at {MAX_TAGS:,} tags"
    return tamed, f"cut at {max_chars:,} characters of HTML" if len(html) > max_chars else ""


@dataclass(slots=True)
class _Tamer:
    html: str
    # Names of the open elements, and their names in what is returned; empty where the tag is removed.
    stack: list[tuple[str, str]] = field(default_factory=list)
    open: dict[str, int] = field(default_factory=dict)
    lists: int = 0
    formatting: int = 0
    is_cut: bool = False

    def run(self) -> str:
        html, search, count, copied = self.html, _TAG.search, 0, 0
        pieces: list[str] = []
        tag = search(html)
        while tag is not None:
            position = tag.end()
            if tag[2] is not None:
                count += 1
                if count > MAX_TAGS:
                    html, self.is_cut = html[: tag.start()], True
                    break
                name = written = tag[2].lower()
                if name not in _FLAT:
                    is_foreign = tag[3].rstrip().endswith("/") and (self.open.get("svg") or self.open.get("math"))
                    if name in _RAW_END and not tag[1] and not is_foreign:
                        end = _RAW_END[name].search(html, position)
                        position = end.start() if end else len(html)
                    else:
                        written = self._close(name) if tag[1] else self._open(name, tag[3])
                replacement = None
                is_long = len(tag[3]) > _LONG_TAG and _attributes(tag[3]) > MAX_ATTRIBUTES
                if not written:
                    replacement = " "
                elif is_long or written != name:
                    replacement = f"<{tag[1]}{written}{'' if is_long else tag[3]}>"
                if replacement is not None:
                    pieces += html[copied : tag.start()], replacement
                    copied = tag.end()
            tag = search(html, position)
        return "".join((*pieces, html[copied:])) if pieces else html

    def _open(self, name: str, attributes: str) -> str:
        self.lists += name in _LISTS
        self.formatting += name in _FORMATTING
        kept = (
            len(self.stack) < MAX_DEPTH
            and (name not in _LISTS or self.lists <= MAX_LIST_DEPTH)
            and (name not in _FORMATTING or self.formatting <= MAX_FORMATTING_DEPTH)
        )
        holds_facts = name == "aside" and _FACTS_CLASS in attributes.lower()
        written = ("div" if holds_facts else _READ_AS.get(name, name)) if kept else ""
        self.stack.append((name, written))
        self.open[name] = self.open.get(name, 0) + 1
        return written

    def _close(self, name: str) -> str:
        if not self.open.get(name):
            return name
        while True:
            closed, written = self.stack.pop()
            self.open[closed] -= 1
            self.lists -= closed in _LISTS
            self.formatting -= closed in _FORMATTING
            if closed == name:
                return written


def _attributes(tag: str) -> int:
    return sum(1 for _ in _ATTRIBUTE.finditer(_QUOTED.sub(" ", tag)))
