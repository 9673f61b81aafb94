"""The shipped SVM: what it says, how sure it is, and what its loader refuses."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from services.classifier import svm
from services.classifier.app import Model
from services.classifier.features import NAMES, lexical
from services.classifier.svm import MODEL, Head, HeadSettings, ModelError, Questions, load, read_thresholds, tempered
from services.classifier.taxonomy import HEADS, Labels, above
from services.kit.encoder import Encoder

SURE = 0.9


def labels(model: Model, question: str) -> Labels:
    return model.run([question])[0].labels


@pytest.mark.parametrize(
    ("question", "domain"),
    [
        ("what did wdfc close at on tuesday?", "finance"),
        ("when did kellogg's pay a dividend for the last time", "finance"),
        ("how many points did the sixers score on 2022-11-07?", "sports"),
        ("who is leeds playing next weekend?", "sports"),
        ("who sang backup on harvest moon?", "music"),
        ("how many grammys does tracy chapman have", "music"),
        ("who won best supporting actress at the 1998 oscars?", "movie"),
        ("total gross of the secret of nimh", "movie"),
        ("how deep is lake tahoe?", "open"),
        ("who invented the zipper", "open"),
    ],
)
def test_domains(model: Model, question: str, domain: str) -> None:
    assert labels(model, question).heads["domain"].label == domain


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
    classification = labels(model, question).classification()
    assert (classification.dynamic_probability > 0.5) is dynamic
    assert (classification.dynamism in ("fast-changing", "real-time")) is dynamic


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("which is longer, the volga or the rhine?", "comparison"),
        ("name the members of the kinks", "set"),
        ("who wrote middlemarch", "simple"),
    ],
)
def test_question_types(model: Model, question: str, kind: str) -> None:
    assert labels(model, question).heads["question_type"].label == kind


@pytest.mark.parametrize(
    "odd",
    [
        "😀🎉",
        "?!?!",
        "12345 67",
        "\x00\x01\x02",
        "你好，今天天气怎么样",
        "привет как дела",
        "x" * 2_000,
        "SELECT 1; --",
    ],
)
def test_what_is_no_question_gets_no_certainty(model: Model, odd: str) -> None:
    found = labels(model, odd).heads
    assert all(prediction.certainty < SURE for prediction in found.values())
    assert found["domain"].label == "open"


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text_gets_probabilities(model: Model, text: str) -> None:
    for head, prediction in labels(model, text).heads.items():
        assert set(prediction.probabilities) == set(HEADS[head])
        assert sum(prediction.probabilities.values()) == pytest.approx(1)
        assert min(prediction.probabilities.values()) >= 0


def test_a_batch_says_what_its_questions_say_alone(model: Model) -> None:
    questions = ["who won the 1998 stanley cup?", "price of gold now", "", "how old is mick jagger"]
    batch = model.run(questions)
    for question, found in zip(questions, batch, strict=True):
        alone = labels(model, question)
        for head in HEADS:
            assert found.labels.heads[head].probabilities == pytest.approx(alone.heads[head].probabilities, abs=1e-3)
    assert model.run([]) == []


def test_weknow_falls_to_open_unless_certain(model: Model) -> None:
    found = labels(model, "who directed the third man?")
    certainty = found.heads["domain"].certainty
    assert above(found, certainty - 0.01).classification().domain == "movie"
    fallen = above(found, 0.999).classification()
    assert (fallen.domain, fallen.dynamism) == ("open", found.heads["dynamism"].label)
    assert fallen.domain_certainty < 0.1


def test_temperature_takes_certainty_away_and_keeps_the_order() -> None:
    probabilities = np.array([[0.9, 0.08, 0.02]])
    cooler = tempered(probabilities, 2.0)
    assert cooler.sum() == pytest.approx(1)
    assert list(np.argsort(cooler[0])) == [2, 1, 0]
    assert cooler.max() < 0.9


def test_lexical_features_name_what_they_see() -> None:
    row = lexical(["What was Apple's total revenue in Q3 2021, or was it higher yesterday?"])[0]
    seen = {name for name, value in zip(NAMES, row, strict=True) if value}
    assert {"total", "year", "quarter", "comparison", "comparative", "yesterday", "possessive"} <= seen
    assert "superlative" not in seen
    assert lexical([]).shape == (0, len(NAMES))


def test_training_saving_and_loading(encoder: Encoder, tmp_path: Path, model: Model) -> None:
    texts = [f"{word} number {number}" for word in ("goal", "share", "song") for number in range(20)]
    truth = [text.split()[0] for text in texts]
    vectors = encoder.encode(texts).vectors
    folds = [
        (np.flatnonzero(np.arange(60) % 5 != fold), np.flatnonzero(np.arange(60) % 5 == fold)) for fold in range(5)
    ]
    head = Head(HeadSettings(lexical_weight=0.3, ngram_weight=0.5, c=1.0)).fit(Questions(texts, vectors), truth, folds)
    head.temperature = 1.5
    heads = dict.fromkeys(HEADS, head)
    svm.Svm(heads, model.svm.familiarity, "some-encoder").save(tmp_path / "m.skops")
    loaded = load(tmp_path / "m.skops")
    assert loaded.encoder == "some-encoder"
    questions = Questions(texts, vectors)
    assert np.allclose(loaded.heads["domain"].probabilities(questions), head.probabilities(questions))
    assert loaded.heads["domain"].labels(questions) == truth


def test_the_shipped_file_holds_nothing_but_the_trusted_types() -> None:
    assert set(skops.io.get_untrusted_types(file=MODEL)) <= set(svm.TRUSTED)
    assert MODEL.stat().st_size < 2 * 1024 * 1024
    with zipfile.ZipFile(MODEL) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".pkl", ".pickle"))]


def test_files_that_may_not_be_loaded_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pickle.skops").write_bytes(pickle.dumps({"format": 1}))
    skops.io.dump({"format": 0}, tmp_path / "old.skops")
    skops.io.dump({"format": 1, "sklearn": "0.1.0"}, tmp_path / "other.skops")
    skops.io.dump({"format": 1, "classifier": Path}, tmp_path / "strange.skops")
    skops.io.dump(LogisticRegression(), tmp_path / "estimator.skops")
    (tmp_path / "cut.skops").write_bytes(MODEL.read_bytes()[:1_000])
    for name in ("pickle", "old", "other", "strange", "estimator", "cut", "missing"):
        with pytest.raises(ModelError):
            load(tmp_path / f"{name}.skops")


@pytest.mark.parametrize("text", ["", "{}", '{"thresholds": {"domain": 0.5}}', "[]"])
def test_a_card_without_thresholds_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(ModelError, match="thresholds"):
        read_thresholds(tmp_path / "card.json")
    (tmp_path / "card.json").write_text(json.dumps({"thresholds": dict.fromkeys(HEADS, 2)}))
    with pytest.raises(ModelError, match="outside"):
        read_thresholds(tmp_path / "card.json")
