"""HTML to text and tables by named extractors.

An extractor is one class with one method; `EXTRACTORS` names them. Adding one means adding a class and its name.
"""

import html as entities
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import trafilatura
from bs4 import BeautifulSoup
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

from services.retriever.markup import MAX_PAGE_CHARS, clean_line, clean_text, encodable, has_markup, tame
from services.retriever.tables import MAX_TABLE_CHARS, Table, find_tables

MAX_TITLE_CHARS = 300


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
        truncated: whether the caps cut off the page's end.
    """

    text: str
    tables: tuple[Table, ...] = ()
    title: str = ""
    language: str = ""
    truncated: bool = False


class Extractor(Protocol):
    def text(self, html: str) -> str:
        """The page's text with its line breaks; `html` is within the caps of `markup.tame`."""


class Resiliparse:
    """Main content by Resiliparse's rules, about ten times as fast as trafilatura; all text where that is too little.

    The rules take a listing, a forum or a short notice for boilerplate and leave a line or nothing.
    """

    min_chars = 500
    min_share = 0.05
    # Readers' comments and page feet that the rules let through; never a substring of a class, which `body` may carry.
    boilerplate = (
        "footer",
        "#comments",
        "#respond",
        ".comment",
        ".comments",
        ".comment-list",
        ".commentlist",
        ".comments-area",
    )

    def text(self, html: str) -> str:
        tree = HTMLTree.parse(html)
        plain = partial(extract_plain_text, tree, alt_texts=False, list_bullets=False, preserve_formatting=True)
        main = plain(main_content=True, skip_elements=self.boilerplate)
        everything = plain(main_content=False)
        enough = len(main) >= self.min_chars and len(main) >= self.min_share * len(everything)
        return main if enough else everything


class Trafilatura:
    """Trafilatura without tables, BeautifulSoup where it finds nothing (ElectricSheep, section 4.1)."""

    def text(self, html: str) -> str:
        # Its fallbacks cost three times as much and, by its own evaluation, little changes without them.
        text = trafilatura.extract(
            html, include_comments=False, include_tables=False, fast=True, prune_xpath=["//template", "//noscript"]
        )
        return text or BeautifulSoupText().text(html)


class BeautifulSoupText:
    """All visible text in one paragraph, as in db3 (section 2.2), WeKnow and CRAG's own baseline."""

    hidden = ("script", "style", "noscript", "template")

    def text(self, html: str) -> str:
        with warnings.catch_warnings():
            # It warns of input that looks like a file name, a URL or XML.
            warnings.simplefilter("ignore")
            soup = BeautifulSoup(html, "lxml")
        for element in soup(self.hidden):
            element.decompose()
        return soup.get_text(" ", strip=True)


EXTRACTORS: dict[str, Extractor] = {
    "resiliparse": Resiliparse(),
    "trafilatura": Trafilatura(),
    "beautifulsoup": BeautifulSoupText(),
}


def extract(
    html: str,
    extractor: str = "resiliparse",
    *,
    name: str = "",
    tables: bool = True,
    table_chars: int = MAX_TABLE_CHARS,
    max_chars: int = MAX_PAGE_CHARS,
) -> Extraction:
    """Text and tables of one page; a page without markup is plain text.

    Args:
        html: the decoded page.
        extractor: a key of `EXTRACTORS`.
        name: the page's name, for titles and tables; the document's own title where empty.
        tables: whether to look for tables.
        table_chars: characters of Markdown to keep, over all tables of the page.
        max_chars: characters of the page to read.

    Raises:
        ValueError: `extractor` is unknown.
        ExtractionError: the page defeated the extractor.
    """
    if extractor not in EXTRACTORS:
        raise ValueError(f"no extractor is named {extractor!r}; there are {', '.join(EXTRACTORS)}")
    title = clean_line(encodable(name), MAX_TITLE_CHARS)
    if not has_markup(html[:max_chars]):
        text = clean_text(encodable(entities.unescape(html[:max_chars])))
        return Extraction(text, title=title, truncated=len(html) > max_chars)
    tamed, truncated = tame(html, max_chars)
    try:
        text = clean_text(EXTRACTORS[extractor].text(tamed))
        document = LexborHTMLParser(tamed)
        title = title or _title(document)
        data_tables = find_tables(document, title, table_chars) if tables else ()
        language = _language(document)
    except Exception as error:  # parsers raise errors of any type, from ValueError to RecursionError
        raise ExtractionError(f"{extractor} gave up: {type(error).__name__}") from error
    return Extraction(text, data_tables, title, language, truncated)


def _title(document: LexborHTMLParser) -> str:
    node = document.css_first("head > title")
    return clean_line(node.text(), MAX_TITLE_CHARS) if node else ""


def _language(document: LexborHTMLParser) -> str:
    root = document.root
    declared = (root.attributes.get("lang") or "" if root else "").replace("_", "-").partition("-")[0].strip().lower()
    return declared if declared.isascii() and declared.isalpha() and 2 <= len(declared) <= 3 else ""
