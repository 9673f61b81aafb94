"""The shipped SVM: what it says, how sure it is, and what its loader refuses."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.classifier.app import Model
from services.classifier.features import NAMES, lexical
from services.classifier.svm import MODEL, ModelError, load, read_thresholds, tempered
from services.classifier.taxonomy import HEADS, Labels, above, classification

SURE = 0.9


def labels(model: Model, question: str) -> Labels:
    return model.run([question])[0].labels


@pytest.mark.parametrize(
    ("question", "head", "label"),
    [
        ("what did wdfc close at on tuesday?", "domain", "finance"),
        ("when did kellogg's pay a dividend for the last time", "domain", "finance"),
        ("how many points did the sixers score on 2022-11-07?", "domain", "sports"),
        ("who is leeds playing next weekend?", "domain", "sports"),
        ("who sang backup on harvest moon?", "domain", "music"),
        ("how many grammys does tracy chapman have", "domain", "music"),
        ("who won best supporting actress at the 1998 oscars?", "domain", "movie"),
        ("total gross of the secret of nimh", "domain", "movie"),
        ("how deep is lake tahoe?", "domain", "open"),
        ("who invented the zipper", "domain", "open"),
        ("which is longer, the volga or the rhine?", "question_type", "comparison"),
        ("name the members of the kinks", "question_type", "set"),
        ("who wrote middlemarch", "question_type", "simple"),
    ],
)
def test_plain_questions_have_their_labels(model: Model, question: str, head: str, label: str) -> None:
    assert labels(model, question)[head].label == label


@pytest.mark.parametrize(
    ("question", "dynamic"),
    [
        ("what is ibm's stock price right now?", True),
        ("did the hornets win last night?", True),
        ("what is the latest single by lorde?", True),
        ("when was the battle of hastings?", False),
        ("who directed the third man?", False),
        ("in what year was heinz founded", False),
    ],
)
def test_static_and_dynamic(model: Model, question: str, dynamic: bool) -> None:
    predicted = classification(labels(model, question))
    assert (predicted.dynamic_probability > 0.5) is dynamic
    assert (predicted.dynamism in ("fast-changing", "real-time")) is dynamic


@pytest.mark.parametrize(
    "odd",
    [
        "😀🎉", "?!?!", "12345 67", "\x00\x01\x02", "你好，今天天气怎么样", "привет как дела", "x" * 2_000,
        "SELECT 1; --",
    ],
)  # fmt: skip
def test_what_is_no_question_gets_no_certainty(model: Model, odd: str) -> None:
    predicted = labels(model, odd)
    assert all(prediction.certainty < SURE for prediction in predicted.values())
    assert predicted["domain"].label == "open"


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text_gets_probabilities(model: Model, text: str) -> None:
    for head, prediction in labels(model, text).items():
        assert set(prediction.probabilities) == set(HEADS[head])
        assert sum(prediction.probabilities.values()) == pytest.approx(1)
        assert min(prediction.probabilities.values()) >= 0


def test_a_batch_says_what_its_questions_say_alone(model: Model) -> None:
    questions = ["who won the 1998 stanley cup?", "price of gold now", "", "how old is mick jagger"]
    batch = model.run(questions)
    for question, result in zip(questions, batch, strict=True):
        alone = labels(model, question)
        for head in HEADS:
            assert result.labels[head].probabilities == pytest.approx(alone[head].probabilities, abs=1e-3)
    assert model.run([]) == []


def test_weknow_falls_to_open_unless_certain(model: Model) -> None:
    predicted = labels(model, "who directed the third man?")
    certainty = predicted["domain"].certainty
    assert classification(above(predicted, certainty - 0.01)).domain == "movie"
    fallen = classification(above(predicted, 0.999))
    assert (fallen.domain, fallen.dynamism) == ("open", predicted["dynamism"].label)
    assert fallen.domain_certainty < 0.1


def test_temperature_takes_certainty_away_and_keeps_the_order() -> None:
    (cooler,) = tempered(np.array([[0.9, 0.08, 0.02]]), 2.0)
    assert cooler.sum() == pytest.approx(1)
    assert 0.9 > cooler[0] > cooler[1] > cooler[2]


def test_lexical_features_name_what_they_see() -> None:
    row = lexical(["What was Apple's total revenue in Q3 2021, or was it higher yesterday?"])[0]
    features = {name for name, value in zip(NAMES, row, strict=True) if value}
    assert {"total", "year", "quarter", "comparison", "comparative", "yesterday", "possessive"} <= features
    assert "superlative" not in features
    assert lexical([]).shape == (0, len(NAMES))


def test_a_model_stays_where_another_cannot_be_written(
    tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: BinaryIO, **_: object) -> None:
        file.write(b"PK")
        raise OSError(28, "No space left on device")

    model.svm.save(tmp_path / "m.npz")
    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        model.svm.save(tmp_path / "m.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["m.npz"]
    load(tmp_path / "m.npz")


Arrays = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    with np.load(MODEL, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def test_a_model_is_what_was_saved(tmp_path: Path, model: Model, arrays: Arrays) -> None:
    model.svm.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as saved:
        assert saved.files == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(saved[name], array, strict=True)
    assert MODEL.stat().st_size < 2 * 1024 * 1024
    assert {array.dtype.kind for array in arrays.values()} == {"f", "i", "U"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda arrays: {"format": np.array(1)}, "another format"),
        (lambda arrays: {"format": np.array(2.0)}, "format is float64"),
        (lambda arrays: {"further": np.zeros(1)}, "has further too many"),
        (lambda arrays: {"domain.labels": np.array(["movie", "movie", "music", "open", "sports"])}, "domain has the"),
        (lambda arrays: {"domain.labels": arrays["dynamism.labels"]}, "domain has the labels fast-changing"),
        (lambda arrays: {"domain.weights": arrays["domain.weights"][:, 1:]}, r"domain.weights is .* \(5, 383\)"),
        (lambda arrays: {"domain.weights": arrays["domain.weights"].astype(np.float32)}, "domain.weights is float32"),
        (lambda arrays: {"domain.weights": arrays["domain.weights"].astype(">f8")}, "domain.weights is >f8"),
        (lambda arrays: {"domain.biases": arrays["domain.biases"] * np.nan}, "domain.biases holds what is no number"),
        (lambda arrays: {"domain.temperature": np.array(0.0)}, "temperature 0"),
        (lambda arrays: {"dynamism.idf": arrays["dynamism.idf"][1:]}, "dynamism.idf is"),
        (lambda arrays: {"dynamism.terms": arrays["dynamism.terms"][:0]}, "dynamism.terms is"),
        (lambda arrays: {"dynamism.terms": np.full(2_107, "a")}, "dynamism.idf is"),
        (lambda arrays: {"encoder": np.array(["a", "b"])}, "encoder is"),
        (lambda arrays: {"centroids": np.array([{}])}, "allow_pickle=False"),
        (lambda arrays: {"centroids": np.zeros((1, 2**24 + 1), np.float32)}, "unpacks to more than"),
    ],
)
def test_a_model_with_an_array_that_looks_otherwise_is_refused(
    tmp_path: Path, arrays: Arrays, change: Callable[[Arrays], Arrays], reason: str
) -> None:
    changed: Any = arrays | change(arrays)
    np.savez_compressed(tmp_path / "m.npz", **changed)
    with pytest.raises(ModelError, match=reason):
        load(tmp_path / "m.npz")


def test_a_model_without_one_of_its_arrays_is_refused(tmp_path: Path, arrays: Arrays) -> None:
    for name in arrays:
        others: Any = {other: array for other, array in arrays.items() if other != name}
        np.savez(tmp_path / "m.npz", **others)
        with pytest.raises(ModelError, match=f"it has no {name}"):
            load(tmp_path / "m.npz")


def test_what_is_no_model_file_is_refused(tmp_path: Path) -> None:
    content = MODEL.read_bytes()
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps({"format": 2}))
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    (tmp_path / "cut.npz").write_bytes(content[:1_000])
    (tmp_path / "changed.npz").write_bytes(content[:2_000] + bytes(100) + content[2_100:])
    (tmp_path / "folder.npz").mkdir()
    for name in ("pickle", "one", "cut", "changed", "folder", "missing"):
        with pytest.raises(ModelError, match=r"\.npz.*cragmesh classifier train"):
            load(tmp_path / f"{name}.npz")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "no thresholds") for text in ("", "{}", '{"thresholds": {"domain": 0.5}}', "[]")),
        (json.dumps({"thresholds": dict.fromkeys(HEADS, 2)}), "outside"),
    ],
)
def test_a_card_without_thresholds_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(ModelError, match=reason):
        read_thresholds(tmp_path / "card.json")
