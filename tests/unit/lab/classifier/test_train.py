"""Choosing, validating and thresholds: no group on both sides, nothing shipped that was not measured."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from lab.classifier.synthesise import digest
from lab.classifier.train import best_threshold, familiarity, folds_of, validation_groups
from services.classifier.examples import read_questions
from services.classifier.svm import CARD, MODEL, load
from services.classifier.taxonomy import HEADS
from services.cli.ending import PROBLEM
from services.cli.main import app


def test_validation_has_a_fifth_of_the_groups_of_every_file_and_all_labels() -> None:
    examples = read_questions()
    kept = validation_groups(examples)
    groups = {example.group for example in examples}
    assert 0.15 < len(kept) / len(groups) < 0.25
    assert {group.partition("/")[0] for group in kept} == {group.partition("/")[0] for group in groups}
    for head, labels in HEADS.items():
        assert {example.label(head) for example in examples if example.group in kept} == set(labels)
        assert {example.label(head) for example in examples if example.group not in kept} == set(labels)
    assert validation_groups(examples[::-1]) == kept


def test_folds_share_no_group() -> None:
    groups = [f"g{number // 4}" for number in range(80)]
    labels = ["a" if number % 8 < 4 else "b" for number in range(80)]
    folds = folds_of(labels, groups)
    assert sorted(int(index) for _, test in folds for index in test) == list(range(80))
    for learn, test in folds:
        assert not {groups[index] for index in learn} & {groups[index] for index in test}


def test_the_threshold_asks_the_better_one() -> None:
    sure = [0.3, 0.4, 0.8, 0.9]
    # Below 0.5 the LLM is right, above it the SVM.
    assert best_threshold(sure, [False, False, True, True], [True, True, False, False]) == (0.45, 1.0)
    # An LLM that is never better is never asked, one that always is is always asked.
    assert best_threshold(sure, [True] * 4, [True] * 4)[0] == 0
    assert best_threshold(sure, [False] * 4, [True] * 4)[0] == pytest.approx(0.95)


def test_trust_fades_away_from_everything_known() -> None:
    rng = np.random.default_rng(3)
    middles = np.eye(8, dtype=np.float32)[:4] + 0.2
    vectors = np.repeat(middles, 30, axis=0) + rng.normal(0, 0.05, (120, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    known = familiarity(vectors, np.repeat(np.array(["a", "b", "c", "d"]), 30))
    assert known.low <= known.high
    strange = -vectors[:1]
    assert known.of(strange, ["some words"])[0] == 0
    assert known.of(vectors[:1], ["some words"])[0] == 1
    assert known.of(vectors[:1], ["12 34"])[0] == 0


def test_a_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lab.classifier.fit.fit", full)
    result = CliRunner().invoke(app, ["classifier", "train"])
    assert result.exit_code == PROBLEM
    assert "No space left on device" in result.output


def test_the_card_is_about_the_shipped_data_and_model() -> None:
    model = load(MODEL)
    card = json.loads(MODEL.with_name(CARD).read_text("utf-8"))
    assert card["data"]["sha256"] == digest(read_questions())
    assert card["encoder"] == model.encoder
    assert set(card["validation"]) == set(card["thresholds"]) == set(HEADS)
    for head in HEADS:
        scores = card["validation"][head]
        assert scores["accuracy"] > scores["majority"]
        assert MODEL.with_name(f"confusion-{head}.png").is_file()
        assert card["temperatures"][head] == model.heads[head].temperature
