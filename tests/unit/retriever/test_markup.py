"""Hostile markup is made safe before a native parser sees it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.retriever import markup
from services.retriever.markup import clean_line, clean_text, encodable, has_markup, tame

steady = settings(derandomize=True, deadline=None, max_examples=150)


def test_an_ordinary_page_passes_untouched() -> None:
    page = "<!DOCTYPE html><html><!-- <div> --><body><p title='a > b'>one<br>two<ul><li>x</ul><b>y</b></body></html>"
    assert tame(page) == (page, False)


def test_nesting_beyond_the_cap_loses_tags_and_keeps_text() -> None:
    depth = markup.MAX_DEPTH + 44
    tamed, truncated = tame("<div>" * depth + "deep" + "</div>" * depth + "<p>after")
    assert tamed.count("<div>") == tamed.count("</div>") == markup.MAX_DEPTH
    assert "deep" in tamed
    assert tamed.endswith("<p>after")
    assert not truncated


def test_siblings_are_not_nesting() -> None:
    page = "<div><span>x</span></div>" * 1_000
    assert tame(page) == (page, False)


def test_lists_and_formatting_have_lower_caps() -> None:
    lists, _ = tame("<ul><li>" * 100 + "x")
    assert lists.count("<ul>") == markup.MAX_LIST_DEPTH
    assert lists.count("<li>") == 100
    fonts, _ = tame("".join(f"<font size={n}>" for n in range(100)) + "<p>x")
    assert fonts.count("<font") == markup.MAX_FORMATTING_DEPTH


def test_a_closing_tag_closes_what_was_opened_inside() -> None:
    page = "<div><b><i>x</div>" * 400
    assert tame(page)[0] == page


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_a_tag_with_too_many_attributes_loses_them(quote: str) -> None:
    many = " ".join(f"a{n}={quote}>{quote}" if quote else f"a{n}=1" for n in range(1_000))
    assert tame(f"<td {many}>x</td>")[0] == "<td>x</td>"


def test_one_long_attribute_is_kept() -> None:
    page = f'<p data-words="{"word " * 1_000}">x</p>'
    assert tame(page)[0] == page


def test_markup_inside_scripts_and_comments_does_not_count() -> None:
    inside = "<div>" * (markup.MAX_DEPTH + 1)
    for page in (f"<script>{inside}</script>x", f"<!--{inside}-->x", f"<STYLE>{inside}</style>x", f"<script>{inside}"):
        assert tame(page) == (page, False)


def test_a_page_ends_at_the_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tame("<p>abc", 4) == ("<p>a", True)
    monkeypatch.setattr(markup, "MAX_TAGS", 3)
    assert tame("<p>1<p>2<p>3<p>4") == ("<p>1<p>2<p>3", True)


def test_surrogates_become_characters() -> None:
    assert encodable("a\ud83d\ude00b") == "a😀b"
    assert encodable("a\ud83db") == "a\ufffdb"


def test_clean_text() -> None:
    assert clean_text("\n\n a\t b\u00a0c \r\n\n\n\n d\x00e\u200bf\xad\ufeff\x1b\n") == "a b c\n\ndef"
    assert clean_text("a\rb\x0cc\x1fd") == "a\nb\nc\nd"
    assert clean_text(" \x00\n\u200b ") == ""


def test_clean_line() -> None:
    assert clean_line("  a\n\n b  c", 100) == "a b c"
    assert clean_line("abc def", 4) == "abc"


def test_has_markup() -> None:
    assert not has_markup("1 < 2 and 3 > 2 & <3")
    assert has_markup("x<br")
    assert has_markup("<!-- x -->")


@steady
@given(st.text())
def test_clean_text_is_clean_and_stable(text: str) -> None:
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe]| \n|\n |  |\n\n\n", cleaned)
    cleaned.encode()


@steady
@given(
    st.lists(st.sampled_from(["<div>", "</div>", "<ul>", "</ul>", "<b>", "</b>", "<p>", "<!--", "-->", "<", "x", '="']))
)
def test_taming_twice_is_taming_once(pieces: list[str]) -> None:
    once, truncated = tame("".join(pieces))
    assert tame(once) == (once, False)
    assert not truncated
