"""Phrases find what they say, and what cannot be read is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kg.generate.rules.phrases import BadPhrase, compiled, pattern, vocabulary


@pytest.mark.parametrize(
    ("phrase", "text", "matches"),
    [
        ("release", "when was it released?", True),
        ("release", "what are its releases", True),
        ("release", "a press releaser", False),
        ("=shot", "the shots", False),
        ("direct*", "its direction", True),
        ("(film|motion picture) of", "motion pictures of the year", True),
        ("the~ role of", "role of", True),
        ("the~ role of", "the role of", True),
        ("how ... high", "how very high", True),
        ("how ... high", "highly, how", False),
        ("^ who", "  who is it", True),
        ("^ who", "tell me who", False),
        ("capital of the~ _", "the capital of the ______?", True),
        ("capital of the~ _", "the capital of it", False),
        ("between <n> and <n>", "between 1,000 and $2.5", True),
        ("p/e", "its p/e?", True),
        ("price to earnings", "price-to-earnings ratio", True),
        ("write", "who wrote it", True),
    ],
)
def test_what_a_phrase_finds(phrase: str, text: str, matches: bool) -> None:
    assert (compiled((phrase,)).search(text) is not None) is matches


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("who played captain reed in ______?", "captain reed"),
        ("who played the role of neo?", "neo"),
        ("who played ______?", None),
    ],
)
def test_a_value_is_taken_over(text: str, value: str | None) -> None:
    match = compiled(("play the~ (role of)~ <text>",)).search(text)
    assert (match["value"] if match else None) == value


@pytest.mark.parametrize("phrase", ["", "   ", "(film", "film)", "a | b", "x" * 400])
def test_what_cannot_be_read_is_refused(phrase: str) -> None:
    with pytest.raises(BadPhrase):
        pattern(phrase)


def test_no_phrase_finds_nothing() -> None:
    assert compiled(()).search("anything at all") is None


def test_a_vocabulary_holds_all_words_with_their_forms() -> None:
    assert {"market", "markets", "cap", "value", "valued", "up"} <= vocabulary(["market (cap|value)", "=up"])


@given(st.text(alphabet="abc ()|~_*=.<>n^", max_size=30))
def test_any_text_is_a_phrase_or_refused(text: str) -> None:
    try:
        expression = pattern(text)
    except BadPhrase:
        return
    re.compile(expression)
