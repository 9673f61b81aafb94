"""Filters: literal answers found at one place, questions that give nothing away, twins without an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.trainer.synthesise.reading import filters

PASSAGE = (
    "The Velna Bridge was opened in 1911 by the engineer Ida Morsen. It is 240 metres long. Because the old ferry had "
    "sunk, the town paid for it with a loan of 30,000 crowns. In 1954 Ida Morsen's son painted it green, and in 1990 "
    "it was closed for trains."
)


@pytest.mark.parametrize(
    ("answer", "question", "found"),
    [
        ("1911", "When was the Velna Bridge opened?", "1911"),
        ("the old ferry had sunk.", "Why did the town need a bridge?", "the old ferry had sunk"),
        ("IDA MORSEN", "Which engineer opened the Velna Bridge?", "Ida Morsen"),
        ("30,000 crowns", "How much was the loan?", "30,000 crowns"),
    ],
)
def test_an_answer_is_found_as_the_passage_writes_it(answer: str, question: str, found: str) -> None:
    place = filters.locate(answer, question, PASSAGE)
    assert isinstance(place, tuple)
    start, written = place
    assert written == found == PASSAGE[start : start + len(found)]


def test_of_two_places_the_one_in_the_sentence_that_is_asked_for_counts() -> None:
    place = filters.locate("Ida Morsen", "Whose son painted the bridge?", PASSAGE)
    assert place == (PASSAGE.rindex("Ida Morsen"), "Ida Morsen")


@pytest.mark.parametrize(
    ("answer", "question", "flaw"),
    [
        ("Ida Norsen", "Who opened it?", "answer is not in the passage"),
        ("191", "When was the bridge opened?", "answer is not in the passage"),
        ("it", "What was closed for trains?", "answer is a pronoun"),
        ("...", "When was the bridge opened?", "answer's length"),
        (" ".join(PASSAGE.split()[:13]), "What is told?", "answer's length"),
        ("240 metres", "Is the bridge 240 metres long?", "question holds the answer"),
        ("in", "When was something done?", "answer stands in several places"),
    ],
)
def test_an_answer_that_is_of_no_use(answer: str, question: str, flaw: str) -> None:
    assert filters.locate(answer, question, PASSAGE) == flaw


@pytest.mark.parametrize(
    ("question", "flaw"),
    [
        ("When was the Velna Bridge opened?", ""),
        ("The Velna Bridge was opened.", "no question"),
        ("Which bridge?", "no question"),
        ("Who opened the bridge? Who closed it?", "no question"),
        ("How " + "very " * 30 + "long is the bridge?", "no question"),
        ("Which bridge\nis the bridge?", "no question"),
        ("What does the text say of the bridge?", "asks about the text"),
        ("What is the weather like today?", "names nothing of the passage"),
    ],
)
def test_questions_of_no_use(question: str, flaw: str) -> None:
    assert filters.question_flaw(question, PASSAGE) == flaw


@pytest.mark.parametrize(
    ("passage", "flaw"),
    [
        (PASSAGE, ""),
        ("Too short.", "passage's length"),
        ("word " * 400, "passage's length"),
        (PASSAGE + " It is 240 metres long, they say. It is 240 metres long, they say.", "passage repeats itself"),
        (PASSAGE + " Dear [Name of the Recipient], come.", "passage has gaps to fill in"),
    ],
)
def test_passages_of_no_use(passage: str, flaw: str) -> None:
    assert filters.passage_flaw(passage) == flaw


def test_a_question_that_names_what_the_passage_does_not() -> None:
    assert filters.strange("When did Ida Morsen open the bridge in Norway?", PASSAGE)
    assert filters.strange("Who opened the bridge in 1912?", PASSAGE)
    assert not filters.strange("Who opened the Velna Bridge in 1911?", PASSAGE)


@pytest.mark.parametrize(
    ("reply", "answer", "agrees"),
    [
        ("the Velna Bridge", "Velna Bridge", True),
        ("1911", "opened in 1911", True),
        ("the old ferry had sunk", "because the old ferry had sunk", True),
        ("1990", "1911", False),
        ("Ida Morsen's son", "Ida", False),
        ("", "1911", False),
    ],
)
def test_replies_agree_by_most_words_or_as_a_part(reply: str, answer: str, agrees: bool) -> None:
    assert filters.agree(reply, answer) is agrees


@pytest.mark.parametrize(
    ("passage", "answer", "title", "rest"),
    [
        (PASSAGE, "240 metres", "A bridge", PASSAGE.replace(" It is 240 metres long.", "")),
        # The rest or the title still tells it, or too little is left.
        (PASSAGE, "Ida Morsen", "A bridge", ""),
        (PASSAGE, "240 metres", "240 metres of bridge", ""),
        ("It is old. It is green.", "green", "A bridge", ""),
    ],
)
def test_a_cut_takes_the_answers_sentence_and_nothing_else(passage: str, answer: str, title: str, rest: str) -> None:
    assert filters.without(passage, passage.index(answer), answer, title) == rest


@pytest.mark.parametrize(
    ("question", "swapped"),
    [
        ("Who opened the bridge in 1911?", "Who opened the bridge in 1914?"),
        ("When did Ida Morsen open it?", "When did Kalbro Morsen open it?"),
        ("Who opened it?", ""),
        ("Did it happen on Monday or in March?", ""),
        # The passage tells this too.
        ("How much were the 30,000 crowns?", ""),
    ],
)
def test_a_question_about_something_else(question: str, swapped: str) -> None:
    passage = f"{PASSAGE} It was sold for 30,004 crowns."
    assert filters.swapped(question, passage, ("4", "Kalbro")) == swapped


TEXT = st.text("aB1 .!?\n\"'", max_size=80)


@given(TEXT)
def test_sentences_lie_in_order_within_the_text(text: str) -> None:
    bounds = filters.sentences(text)
    edges = [edge for bound in bounds for edge in bound]
    assert edges == sorted(edges)
    assert (edges[0], edges[-1]) == (0, len(text))


@given(TEXT, TEXT, TEXT)
def test_what_is_located_is_a_span(answer: str, question: str, passage: str) -> None:
    place = filters.locate(answer, question, passage)
    if isinstance(place, tuple):
        start, written = place
        assert passage[start : start + len(written)] == written != ""
