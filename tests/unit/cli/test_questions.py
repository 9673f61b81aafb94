"""Pages and records from disk: what is posted, and what is said of a file that cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest

from proto.answer import AnswerRequest
from proto.base import MAX_PAGE_CHARS, MAX_PAGES
from services.cli import questions
from services.cli.questions import BadInput, pages_in, question, read_pages, read_record

RECORDS: list[dict[str, Any]] = [
    {"query": "first?", "answer": "yes"},
    {
        "interaction_id": "abc",
        "query": "second?",
        "query_time": "02/28/2024, 10:04:54 PT",
        "answer": "42",
        "alternative_answers": ["forty-two"],
        "domain": "open",
        "search_results": [{"page_name": "P", "page_result": "<p>42</p>", "page_last_modified": None}],
    },
]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_text("\n\n".join(map(json.dumps, RECORDS)))
    return path


def test_a_records_own_fields_are_posted_as_they_are_unless_replaced(records: Path) -> None:
    prepared = question("", record=read_record(records, 1), strategy="db3", budget_s=5)
    sent = {key: RECORDS[1][key] for key in ("query", "query_time", "search_results", "interaction_id")}
    assert prepared.body == {**sent, "strategy": "db3", "budget_s": 5}
    assert prepared.gold == ("42", "forty-two")
    assert prepared.text == "second?"
    assert question("third?", record=read_record(records, 0)).body == {"query": "third?"}


@pytest.mark.parametrize(
    ("content", "index", "message"),
    [
        (None, 0, "No such file"),
        ("\n", 0, "holds no records"),
        ("hello", 0, ":1: not JSON"),
        ("{}\n\n{}", 2, "has no record 2: it holds 2, numbered from 0 to 1"),
    ],
)
def test_bad_record_files(tmp_path: Path, content: str | None, index: int, message: str) -> None:
    path = tmp_path / "records.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInput, match=message):
        read_record(path, index)


def test_a_collection_stands_beside_pages_or_alone() -> None:
    assert question("Who?", collection="village").body == {"query": "Who?", "collection": "village"}
    assert question("Who?", search=True).body == {"query": "Who?", "search": True}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("when?", {"query_time": "yesterday"}, "query_time: must be like"),
        ("x" * 3_000, {}, "query: "),
        ("", {"record": {"answer": "no question"}}, "query: Field required"),
        ("Who?", {"collection": "../kg"}, "collection"),
    ],
)
def test_a_request_that_the_gateway_would_refuse_is_refused_here(
    text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        question(text, **options)


def test_pages_become_search_results(tmp_path: Path) -> None:
    (tmp_path / "b.HTM").write_text("<html><title>\n Tom &amp; Jerry </title><p>hi")
    (tmp_path / "a.txt").write_text("1 < 2\n\nsecond paragraph")
    (tmp_path / "notes.pdf").write_bytes(b"%PDF")
    text, page = read_pages(pages_in(tmp_path))
    assert (text["page_name"], text["page_url"]) == ("a.txt", "file:a.txt")
    assert text["page_result"] == "<html><body><p>1 &lt; 2</p>\n<p>second paragraph</p>\n</body></html>"
    assert (page["page_name"], page["page_url"]) == ("Tom & Jerry", "file:b.HTM")
    AnswerRequest.model_validate({"query": "q", "search_results": [text, page]})


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ('<title lang="en"\ndir="ltr">Two words</title>', "Two words"),
        ("<TITLE>Never closed", "Never closed"),
        ("<titles>none</titles><p>none", ""),
        ("<p>" + " " * questions.TITLE_WITHIN + "<title>too late</title>", ""),
        # Where each tag is looked at until the page's end, these take hours.
        ("<title" * (MAX_PAGE_CHARS // 6), ""),
        ("<title " * (MAX_PAGE_CHARS // 7), ""),
        ("<title>" * (MAX_PAGE_CHARS // 7), ""),
    ],
    ids=["attributes", "open", "another", "late", "tags", "spaces", "closed"],
)
def test_a_title_is_looked_for_where_one_may_be(tmp_path: Path, html: str, title: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(html)
    assert read_pages([path])[0]["page_name"] == (title or "page.html")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\ufeffcafé".encode(), "café"),
        ("café".encode("cp1252"), "café"),
        ('<meta charset="iso-8859-2">Łódź'.encode("iso-8859-2"), '<meta charset="iso-8859-2">Łódź'),
        (b'<meta charset="utf-8">caf\xc3\xa9 \xff!', '<meta charset="utf-8">café \ufffd!'),
        (b'<meta charset="no-such">caf\xe9', '<meta charset="no-such">café'),
    ],
)
def test_pages_are_decoded_as_browsers_would(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(content)
    assert read_pages([path])[0]["page_result"] == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.html", None, "none.html: No such file"),
        ("page.pdf", b"%PDF", r"ends in .htm, .html, .txt"),
        ("empty.html", b" \n", "it holds no text"),
        ("binary.html", b"<p>\0</p>", "is not text"),
        ("tower.txt", "Маяк построен".encode("cp1251"), "is not in UTF-8 and names no encoding; convert it"),
        (
            "large.html",
            b"x" * (MAX_PAGE_CHARS + 1),
            f"{MAX_PAGE_CHARS + 1:,} characters are more than the {MAX_PAGE_CHARS:,}",
        ),
        ("huge.html", b"x" * (4 * MAX_PAGE_CHARS + 1), f"{4 * MAX_PAGE_CHARS + 1:,} bytes are more than"),
    ],
)
def test_bad_pages(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_pages([tmp_path / name])


def test_too_many_pages_or_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"{MAX_PAGES + 1} pages are more than the {MAX_PAGES}"):
        read_pages([tmp_path / "a.html"] * (MAX_PAGES + 1))
    with pytest.raises(BadInput, match="holds no page"):
        pages_in(tmp_path)
    with pytest.raises(BadInput, match="no such folder"):
        pages_in(tmp_path / "none")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(BadInput, match="Is a directory"):
        read_pages([tmp_path / "folder.html"])
