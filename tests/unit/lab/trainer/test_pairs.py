"""Pairs of the extractive reader: what is read and refused, what is made up, and how they are kept apart."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.trainer import dataset, near, pairs, scenes
from lab.trainer.errors import BadDataset
from lab.trainer.pairs import Pair
from lab.trainer.synthesise.reading import articles

LINE: dict[str, Any] = {
    "id": "a",
    "kind": "news",
    "title": "Tower",
    "passage": "The tower was drawn by Marta Lindqvist.",
    "question": "who drew the tower?",
    "answer": "Marta Lindqvist",
    "start": 23,
}


def test_lines_are_read_with_those_that_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(LINE) + "\n\n" + json.dumps(LINE | {"answer": "", "start": -1, "more": 1}) + "\n")
    first, second = pairs.read([path])
    assert first.passage[first.start :].startswith(first.answer)
    assert (second.answer, second.start) == ("", -1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"start": 22}, "does not stand"),
        ({"start": -1}, "has a start"),
        ({"answer": ""}, "has a start"),
        ({"start": 10_000}, "does not stand"),
        ({"question": ""}, "question"),
        ({"passage": 7}, "passage"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | change) + "\n")
    with pytest.raises(BadDataset, match=why) as caught:
        pairs.read([path])
    assert f"{path}:2" in str(caught.value)


@pytest.fixture(scope="module")
def made() -> list[Pair]:
    return list(pairs.made_up(300, 1))


def test_made_up_pairs_are_the_same_for_a_seed_and_of_both_kinds(made: list[Pair]) -> None:
    assert made[:30] == list(pairs.made_up(30, 1))
    assert made[:30] != list(pairs.made_up(30, 2))
    assert 0.2 < sum(bool(pair.answer) for pair in made) / len(made) < 0.8
    assert len({pair.id for pair in made}) == len(made)
    assert set(pairs.sources(made)) == {"prose", "web"}


@pytest.mark.parametrize("source", ["prose", "dense", "scenes", "made up"])
def test_what_belongs_together_stands_on_one_side_of_a_split(made: list[Pair], source: str) -> None:
    """An article's passages and their twins, a scene's contexts, a record's passages, each told by other means."""
    sources: dict[str, tuple[Callable[[], list[Pair]], Callable[[Pair], str]]] = {
        "prose": (lambda: list(map(articles.grouped, pairs.read([Path(str(articles.SAMPLE))]))), articles.article),
        "dense": (lambda: near.pairs(near.TAUGHT), lambda pair: re.split(r"\.|-near", pair.id)[0]),
        "scenes": (lambda: scenes.pairs(scenes.FITTED), lambda pair: pair.id.rpartition(".")[0]),
        "made up": (lambda: made, lambda pair: pair.group),
    }
    read, belongs = sources[source]
    items = read()
    assert len({pair.passage for pair in items}) > len(set(map(belongs, items))) > 20
    learnt, held_out = dataset.split(items, pairs.group_of, share=0.2, seed=0)
    assert learnt
    assert held_out
    assert not set(map(belongs, learnt)) & set(map(belongs, held_out))


def test_a_pair_of_ones_own_is_grouped_by_its_passage_unless_it_says_otherwise() -> None:
    pair = articles.grouped(Pair.model_validate(LINE))
    assert pairs.group_of(pair) == pair.passage
    assert pairs.group_of(articles.grouped(pair.model_copy(update={"id": "4-1-q0", "group": "g"}))) == "g"


def test_distractors_are_of_the_same_kind_and_do_not_hold_the_answer(made: list[Pair]) -> None:
    by_id = {pair.id: pair for pair in made}
    others = pairs.distractors(made, share=1.0, seed=0)
    assert len(others) > 0.8 * sum(bool(pair.answer) for pair in made)
    for one in others:
        own, other = (by_id[name] for name in one.id.split("+"))
        assert (one.question, one.passage, one.kind) == (own.question, other.passage, own.kind)
        assert own.answer.lower() not in one.passage.lower()
        assert (one.answer, one.start) == ("", -1)
    assert pairs.distractors(made, share=0.0, seed=0) == []


def test_distractors_of_the_same_title_come_often() -> None:
    alike = [
        Pair(kind="manual", title="Pump", passage=f"Valve opens {number}.", question="which?", answer="opens", start=6)
        for number in range(20)
    ]
    near = Pair(kind="manual", title="Pump", passage="It is red.", question="which?")
    far = [Pair(kind="manual", title=str(number), passage=f"Far {number}.", question="which?") for number in range(300)]
    others = pairs.distractors([*alike, near, *far], share=1.0, seed=1)
    assert sum(one.title == "Pump" for one in others) >= 3
