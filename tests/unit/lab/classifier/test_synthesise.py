"""The training set: what the templates make, the same at every run, and none of it an evaluation question."""

import os
from collections import Counter
from pathlib import Path

import pytest

from lab.classifier.readers import normal, read
from lab.classifier.synthesise import read_entities, read_sections, render, synthesise
from services.classifier.examples import QUESTIONS, read_questions
from services.classifier.taxonomy import HEADS
from services.kit.jsonl import BadLine


def test_the_committed_file_is_what_the_templates_make() -> None:
    assert QUESTIONS.read_text("utf-8") == render(synthesise())


def test_there_are_enough_questions_of_every_label() -> None:
    examples = read_questions()
    assert len(examples) >= 2_000
    assert not [example for example in examples if set(example.question) & set("{}[]|")]
    assert len({normal(example.question) for example in examples}) > 0.99 * len(examples)
    for head, labels in HEADS.items():
        counts = Counter(example.label(head) for example in examples)
        assert set(counts) == set(labels)
        assert min(counts.values()) >= 90


def test_two_slots_of_a_kind_are_two_entities(tmp_path: Path) -> None:
    (tmp_path / "entities.txt").write_text("== city\noslo; rome\n")
    (tmp_path / "open.txt").write_text("== far | open | static | comparison | 4\nis {city} north of {city2}\n")
    examples = synthesise(tmp_path)
    assert {tuple(sorted({"oslo", "rome"} & set(example.question.strip("?").split()))) for example in examples} == {
        ("oslo", "rome")
    }
    assert {example.group for example in examples} == {"open/far"}


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("== a | nowhere | static | simple | 1\nwho", "labels"),
        ("== a | open | static | 1\nwho", "labels"),
        ("== a | open | static | simple | 1\nwho is {nobody}", "nobody"),
    ],
)
def test_wrong_templates_are_named(tmp_path: Path, template: str, message: str) -> None:
    (tmp_path / "entities.txt").write_text("== city\noslo\n")
    (tmp_path / "open.txt").write_text(template)
    with pytest.raises(BadLine, match=message):
        read_sections(tmp_path)


def test_entities_are_distinct() -> None:
    for kind, names in read_entities().items():
        assert len(names) >= 5, kind
        assert len(set(names)) == len(names)


def test_no_evaluation_question_is_in_the_training_set() -> None:
    place = os.environ.get("CRAGMESH_EVAL_DATA", "")
    if not place:
        pytest.skip("CRAGMESH_EVAL_DATA is not set, so there is nothing to compare with")
    own = {normal(example.question) for example in read_questions()}
    for name in ("crag_kg_qa.jsonl", "crag_question_types.jsonl", "crag_pages.jsonl.gz", "freshqa.jsonl"):
        examples = read(Path(place) / name)
        assert examples
        assert not own & {normal(example.question) for example in examples}
