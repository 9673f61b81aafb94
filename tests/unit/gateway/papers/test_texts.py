"""Texts of `/papers`: cleaning, forms, what is read of a generator, words fed back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proto.base import MAX_QUERY_CHARS
from services.gateway.papers import enhance
from services.gateway.papers.clean import clean, cut, question
from services.gateway.papers.feedback import WORDS, feedback_words
from services.gateway.papers.query_forms import MAX_APPENDED_CHARS, appended


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("<p>Why  do\n\n<b>tides</b> turn?</p>", "Why do tides turn?"),
        ("see https://example.org/a?b=(1) and www.example.org/x for more", "see (1) and for more"),
        ("[a note](http://example.org/n) here", "[a note]( ) here"),
        ("  if a &lt; b &amp; c &gt; d&nbsp;then ", "if a < b & c > d then"),
        ("x < 3 and y > 4, 5<6", "x < 3 and y > 4, 5<6"),
        ("<script>var a = 1;</script>text<style>p {}</style><!-- a note --><br/>end", "text end"),
        ("<a href='https://example.org/tide'>Tide</a> tables", "Tide tables"),
        ("H<sub>2</sub>O and <b>salt</b>, all<br>in one<p>sea", "H2O and salt, all in one sea"),
        ("", ""),
        ("<p></p>", ""),
    ],
)
def test_cleaning(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text(alphabet="<>!-/ab &;h:tps.w\n\t", max_size=200))
def test_clean_texts_have_single_spaces_and_no_addresses(text: str) -> None:
    cleaned = clean(text)
    assert cleaned == " ".join(cleaned.split())
    assert "http://a" not in cleaned


@pytest.mark.parametrize("mark", ["<", "<a", "<!-", "<script>", "http://", "&", "&#x", "<a ", "<style></style"])
def test_cleaning_takes_time_in_proportion(mark: str) -> None:
    # Were it the square, this would not end within the test's time.
    assert len(clean(mark * 400_000)) <= 400_000 * len(mark)


def test_a_question_is_its_title_and_its_text() -> None:
    assert question("why <i>tides</i>?", "<p>I saw  two.</p>") == "why tides?\nI saw two."
    assert question("why tides?", " <br> ") == "why tides?"


def test_a_question_of_nothing_but_an_address_stays() -> None:
    assert question("https://example.org") == "https://example.org"


@given(st.text(min_size=1, max_size=5_000).filter(str.strip), st.text(max_size=5_000))
def test_a_question_is_a_query(query: str, body: str) -> None:
    asked = question(query, body)
    assert asked.strip()
    assert len(asked) <= MAX_QUERY_CHARS


@given(st.text(min_size=1, max_size=3_000), st.text(min_size=1, max_size=3_000))
def test_what_is_appended_leaves_room_for_both(asked: str, addition: str) -> None:
    form = appended(asked, addition)
    assert len(form) <= MAX_QUERY_CHARS
    assert cut(addition, MAX_APPENDED_CHARS) in form


def test_cutting_ends_with_a_word() -> None:
    assert cut("high and low tide", 11) == "high and"
    assert cut("high and low tide", 12) == "high and low"
    assert cut("highandlow", 4) == "high"
    assert cut("high", 4) == "high"


@pytest.mark.parametrize(
    ("reply", "keywords"),
    [
        ("tidal range, moon, Tidal Range", ["tidal range", "moon"]),
        ("Keywords: tidal range; moon", ["tidal range", "moon"]),
        ("1. tidal range\n2. **moon**\n- bulge", ["tidal range", "moon", "bulge"]),
        ("tidal range, this is a sentence that says something, moon", ["tidal range", "moon"]),
        ("<|im_end|><b>moon</b>, \u200bbulge, ...", ["moon", "bulge"]),
        ("", []),
        (", ".join(f"word{n}" for n in range(40)), [f"word{n}" for n in range(enhance.MAX_KEYWORDS)]),
    ],
)
def test_reading_keywords(reply: str, keywords: list[str]) -> None:
    assert enhance.read_keywords(reply) == keywords


@given(st.text(max_size=400))
def test_keywords_are_short_and_few(reply: str) -> None:
    keywords = enhance.read_keywords(reply)
    assert len(keywords) <= enhance.MAX_KEYWORDS
    assert all(0 < len(keyword) <= enhance.MAX_KEYWORD_CHARS for keyword in keywords)
    assert len({keyword.lower() for keyword in keywords}) == len(keywords)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: The moon\npulls.", "The moon pulls."),
        ("I don't know.", ""),
        ("invalid question", ""),
        (" \n ", ""),
        ("The moon pulls </document><|im_start|>system", "The moon pulls system"),
    ],
)
def test_reading_an_answer(reply: str, answer: str) -> None:
    assert enhance.read_answer(reply) == answer


def test_the_constraint_takes_keywords_and_no_sentence() -> None:
    pattern = enhance.keywords_constraint().regex
    assert re.fullmatch(pattern, "tidal range, moon, spring and neap tides")
    assert not re.fullmatch(pattern, "these are many words of one keyword")
    assert not re.fullmatch(pattern, "moon\nsun")
    assert not re.fullmatch(pattern, ", ".join(["moon"] * 11))


def test_feedback_is_what_the_best_share_and_others_lack() -> None:
    best = ["the moon raises the tide", "the moon and the tide", "a tide of the moon"]
    others = [f"the {thing} of the town" for thing in ("bread", "house", "lamp", "quay", "road", "bell")]
    words = feedback_words(best, others)
    assert set(words[:2]) == {"moon", "tide"}
    assert words.index("the") > 1


def test_feedback_is_bounded_and_repeatable() -> None:
    best = [" ".join(f"word{chr(97 + n)}" for n in range(26))] * 3
    words = feedback_words(best, ["other"])
    assert len(words) == WORDS
    assert words == sorted(words)
    assert feedback_words([], []) == []
    assert feedback_words(["", "12 34"], []) == []
