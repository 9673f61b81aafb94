"""HTML to text and tables by named extractors.

An extractor is a function; `EXTRACTORS` names them. Adding one means adding a function and its name.
"""

import html as entities
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import trafilatura
from bs4 import BeautifulSoup
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

from services.retriever.markup import MAX_PAGE_CHARS, clean_line, clean_text, encodable, has_markup, tame
from services.retriever.tables import Table, Tables, find_tables

MAX_TITLE_CHARS = 300
# Less main text than this, in characters or as a share of all text, and all text is taken.
MIN_MAIN_CHARS, MIN_MAIN_SHARE = 500, 0.05
# Readers' comments and page feet that Resiliparse's rules let through; never a substring of a class, which `body` may
# carry.
_BOILERPLATE = (
    "footer", "#comments", "#respond", ".comment", ".comments", ".comment-list", ".commentlist", ".comments-area",
)  # fmt: skip


class ExtractionError(Exception):
    """An extractor failed on a page; the message names it and the error."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """A page's content.

    Attributes:
        text: paragraphs parted by an empty line; may be empty.
        tables: data tables in the order of the page, in Markdown.
        title: the page's name, or the document's title.
        language: the declared primary subtag, such as `en`; may be empty.
        unread: in words, what of the page was not read.
    """

    text: str
    tables: tuple[Table, ...] = ()
    title: str = ""
    language: str = ""
    unread: tuple[str, ...] = ()


def by_resiliparse(html: str) -> str:
    """Main content by Resiliparse's rules, about ten times as fast as trafilatura; all text where that is too little.

    The rules take a listing, a forum or a short notice for boilerplate and leave a line or nothing.
    """
    tree = HTMLTree.parse(html)
    plain = partial(extract_plain_text, tree, alt_texts=False, list_bullets=False, preserve_formatting=True)
    main = plain(main_content=True, skip_elements=_BOILERPLATE)
    everything = plain(main_content=False)
    enough = len(main) >= MIN_MAIN_CHARS and len(main) >= MIN_MAIN_SHARE * len(everything)
    return main if enough else everything


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
        ValueError: `extractor` is unknown.
        ExtractionError: the page defeated the extractor.
    """
    if extractor not in EXTRACTORS:
        raise ValueError(f"no extractor is named {extractor!r}; there are {', '.join(EXTRACTORS)}")
    title = clean_line(encodable(name), MAX_TITLE_CHARS)
    if not has_markup(html[:max_chars]):
        unread = (f"cut at {max_chars:,} characters",) if len(html) > max_chars else ()
        return Extraction(clean_text(encodable(entities.unescape(html[:max_chars]))), title=title, unread=unread)
    tamed = tame(html, max_chars)
    try:
        text = clean_text(EXTRACTORS[extractor](tamed.html))
        document = LexborHTMLParser(tamed.html)
        title = title or _title(document)
        found = find_tables(document, title, times=table_times) if tables else Tables()
        language = _language(document)
    except Exception as error:  # parsers raise errors of any type, from ValueError to RecursionError
        raise ExtractionError(f"{extractor} gave up: {type(error).__name__}") from error
    return Extraction(text, found.tables, title, language, tuple(filter(None, (tamed.unread, found.unread))))


def _title(document: LexborHTMLParser) -> str:
    node = document.css_first("head > title")
    return clean_line(node.text(), MAX_TITLE_CHARS) if node else ""


def _language(document: LexborHTMLParser) -> str:
    root = document.root
    declared = (root.attributes.get("lang") or "" if root else "").replace("_", "-").partition("-")[0].strip().lower()
    return declared if declared.isascii() and declared.isalpha() and 2 <= len(declared) <= 3 else ""
