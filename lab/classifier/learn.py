"""Training of a head with scikit-learn, into arrays that are served without it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from services.classifier.svm import WORD, Floats, Head, HeadSettings, Indexes, Ngrams, Questions, features

Folds = list[tuple[Indexes, Indexes]]


def learn(settings: HeadSettings, questions: Questions, labels: Sequence[str], folds: Folds) -> Head:
    """Train, and calibrate on what `folds` hold out: groups of templates that the fold's SVM has not seen."""
    ngrams = learn_ngrams(settings, questions.texts)
    return head_of(settings, calibrate(settings, features(settings, questions, ngrams), labels, folds), labels, ngrams)


def learn_margins(settings: HeadSettings, questions: Questions, labels: Sequence[str], test: Questions) -> list[str]:
    """The labels of `test`, by an SVM without calibration: for choosing settings."""
    ngrams = learn_ngrams(settings, questions.texts)
    svm = _svm(settings).fit(features(settings, questions, ngrams), np.asarray(labels))
    return [str(label) for label in svm.predict(features(settings, test, ngrams))]


def learn_ngrams(settings: HeadSettings, texts: Sequence[str]) -> Ngrams | None:
    """The terms of at least four texts; None where the settings leave them out."""
    if not settings.ngram_weight:
        return None
    vectorizer = ngram_vectorizer().fit(texts)
    terms = vectorizer.get_feature_names_out().tolist()
    return Ngrams({term: place for place, term in enumerate(terms)}, vectorizer.idf_)


def ngram_vectorizer() -> Any:
    """What `Ngrams` computes, as scikit-learn has it."""
    return TfidfVectorizer(ngram_range=(1, 2), min_df=4, sublinear_tf=True, token_pattern=WORD, dtype=np.float32)


def calibrate(settings: HeadSettings, values: Floats, labels: Sequence[str], folds: Folds) -> Any:
    """scikit-learn's own classifier of features, calibrated."""
    # Platt's sigmoids: one temperature for all labels is as good on templates, and too sure of what is unlike them.
    calibrated = CalibratedClassifierCV(_svm(settings), method="sigmoid", cv=folds, ensemble=False)
    return calibrated.fit(values, np.asarray(labels))


def head_of(settings: HeadSettings, classifier: Any, labels: Sequence[str], ngrams: Ngrams | None) -> Head:
    """A head from scikit-learn's classifier.

    Args:
        classifier: as `calibrate` returns it.
        labels: of the training questions.
    """
    (fitted,) = classifier.calibrated_classifiers_
    weights, biases = fitted.estimator.coef_, fitted.estimator.intercept_
    slopes, offsets = np.array([[sigmoid.a_, sigmoid.b_] for sigmoid in fitted.calibrators], np.float64).T
    if len(classifier.classes_) == 2:
        # scikit-learn keeps one row, the second label's; the first one's probability is its complement.
        weights, biases, slopes = np.concatenate([-weights, weights]), np.append(-biases, biases), slopes.repeat(2)
        offsets = np.append(-offsets, offsets)
    names, counts = np.unique(np.asarray(labels), return_counts=True)
    return Head(
        settings,
        [str(name) for name in names],
        weights=np.asarray(weights, np.float64),
        biases=np.asarray(biases, np.float64),
        slopes=slopes,
        offsets=offsets,
        priors=counts / len(labels),
        ngrams=ngrams,
    )


def _svm(settings: HeadSettings) -> Any:
    return LinearSVC(C=settings.c, class_weight="balanced", max_iter=10_000, random_state=0)
