"""Questions on dense passages, and the threshold that is fitted on such."""

import re
from importlib.resources.abc import Traversable
from statistics import mean

import pytest

from lab.trainer import near
from lab.trainer.reader_measure import Reply, _threshold
from lab.trainer.synthesise.reading import written


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize("file", [near.FITTED, near.TAUGHT])
def test_half_of_the_questions_on_each_passage_are_answered_there(file: Traversable) -> None:
    pairs = near.pairs(file)
    assert len({pair.id for pair in pairs}) == len(pairs)
    for passage in near.passages(file):
        answered = [bool(question.answer) for question in passage.questions]
        assert sum(answered) == len(answered) / 2
        assert all(passage.passage[one.start :].startswith(one.answer) for one in passage.questions if one.answer)


def test_what_is_taught_is_on_other_passages_and_words_in_common_tell_nothing() -> None:
    taught = near.passages(near.TAUGHT)
    assert not {one.passage for one in taught} & {pair.passage for pair in near.pairs()}
    covered: dict[bool, list[float]] = {True: [], False: []}
    for one in taught:
        there = words(f"{one.title} {one.passage}")
        for question in one.questions:
            assert question.answer in one.passage
            asked = words(question.question)
            covered[bool(question.answer)].append(len(asked & there) / len(asked))
    assert abs(mean(covered[True]) - mean(covered[False])) < 0.1
    assert len(covered[True]) == len(covered[False])


def test_questions_on_an_article_come_with_all_of_it_or_with_their_own_part() -> None:
    parts: dict[str, set[str]] = {}
    for one in near.passages(near.TAUGHT):
        parts.setdefault(f"dense:{one.article}", set()).add(one.passage)
    shown: dict[str, set[tuple[str, ...]]] = {}
    records = written.about_passages(100_000, seed=1)
    assert len(records) == len(near.pairs(near.TAUGHT))
    for record in records:
        assert record.kind == "unknown" or any(record.answer in passage for passage in record.passages)
        shown.setdefault(record.group, set()).add(record.passages)
    several = [group for group, of in parts.items() if len(of) > 1]
    whole = [group for group in several if len(shown[group]) == 1]
    assert all(parts[group] <= set(*shown[group]) for group in whole)
    assert 0.6 < len(whole) / len(several) < 0.9
    assert all(len(shown[group]) == len(parts[group]) for group in set(several) - set(whole))


@pytest.mark.parametrize(
    ("replies", "threshold"),
    [
        ([("right", 0.9), ("right", 0.8), ("wrong", 0.7)], 0.8),
        ([("right", 0.9), ("wrong", 0.8), ("right", 0.7), ("right", 0.6)], 0.6),
        # None gains.
        ([("wrong", 0.9), ("right", 0.8)], 1.0),
    ],
)
def test_the_threshold_is_where_answers_gain_most(replies: list[tuple[str, float]], threshold: float) -> None:
    pair = near.pairs()[0].model_copy(update={"answer": "right"})
    assert _threshold([(pair, Reply(text, chance)) for text, chance in replies]) == threshold
