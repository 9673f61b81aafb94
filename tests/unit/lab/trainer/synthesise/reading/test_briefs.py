"""Briefs: the same for a seed and a number, of many kinds and topics, with facts that the passage is not told."""

import re

import pytest

from lab.trainer.synthesise.reading.briefs import (
    FACTS,
    KINDS,
    MAX_FACTS,
    MAX_WORDS,
    MIN_FACTS,
    MIN_WORDS,
    PARTS,
    TOPICS,
    Brief,
    article,
    draw,
)

COUNT = 450


@pytest.fixture(scope="module")
def briefs() -> list[Brief]:
    return [draw(3, index) for index in range(COUNT)]


def test_a_seed_and_a_number_make_one_brief(briefs: list[Brief]) -> None:
    assert [draw(3, index) for index in range(9)] == briefs[:9]
    assert all(draw(4, index) != briefs[index] for index in range(9))


def test_every_kind_of_text_and_many_topics_are_drawn(briefs: list[Brief]) -> None:
    assert {brief.order for brief in briefs} == {order for _, order, _ in KINDS}
    topics = [topic for names in TOPICS.values() for topic in names]
    assert len(topics) == len(set(topics)) > 150
    assert len({brief.topic for brief in briefs}) > 60


def test_notes_are_filled_in_and_bounded(briefs: list[Brief]) -> None:
    for brief in briefs:
        assert MIN_FACTS <= len(brief.facts) <= MAX_FACTS
        assert len(brief.open_facts) == 2
        assert not set(brief.facts) & set(brief.open_facts)
        assert MIN_WORDS <= brief.words <= MAX_WORDS
        texts = (brief.title, brief.name, *brief.facts, *brief.open_facts)
        assert not [text for text in texts if not text or re.search(r"[\[\]{}|]|  |\ba [aeio]", text)]


def test_an_articles_passages_are_about_one_thing_and_tell_different_facts(briefs: list[Brief]) -> None:
    for first in range(0, COUNT, PARTS):
        parts = briefs[first : first + PARTS]
        assert {article(first + part) for part in range(PARTS)} == {first // PARTS}
        assert len({(brief.name, brief.topic) for brief in parts}) == 1
        facts = [fact for brief in parts for fact in brief.facts]
        assert len(facts) == len(set(facts))
        # What the article's next passage tells, and what none tells.
        of_next, of_none = zip(*(brief.open_facts for brief in parts), strict=True)
        assert [fact in parts[(part + 1) % PARTS].facts for part, fact in enumerate(of_next)] == [True] * PARTS
        assert not set(of_none) & set(facts)


def test_things_are_made_up_anew(briefs: list[Brief]) -> None:
    assert len({brief.name for brief in briefs}) > 0.95 * len(briefs) / PARTS
    assert len({fact for brief in briefs for fact in brief.facts}) > 0.6 * sum(len(brief.facts) for brief in briefs)


def test_each_category_has_facts_enough() -> None:
    assert FACTS.keys() == TOPICS.keys()
    assert all(len(templates) >= PARTS * (MAX_FACTS + 1) for templates in FACTS.values())
