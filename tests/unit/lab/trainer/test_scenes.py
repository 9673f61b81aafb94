"""Scenes, of whose questions some are taught and on others confidence is fitted."""

import random
from collections import Counter
from datetime import UTC, datetime
from importlib.resources.abc import Traversable
from typing import Literal

import pytest

from lab.trainer import scenes


@pytest.mark.parametrize("file", [scenes.FITTED, scenes.TAUGHT], ids=["fitted", "taught"])
def test_each_scene_answers_about_half_of_its_questions(file: Traversable) -> None:
    all_scenes = scenes.scenes(file)
    assert len({scene.id for scene in all_scenes}) == len(all_scenes)
    assert len({text for scene in all_scenes for text in scene.contexts if len(text) > 200}) > 2 * len(all_scenes)
    for scene in all_scenes:
        kinds = [question.kind for question in scene.questions]
        assert {"answer"} < set(kinds), scene.id
        assert 2 <= kinds.count("answer") <= 4, scene.id
        assert all(bool(question.answer) == (question.kind != "idk") for question in scene.questions), scene.id
    shares = Counter(question.kind for scene in all_scenes for question in scene.questions)
    assert 0.45 < shares["answer"] / shares.total() < 0.55
    assert shares["invalid"] > 0.03 * shares.total()
    sorts = Counter(scene.sort for scene in all_scenes)
    assert 0.4 < sorts["WEB"] / sorts.total() < 0.6
    assert min(Counter(scene.domain for scene in all_scenes).values()) > 0.08 * len(all_scenes)


@pytest.mark.parametrize("file", [scenes.DOCUMENTS, scenes.DOCUMENTS_FITTED], ids=["taught", "fitted"])
def test_documents_leave_a_third_of_the_questions_open_and_say_yes_as_often_as_no(file: Traversable) -> None:
    for scene in scenes.scenes(file):
        answers = Counter(question.answer for question in scene.questions)
        assert (answers[""], len(scene.contexts)) == (2, 3), scene.id
        # The others are answered in short.
        assert answers["yes"] == answers["no"] == 2 * scene.id.startswith("w"), scene.id


@pytest.mark.parametrize("file", [scenes.TAUGHT, scenes.DOCUMENTS], ids=["taught", "documents"])
def test_what_is_taught_is_not_fitted_on(file: Traversable) -> None:
    taught, fitted = scenes.scenes(file), [*scenes.scenes(), *scenes.scenes(scenes.DOCUMENTS_FITTED)]
    for told in ("contexts", "questions"):
        assert not {one for scene in taught for one in getattr(scene, told)} & {
            one for scene in fitted for one in getattr(scene, told)
        }


def test_every_scene_is_asked_about_before_one_is_asked_about_twice() -> None:
    all_scenes = scenes.scenes()
    lines = list(scenes.questions(random.Random(1)))
    assert len(lines) == sum(len(scene.questions) for scene in all_scenes)
    first = lines[: len(all_scenes)]
    assert {tuple(line["contexts"]) for line in first} == {scene.contexts for scene in all_scenes}
    assert lines == list(scenes.questions(random.Random(1))) != list(scenes.questions(random.Random(2)))


def test_a_pair_has_its_answer_once_and_the_likeliest_other_context_says_nothing() -> None:
    pairs = scenes.pairs()
    assert len({pair.id for pair in pairs}) == len(pairs)
    answered = [pair for pair in pairs if pair.answer]
    assert 0.25 < len(answered) / len(pairs) < 0.4
    assert all(pair.passage.count(pair.answer) >= 1 for pair in answered)
    contexts = {text for scene in scenes.scenes(scenes.TAUGHT) for text in scene.contexts}
    assert all(pair.passage in contexts for pair in pairs)
    by_id = {pair.id: pair for pair in pairs}
    for pair in answered:
        if other := by_id.get(f"{pair.id}-"):
            assert other.question == pair.question
            assert pair.answer.lower() not in other.passage.lower().split()


def test_an_answer_that_stands_twice_or_nowhere_is_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    def question(answer: str, kind: Literal["answer", "idk"] = "answer") -> scenes.Question:
        return scenes.Question(question="how long is the Ostra", kind=kind, answer=answer, alternatives=())

    scene = scenes.Scene(
        id="x-1",
        sort="DATA",
        domain="open",
        query_time=datetime(2024, 5, 1, tzinfo=UTC),
        contexts=("river: Ostra; long: 40 km", "lake: Ostra; deep: 9 m; wide: 9 m", "40 kmh is the limit"),
        questions=(question("40 KM"), question("9 m"), question("three"), question("yes"), question("", "idk")),
    )
    monkeypatch.setattr(scenes, "scenes", lambda _file: [scene])
    told = [(pair.id, pair.answer, pair.start, scene.contexts.index(pair.passage)) for pair in scenes.pairs()]
    assert told == [("x-1.0", "40 km", 20, 0), ("x-1.0-", "", -1, 1), ("x-1.4-", "", -1, 0)]
