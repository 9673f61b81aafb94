"""What is served is what scikit-learn has learned, to the ninth digit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.classifier.learn import calibrate, head_of, learn, learn_margins, learn_ngrams, ngram_vectorizer
from lab.classifier.train import folds_of
from services.classifier import svm
from services.classifier.app import Model
from services.classifier.examples import Example, read_questions
from services.classifier.features import MAX_CHARS, lexical
from services.classifier.svm import Doubles, Head, HeadSettings, Questions, load
from services.classifier.taxonomy import HEADS

ODD = ["", "?", "😀😀", "你好吗", "İstanbul's Straße, ǅ and ﬁ", "the the of the of the", "who " * 300, "x\x00y"]


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return read_questions()[::15]


@pytest.fixture(scope="module")
def questions(model: Model, examples: list[Example]) -> Questions:
    return embedded(model, [example.question for example in examples])


@pytest.fixture(scope="module")
def strange(model: Model) -> Questions:
    return embedded(model, ODD + [example.question.upper() for example in read_questions()[4::160]])


def embedded(model: Model, texts: list[str]) -> Questions:
    return Questions(texts, model.encoder.encode(texts).vectors)


def folds(labels: list[str], examples: list[Example]) -> Any:
    return folds_of(labels, [example.group for example in examples])


@pytest.mark.parametrize(
    "settings", [HeadSettings(0.0, 0.0, 0.1), HeadSettings(0.5, 0.5, 0.3)], ids=["embeddings", "all features"]
)
@pytest.mark.parametrize("labels", ["dynamism", "two"])
def test_served_probabilities_are_scikit_learns(
    settings: HeadSettings, labels: str, examples: list[Example], questions: Questions, strange: Questions
) -> None:
    truth = [example.dynamism if labels == "dynamism" else str(example.domain == "open") for example in examples]
    vectorizer = ngram_vectorizer().fit(questions.texts)

    def features(asked: Questions) -> Any:
        blocks: list[Any] = [asked.vectors]
        if settings.lexical_weight:
            blocks.append(lexical(asked.texts) * np.float32(settings.lexical_weight))
        if settings.ngram_weight:
            cut = [text[:MAX_CHARS] for text in asked.texts]
            blocks.append(vectorizer.transform(cut).toarray() * np.float32(settings.ngram_weight))
        return np.hstack(blocks)

    theirs = calibrate(settings, features(questions), truth, folds(truth, examples))
    ours = head_of(settings, theirs, truth, learn_ngrams(settings, questions.texts))
    assert ours.labels == [str(label) for label in theirs.classes_]
    for asked in (questions, strange):
        served = ours.probabilities(asked)
        assert np.abs(served - theirs.predict_proba(features(asked))).max() < 1e-9
        assert served.std() > 0.05
    whole = learn(settings, questions, truth, folds(truth, examples))
    assert np.abs(whole.probabilities(strange) - ours.probabilities(strange)).max() < 1e-9


def test_a_head_without_calibration_learns_the_same_border(examples: list[Example], questions: Questions) -> None:
    truth = [example.domain for example in examples]
    found = learn_margins(HeadSettings(0.3, 0.5, 1.0), questions, truth, questions)
    assert np.mean([a == b for a, b in zip(found, truth, strict=True)]) > 0.95


def test_a_model_is_loaded_as_it_was_learned(
    tmp_path: Path, model: Model, examples: list[Example], questions: Questions, strange: Questions
) -> None:
    heads: dict[str, Head] = {}
    each = (HeadSettings(0.3, 0.5, 1.0), HeadSettings(0.0, 0.0), HeadSettings())
    for name, settings in zip(HEADS, each, strict=True):
        labelled = [index for index, example in enumerate(examples) if example.label(name)]
        truth = [examples[index].label(name) for index in labelled]
        part = folds(truth, [examples[index] for index in labelled])
        heads[name] = learn(settings, questions.at(np.array(labelled)), truth, part)
        heads[name].temperature = 1.5
    svm.Svm(heads, model.svm.familiarity, "some-encoder").save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert loaded.encoder == "some-encoder"
    for name, head in heads.items():
        again: Doubles = loaded.heads[name].probabilities(strange)
        assert np.array_equal(again, head.probabilities(strange))
        assert (loaded.heads[name].settings, loaded.heads[name].temperature) == (head.settings, 1.5)
