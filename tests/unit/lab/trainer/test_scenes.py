"""Scenes, of whose questions some are taught and on others confidence is fitted."""

import random
from collections import Counter
from importlib.resources.abc import Traversable

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


def test_what_is_taught_is_not_fitted_on() -> None:
    taught, fitted = scenes.scenes(scenes.TAUGHT), scenes.scenes()
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
