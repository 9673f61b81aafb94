"""HTML to text and tables by named extractors.

An extractor is a function; `EXTRACTORS` names them. Adding one means adding a function and its name.
"""

import html as entities
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import trafilatura
from bs4 import BeautifulSoup
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

from services.kit.text.cutting import UNSPACED
from services.retriever.markup import MAX_PAGE_CHARS, clean_line, clean_text, encodable, has_markup, tame
from services.retriever.tables import Table, find_tables

MAX_TITLE_CHARS = 300
# Less main text than this, in characters or as a share of all text, and all text is taken.
MIN_MAIN_CHARS, MIN_MAIN_SHARE = 500, 0.05
# A character of scripts without spaces says as much as so many letters.
LETTERS_OF_UNSPACED = 3
# Readers' comments and page feet that Resiliparse's rules let through; never a substring of a class, which `body` may
# carry.
_BOILERPLATE = (
    "footer", "#comments", "#respond", ".comment", ".comments", ".comment-list", ".commentlist", ".comments-area",
)  # fmt: skip


_LIST = re.compile(r"<ul\b", re.IGNORECASE)
_SAYS_HIDDEN = re.compile(r"\bhidden\b|display\s*:\s*none", re.IGNORECASE)
_NOT_SHOWN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_POWER = re.compile(
    r"(\d)<sup[^<>]{0,200}>\s*([-−+]?\d{1,3})\s*</sup\s*>(\s*(?:/\s*<sub\b|\u2044|&frasl;))?", re.IGNORECASE
)
_FORMULA = re.compile(r"<math\b", re.IGNORECASE)
# MathML that writes its parts one above the other, and the signs that keep them apart in a line.
_FORMULA_SIGNS = {"msup": "^", "msubsup": "^", "mfrac": "/"}
_UNSPACED = re.compile(f"[{UNSPACED}]")
# A line break inside a sentence without spaces, but for preformatted text; most pages have none, which is soon seen.
_WRAP = re.compile(rf"\n[ \t]*+[{UNSPACED}]")
_WRAPPED = re.compile(
    rf"<pre\b.*?(?:</pre|\Z)|(?<=[{UNSPACED}])[ \t\r\n]*\n[ \t]*+(?=[{UNSPACED}])", re.DOTALL | re.IGNORECASE
)
_XHTML = "http://www.w3.org/1999/xhtml"
_SELF_CLOSED = re.compile(r"<(title|script|style|textarea|iframe)\b([^<>]{0,2000})/>", re.IGNORECASE)


class ExtractionError(Exception):
    """An extractor failed on a page; the message names it and the error."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """A page's content, or that of a file's page, slide, sheet or chapter.

    Attributes:
        text: paragraphs parted by an empty line; may be empty.
        tables: data tables in the order of the page, in Markdown.
        title: the page's name, or the document's title.
        language: the declared primary subtag, such as `en`; may be empty.
        unread: in words, what of the page was not read.
        page: its number in the file, from 1; 0 where the format has no pages.
    """

    text: str
    tables: tuple[Table, ...] = ()
    title: str = ""
    language: str = ""
    unread: tuple[str, ...] = ()
    page: int = 0


def by_resiliparse(html: str) -> str:
    """Main content by Resiliparse's rules, about ten times as fast as trafilatura; all text where that is too little.

    The rules take a listing, a forum or a short notice for boilerplate and leave a line or nothing.
    """
    tree = _visible(_with_lists_of_prose(html))
    main = _plain(tree, main_content=True, skip_elements=_BOILERPLATE)
    everything = _plain(tree, main_content=False)
    is_long = len(main) >= MIN_MAIN_CHARS or (
        len(main) + (LETTERS_OF_UNSPACED - 1) * len(_UNSPACED.findall(main)) >= MIN_MAIN_CHARS
    )
    return main if is_long and len(main) >= MIN_MAIN_SHARE * len(everything) else everything


def all_by_resiliparse(html: str) -> str:
    """All visible text, of documents that have nothing around their content."""
    return _plain(_visible(html), main_content=False)


_plain = partial(extract_plain_text, alt_texts=False, list_bullets=False, preserve_formatting=True)


def _visible(html: str) -> HTMLTree:
    """The page without elements that say they are hidden."""
    tree = HTMLTree.parse(html)
    if tree.body is not None and _SAYS_HIDDEN.search(html):
        # Without `values` each step makes the list of all elements anew.
        for element in tree.body.query_selector_all("[hidden], [style]").values():
            if element.hasattr("hidden") or _NOT_SHOWN.search(element.getattr("style") or ""):
                element.decompose()
    return tree


def _with_lists_of_prose(html: str) -> str:
    """The page with those lists as menus that Resiliparse would take for navigation since they stand near the body.

    They are lists of links for half of their text at most.
    """
    if not _LIST.search(html):
        return html
    document = LexborHTMLParser(html)
    is_changed = False
    for node in document.css("body > ul, body > * > ul, body > * > * > ul"):
        text = node.text(strip=True)
        if 2 * sum(len(link.text(strip=True)) for link in node.css("a")) >= len(text):
            continue
        if menu := LexborHTMLParser(f"<menu>{node.inner_html}</menu>").css_first("menu"):
            node.replace_with(menu)
            is_changed = True
    return document.html or html if is_changed else html


def _with_formulas_in_line(html: str) -> str:
    """The page with signs in its formulas: 10^6 and 1/2 are no 106 and 12."""
    if not _FORMULA.search(html):
        return html
    document = LexborHTMLParser(html)
    for node in document.css(", ".join(_FORMULA_SIGNS)):
        parts = list(node.iter())
        if len(parts) > 1:
            parts[-1].insert_before(_FORMULA_SIGNS[str(node.tag)])
        if node.tag == "mfrac":
            # Behind a whole number.
            node.insert_before(" ")
    return document.html or html


def by_trafilatura(html: str) -> str:
    """Trafilatura without tables, BeautifulSoup where it finds nothing (ElectricSheep, section 4.1)."""
    # Its fallbacks cost three times as much and, by its own evaluation, little changes without them.
    text = trafilatura.extract(
        html, include_comments=False, include_tables=False, fast=True, prune_xpath=["//template", "//noscript"]
    )
    return text or by_beautifulsoup(html)


def by_beautifulsoup(html: str) -> str:
    """All visible text in one paragraph, as in db3 (section 2.2), WeKnow and CRAG's own baseline."""
    with warnings.catch_warnings():
        # It warns of input that looks like a file name, a URL or XML.
        warnings.simplefilter("ignore")
        soup = BeautifulSoup(html, "lxml")
    for element in soup(("script", "style", "noscript", "template")):
        element.decompose()
    return soup.get_text(" ", strip=True)


