"""Hostile markup is made safe before a native parser sees it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.retriever import markup
from services.retriever.markup import clean_line, clean_text, encodable, has_markup

steady = settings(derandomize=True, deadline=None, max_examples=150)


def tame(html: str) -> str:
    return markup.tame(html)[0]


INSIDE = "<div>" * (markup.MAX_DEPTH + 1)


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><!-- <div> --><body><p title='a > b'>one<br>two<ul><li>x</ul><b>y</b></body></html>",
        "<div><span>x</span></div>" * 1_000,
        # A closing tag closes what was opened inside.
        "<div><b><i>x</div>" * 400,
        f'<p data-words="{"word " * 1_000}">x</p>',
        # Markup in scripts and comments is none.
        f"<script>{INSIDE}</script>x",
        f"<!--{INSIDE}-->x",
        f"<STYLE>{INSIDE}</style>x",
        f"<script>{INSIDE}",
    ],
    ids=["ordinary", "siblings", "closing", "one long attribute", "script", "comment", "style", "open script"],
)
def test_a_page_within_the_caps_passes_untouched(page: str) -> None:
    assert tame(page) == page


def test_nesting_beyond_the_cap_loses_tags_and_keeps_text() -> None:
    depth = markup.MAX_DEPTH + 44
    tamed = tame("<div>" * depth + "deep" + "</div>" * depth + "<p>after")
    assert tamed.count("<div>") == tamed.count("</div>") == markup.MAX_DEPTH
    assert "deep" in tamed
    assert tamed.endswith("<p>after")


def test_times_figures_and_infoboxes_are_plain_elements() -> None:
    page = (
        "<figure class=a><TIME>7 pm</TIME></figure><aside>note<aside class=PI-BACKGROUND>fact</aside></aside></aside>"
    )
    plain = "<div class=a><span>7 pm</span></div><aside>note<div class=PI-BACKGROUND>fact</div></aside></aside>"
    assert tame(page) == plain


def test_lists_and_formatting_have_lower_caps() -> None:
    lists = tame("<ul><li>" * 100 + "x")
    assert lists.count("<ul>") == markup.MAX_LIST_DEPTH
    assert lists.count("<li>") == 100
    fonts = tame("".join(f"<font size={n}>" for n in range(100)) + "<p>x")
    assert fonts.count("<font") == markup.MAX_FORMATTING_DEPTH


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_a_tag_with_too_many_attributes_loses_them(quote: str) -> None:
    many = " ".join(f"a{n}={quote}>{quote}" if quote else f"a{n}=1" for n in range(1_000))
    assert tame(f"<td {many}>x</td>") == "<td>x</td>"


def test_a_page_ends_at_the_caps_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert markup.tame("<p>abc", 4) == ("<p>a", "cut at 4 characters of HTML")
    monkeypatch.setattr(markup, "MAX_TAGS", 3)
    assert markup.tame("<p>1<p>2<p>3<p>4") == ("<p>1<p>2<p>3", "cut at 3 tags")
    assert markup.tame("<p>1<p>2<p>3") == ("<p>1<p>2<p>3", "")


def test_surrogates_become_characters() -> None:
    assert encodable("a\ud83d\ude00b") == "a😀b"
    assert encodable("a\ud83db") == "a\ufffdb"


def test_clean_text_and_lines() -> None:
    assert clean_text("\n\n a\t b\u00a0c \r\n\n\n\n d\x00e\u200bf\xad\ufeff\x1b\n") == "a b c\n\ndef"
    assert clean_text("a\rb\x0cc\x1fd") == "a\nb\nc\nd"
    assert clean_text(" \x00\n\u200b ") == ""
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
    once = tame("".join(pieces))
    assert tame(once) == once


@pytest.mark.parametrize("start", ["<!-->", "<!--->", "<svg><style/></svg>", "<math><title/></math>"])
def test_the_caps_hold_behind_what_ends_at_once(start: str) -> None:
    lists = tame(f"{start}{'<ul><li>kept' * 100}").count("<ul>")
    assert lists <= markup.MAX_LIST_DEPTH
