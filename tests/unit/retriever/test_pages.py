"""Pages to chunks, as a worker process does it."""

import pickle
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proto.retrieve import ChunkerName, ExtractorName, RankingName
from services.retriever import markup, tables
from services.retriever.chunk import CHUNKERS
from services.retriever.extract import EXTRACTORS
from services.retriever.pages import PageOptions, content_key, drop_duplicates, process_page
from services.retriever.ranking import RANKINGS
from tests.unit.retriever.test_chunk import TOKENIZER

steady = settings(derandomize=True, deadline=None, max_examples=60)

SENTENCE = "The ferry to Brandholm leaves at seven in the morning and comes back late in the evening. "
ROWS = "".join(f"<tr><td>Day {n}<td>{n % 24}:00<td>Captain number {n} of the line</tr>" for n in range(60))
PAGE = f"""<html lang="en"><head><title>Ferries</title></head><body><main><h1>Timetable</h1><p>{SENTENCE * 30}</p>
<table><tr><th>Day<th>Time<th>Captain</tr>{ROWS}</table></main></body></html>"""


def test_what_requests_may_name_there_is() -> None:
    assert set(get_args(ChunkerName)) == set(CHUNKERS)
    assert set(get_args(RankingName)) == set(RANKINGS)
    assert set(get_args(ExtractorName)) <= set(EXTRACTORS)


def test_empty_and_repeated_pages_are_dropped_with_the_reason() -> None:
    distinct, dropped = drop_duplicates(["<p>a", "", "<p>b", " <p>a\n", " \n", "<p>a"])
    assert distinct == [0, 2]
    assert [(page.stage, page.reason, page.detail) for page in dropped] == [
        ("page:1", "empty", ""),
        ("page:3", "duplicate", "same as page 0"),
        ("page:4", "empty", ""),
        ("page:5", "duplicate", "same as page 0"),
    ]
    assert content_key("a\ud800") != content_key("a")


@steady
@given(st.lists(st.sampled_from(["", " ", "a", "b", "c", " c"])))
def test_each_page_is_kept_or_dropped_once(pages: list[str]) -> None:
    distinct, dropped = drop_duplicates(pages)
    indices = [int(page.stage.removeprefix("page:")) for page in dropped]
    assert sorted([*distinct, *indices]) == list(range(len(pages)))
    assert [pages[index].strip() for index in distinct] == list(dict.fromkeys(filter(None, map(str.strip, pages))))
    for index, page in zip(indices, dropped, strict=True):
        if page.reason == "duplicate":
            original = int(page.detail.removeprefix("same as page "))
            assert pages[original].strip() == pages[index].strip()
            assert original in distinct


def test_text_and_tables_become_chunks() -> None:
    page = process_page(PAGE, PageOptions())
    chunking = page.chunking
    assert page.title == "Ferries"
    assert page.tables_markdown.startswith("Ferries: Timetable\n\n| Day | Time | Captain |")
    kinds = [child.kind for child in chunking.children]
    assert kinds == sorted(kinds, key=["text", "table"].index)
    head = "Ferries: Timetable\n\n| Day | Time | Captain |\n| --- | --- | --- |\n"
    for chunk in (*chunking.children, *chunking.parents):
        if chunk.kind == "text":
            assert chunk.text == page.text[chunk.start : chunk.end]
        else:
            assert chunk.text == head + page.tables_markdown[chunk.start : chunk.end]
            assert len(chunk.text) <= 1_200
    for child in chunking.children:
        assert child.parent is not None
        parent = chunking.parents[child.parent]
        assert parent.kind == child.kind
        assert parent.start <= child.start < child.end <= parent.end
    table = "\n".join(chunk.text for chunk in chunking.children if chunk.kind == "table")
    assert all(f"| Day {n} | {n % 24}:00 | Captain number {n} of the line |" in table for n in range(60))


def test_offsets_of_a_second_table_are_its_own() -> None:
    small = "<table><tr><th>{0}<th>b<tr><td>{0}1<td>2</table>"
    page = process_page(small.format("x") + small.format("y"), PageOptions(), "Name")
    tables = [chunk for chunk in page.chunking.parents if chunk.kind == "table"]
    assert [chunk.text.splitlines()[0] for chunk in tables] == ["Name", "Name"]
    assert [page.tables_markdown[chunk.start : chunk.end] for chunk in tables] == ["| x1 | 2 |", "| y1 | 2 |"]


def test_options_reach_their_stage() -> None:
    assert process_page(PAGE, PageOptions(tables=False)).tables_markdown == ""
    sized = process_page(PAGE, PageOptions(chunker="parent-child", parent_chars=500, tables=False)).chunking
    assert 450 < max(len(parent.text) for parent in sized.parents) <= 500
    tokens = process_page(PAGE, PageOptions(chunker="tokens", tokenizer=TOKENIZER, tables=False)).chunking
    assert tokens.parents == []
    assert all(child.parent is None for child in tokens.children)
    whole, cut = process_page(PAGE, PageOptions()), process_page(PAGE, PageOptions(max_chars=100))
    over = f"cut at 100 characters of text, before the last {len(whole.text) - 100:,}"
    assert (whole.unread, cut.unread, cut.text) == ((), (over,), whole.text[:100].rstrip())


def test_what_is_not_read_of_tables_and_tags_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table = "<table><tr><th>a<th>b" + "<tr><td>1<td>2" * 40 + "</table>"
    assert process_page(table, PageOptions()).unread == ()
    assert process_page(table, PageOptions(tables=False)).unread == ()
    monkeypatch.setattr(tables, "MAX_CELLS", 50)
    monkeypatch.setattr(markup, "MAX_TAGS", 90)
    told = process_page(table, PageOptions()).unread
    assert told == ("cut at 90 tags", "tables cut at 60,000 characters, 50 cells or 200 tables")


@steady
@given(
    html=st.lists(
        st.sampled_from([PAGE, "<table>", "<tr>", "<td>x", "<th>y", SENTENCE, "<p>", "</table>", "\x00", "Why?"]),
        max_size=20,
    ).map("".join),
    extractor=st.sampled_from(list(EXTRACTORS)),
    chunker=st.sampled_from([name for name in CHUNKERS if name != "tokens"]),
)
def test_any_page_with_any_options(html: str, extractor: str, chunker: str) -> None:
    page = process_page(html, PageOptions(extractor=extractor, chunker=chunker))
    chunking = page.chunking
    for child in chunking.children:
        if child.parent is None:
            assert child.kind == "text"
        else:
            assert chunking.parents[child.parent].kind == child.kind
    assert pickle.loads(pickle.dumps(page)) == page  # noqa: S301