# A page within the caps of `markup.tame` to its text with its line breaks.
EXTRACTORS: dict[str, Callable[[str], str]] = {
    "resiliparse": by_resiliparse,
    "resiliparse-all": all_by_resiliparse,
    "trafilatura": by_trafilatura,
    "beautifulsoup": by_beautifulsoup,
}


def extract(
    html: str,
    extractor: str = "resiliparse",
    *,
    name: str = "",
    tables: bool = True,
    max_chars: int = MAX_PAGE_CHARS,
    table_times: int = 1,
) -> Extraction:
    """Text and tables of one page; a page without markup is plain text.

    Args:
        name: the page's name, for titles and tables; the document's own title where empty.
        max_chars: characters of the page to read.
        table_times: see `find_tables`.

    Raises:
        ExtractionError: the page defeated the extractor.
    """
    title = clean_line(encodable(name), MAX_TITLE_CHARS)
    if not has_markup(html[:max_chars]):
        unread = (f"cut at {max_chars:,} characters",) if len(html) > max_chars else ()
        return Extraction(clean_text(encodable(entities.unescape(html[:max_chars]))), title=title, unread=unread)
    tamed, unread_html = tame(_closed(html), max_chars)
    # 10<sup>11</sup> is no 1011, and 2<sup>1</sup>/<sub>2</sub> no 21/2.
    page = _POWER.sub(lambda match: f"{match[1]}{' ' if match[3] else '^'}{match[2]}{match[3] or ''}", tamed)
    if _WRAP.search(page):
        page = _WRAPPED.sub(lambda match: match[0] if match[0].startswith("<") else "", page)
    try:
        page = _with_formulas_in_line(page)
        text = clean_text(EXTRACTORS[extractor](page))
        document = LexborHTMLParser(page)
        title = title or _title(document)
        found, unread_tables = find_tables(document, title, times=table_times) if tables else ((), "")
        language = _language(document)
    except Exception as error:  # parsers raise errors of any type, from ValueError to RecursionError
        raise ExtractionError(f"{extractor} gave up: {type(error).__name__}") from error
    return Extraction(text, found, title, language, tuple(filter(None, (unread_html, unread_tables))))


def _closed(html: str) -> str:
    """XHTML's <title/> as HTML reads it: otherwise the page would be the title."""
    is_xml = html.lstrip()[:5] == "<?xml" or _XHTML in html[:2_000]
    return _SELF_CLOSED.sub(r"<\1\2></\1>", html) if is_xml else html


def _title(document: LexborHTMLParser) -> str:
    node = document.css_first("head > title")
    return clean_line(node.text(), MAX_TITLE_CHARS) if node else ""


def _language(document: LexborHTMLParser) -> str:
    root = document.root
    declared = (root.attributes.get("lang") or "" if root else "").replace("_", "-").partition("-")[0].strip().lower()
    return declared if declared.isascii() and declared.isalpha() and 2 <= len(declared) <= 3 else ""
