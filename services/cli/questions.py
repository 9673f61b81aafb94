"""Questions as the gateway takes them, from pages on disk or from CRAG records."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from proto.answer import AnswerRequest
from proto.base import MAX_PAGE_CHARS, MAX_PAGES
from services.cli.ending import wrong
from services.kit import jsonl
from services.kit.documents import as_html, decoded, is_foreign

PAGE_SUFFIXES = frozenset({".html", ".htm", ".txt"})
# UTF-8 spends at most four bytes a character, so a larger file cannot fit and need not be read.
MAX_PAGE_BYTES = 4 * MAX_PAGE_CHARS
MAX_TITLE_CHARS = 500
# Nobody's title comes later, and every page is searched.
TITLE_WITHIN = 256 * 1024
UNKNOWN_ENCODING = "it is not in UTF-8 and names no encoding; convert it, as by `iconv -f GB18030 -t UTF-8`"

# Bounded, and held up by the next tag: a page of nothing but tags that are never closed takes no longer than another.
_TITLE = re.compile(r"<title(?:\s[^<>]{0,500})?>([^<]{0,2000})", re.IGNORECASE)


class BadInput(Exception):
    """The user's input cannot be used; the message says which part, and which limit it broke."""


@dataclass(frozen=True, slots=True)
class Question:
    """The body of a request, and its gold answers, if any."""

    body: dict[str, Any]
    budget_s: float
    gold: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return str(self.body["query"]).strip()


def question(
    text: str,
    *,
    pages: Sequence[Path] = (),
    record: dict[str, Any] | None = None,
    collection: str = "",
    search: bool = False,
    query_time: str = "",
    strategy: str = "",
    budget_s: float | None = None,
    gold: Sequence[str] = (),
) -> Question:
    """Put a request together; a record's own fields are posted as they are, unless something replaces them.

    Raises:
        BadInput: a page cannot be read, or the gateway would refuse the request.
    """
    record = record or {}
    fields = ("query", "query_time", "search_results", "interaction_id")
    body: dict[str, Any] = {key: record[key] for key in fields if key in record}
    options: dict[str, Any] = {
        "query": text,
        "search_results": read_pages(pages),
        "collection": collection,
        "search": search,
        "query_time": query_time,
        "strategy": strategy,
        "budget_s": budget_s,
    }
    body |= {name: value for name, value in options.items() if value}
    try:
        request = AnswerRequest.model_validate(body)
    except ValidationError as error:
        raise BadInput(wrong(error)) from None
    return Question(body, request.budget_s, tuple(gold) or _gold(record))


def pages_in(folder: Path) -> list[Path]:
    """The pages of a folder, by name.

    Raises:
        BadInput: it is no folder, or holds no page.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    pages = sorted(path for path in folder.iterdir() if path.suffix.lower() in PAGE_SUFFIXES and path.is_file())
    if not pages:
        raise BadInput(f"{folder}: holds no page ({', '.join(sorted(PAGE_SUFFIXES))})")
    return pages


def read_pages(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Pages as search results, in the order given.

    Raises:
        BadInput: there are too many, or one cannot be read.
    """
    if len(paths) > MAX_PAGES:
        raise BadInput(f"{len(paths)} pages are more than the {MAX_PAGES} that one question may bring")
    return [_page(path) for path in paths]


def read_record(path: Path, index: int) -> dict[str, Any]:
    """The record at that index, from 0, of a file with one JSON object a line; blank lines do not count.

    Raises:
        BadInput: the file cannot be read, or has no such record.
    """
    count = 0
    try:
        for count, (number, line) in enumerate(jsonl.lines(path), 1):
            if count == index + 1:
                return jsonl.object_of(line, f"{path}:{number}")
    except jsonl.BadLine as error:
        raise BadInput(str(error)) from None
    if not count:
        raise BadInput(f"{path}: holds no records")
    raise BadInput(f"{path}: has no record {index}: it holds {count}, numbered from 0 to {count - 1}")


def _gold(record: dict[str, Any]) -> tuple[str, ...]:
    alternatives = record.get("alternative_answers") or record.get("alt_ans") or []
    answers = [record.get("answer"), *(alternatives if isinstance(alternatives, list) else [])]
    return tuple(str(answer) for answer in answers if answer not in (None, ""))


def _page(path: Path) -> dict[str, str]:
    if path.suffix.lower() not in PAGE_SUFFIXES:
        raise BadInput(f"{path}: a page's name ends in {', '.join(sorted(PAGE_SUFFIXES))}")
    try:
        text = read_text(path, is_html=path.suffix.lower() != ".txt")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    if path.suffix.lower() == ".txt":
        text = as_html(text)
    return {"page_name": _title(text) or path.name, "page_url": f"file:{path.name}", "page_result": text}


def read_text(path: Path, *, is_html: bool) -> str:
    """A file's text, by its byte order mark, by UTF-8, by the encoding that it declares, or else by Windows' own.

    Raises:
        BadInput: it cannot be read, is too large, no text, or in an unknown encoding.
    """
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= MAX_PAGE_BYTES else b""
    except OSError as error:
        raise BadInput(error.strerror or type(error).__name__) from None
    text = decoded(content)
    if "\0" in text:
        raise BadInput("it is not text")
    if not is_html and is_foreign(content):
        raise BadInput(UNKNOWN_ENCODING)
    if size > MAX_PAGE_BYTES or len(text) > MAX_PAGE_CHARS:
        raise BadInput(too_large(f"{len(text):,} characters" if text else f"{size:,} bytes"))
    if not text.strip():
        raise BadInput("it holds no text")
    return text


def too_large(size: str) -> str:
    return f"its {size} are more than the {MAX_PAGE_CHARS:,} characters that a page or document may have"


def _title(text: str) -> str:
    match = _TITLE.search(text, 0, TITLE_WITHIN)
    return " ".join(html.unescape(match[1]).split())[:MAX_TITLE_CHARS] if match else ""
