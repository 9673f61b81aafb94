"""Training: features and settings by cross-validation over template groups, thresholds on groups kept back for it.

What is reported of a head comes from a model that has seen none of the question's template group; the shipped model is
then trained on all groups with the same settings.
"""

import hashlib
import itertools
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedGroupKFold

from lab.classifier.learn import Folds, learn, learn_margins
from lab.classifier.measure import Scores, score
from lab.classifier.synthesise import digest
from services.classifier.examples import Example
from services.classifier.svm import Familiarity, Floats, Head, HeadSettings, Questions, Svm, tempered
from services.classifier.taxonomy import DYNAMIC, HEADS

FOLDS = 5
# One of so many groups is for validation.
VALIDATION_SHARE = 5
# The settings that a head is chosen from.
GRID = tuple(
    HeadSettings(lexical_weight=lexical, ngram_weight=ngrams, c=c)
    for lexical, ngrams, c in itertools.product((0.0, 0.3, 0.5), (0.0, 0.5), (0.1, 0.3))
)
# The assumed accuracy of an LLM where the SVM is unsure, for training without one: calibrated certainties are
# accuracies, so below this one a call to it pays.
ASSUMED = 0.6
TEMPERATURES = np.arange(0.5, 4.01, 0.05)
# Quantiles of the training questions' cosines to other groups: below the first is strange, above the second familiar.
STRANGE, FAMILIAR = 0.005, 0.05

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trained:
    """A model, and its validation."""

    svm: Svm
    # Trained without the validation questions.
    validator: Svm
    validation: tuple[Example, ...]
    settings: dict[str, HeadSettings]
    scores: dict[str, Scores]
    compared: dict[str, dict[str, float]]


def validation_groups(examples: Sequence[Example]) -> set[str]:
    """Names of the groups kept back: every fifth of a file's, in the order of a hash of their names."""

    def place(group: str) -> tuple[str, str]:
        return group.partition("/")[0] if "/" in group else "", hashlib.sha256(group.encode()).hexdigest()

    groups = sorted({example.group for example in examples}, key=place)
    return set(groups[::VALIDATION_SHARE])


def train(examples: Sequence[Example], vectors: Floats, *, encoder: str, progress: Progress) -> Trained:
    """Choose, calibrate, validate and train all heads.

    Args:
        vectors: of the examples' questions, shape (examples, d).
        encoder: the name of the encoder that made them.
        progress: told of each step.

    Raises:
        ValueError: a head has fewer than two labels.
    """
    kept_back = validation_groups(examples)
    held_out = np.array([example.group in kept_back for example in examples])
    heads: dict[str, Head] = {}
    settings: dict[str, HeadSettings] = {}
    scores: dict[str, Scores] = {}
    validators: dict[str, Head] = {}
    compared: dict[str, dict[str, float]] = {}
    for name in HEADS:
        labelled = np.array([bool(example.label(name)) for example in examples])
        learned = _of(name, examples, vectors, labelled & ~held_out)
        settings[name], compared[name] = _choose(name, *learned, progress)
        fitted = _fit(settings[name], *learned)
        questions, labels, _ = _of(name, examples, vectors, labelled & held_out)
        scores[name] = score(labels, fitted.probabilities(questions), fitted.labels)
        progress(f"{name}: validation accuracy {scores[name].accuracy:.3f}, ECE {scores[name].ece:.3f}")
        validators[name] = fitted
        heads[name] = _fit(settings[name], *_of(name, examples, vectors, labelled))
    familiar = familiarity(vectors, np.array([example.group for example in examples]))
    validation = tuple(example for example in examples if example.group in kept_back)
    return Trained(
        Svm(heads, familiar, encoder), Svm(validators, familiar, encoder), validation, settings, scores, compared
    )


def _of(
    name: str, examples: Sequence[Example], vectors: Floats, chosen: NDArray[np.bool_]
) -> tuple[Questions, list[str], list[str]]:
    """The chosen questions, their labels of a head, and their groups."""
    part = [example for example, keep in zip(examples, chosen, strict=True) if keep]
    labels = [example.label(name) for example in part]
    if len(set(labels)) < 2:
        raise ValueError(f"{name}: a classifier needs questions of at least two labels")
    return Questions([example.question for example in part], vectors[chosen]), labels, [one.group for one in part]


def _choose(
    name: str, questions: Questions, labels: list[str], groups: list[str], progress: Progress
) -> tuple[HeadSettings, dict[str, float]]:
    folds = folds_of(labels, groups)
    scores: dict[HeadSettings, float] = {}
    for settings in GRID:
        predicted = np.empty(len(labels), object)
        for fold, test in folds:
            truth = [labels[index] for index in fold]
            predicted[test] = learn_margins(settings, questions.at(fold), truth, questions.at(test))
        scores[settings] = _balanced(labels, [str(label) for label in predicted])
        progress(f"{name}: {_words(settings)} {scores[settings]:.3f}")
    best = max(scores, key=lambda settings: scores[settings])
    return best, {_words(settings): round(value, 4) for settings, value in scores.items()}


def _words(settings: HeadSettings) -> str:
    return f"lexical {settings.lexical_weight}, n-grams {settings.ngram_weight}, C {settings.c}"


def _balanced(labels: Sequence[str], predicted: Sequence[str]) -> float:
    """Mean of accuracy and macro-F1: neither the frequent nor the rare labels decide alone."""
    right = float(np.mean([a == b for a, b in zip(labels, predicted, strict=True)]))
    macro = f1_score(labels, predicted, average="macro", zero_division=0)
    return (right + float(macro)) / 2


def _fit(settings: HeadSettings, questions: Questions, labels: list[str], groups: list[str]) -> Head:
    return learn(settings, questions, labels, folds_of(labels, groups))


def folds_of(labels: Sequence[str], groups: Sequence[str]) -> Folds:
    """Five folds with like shares of labels, no group in two of them."""
    return list(StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels, groups))


def fit_temperature(head: Head, name: str, questions: Questions, labels: Sequence[str]) -> float:
    """The temperature, in steps of 0.05, under which the labels of real questions are least surprising.

    Of dynamism it is the collapse to static and dynamic that counts: strategies act on it, and FreshQA has no
    `real-time`.
    """
    truth = np.array([_collapsed(name, label) for label in labels])
    collapsed = np.array([_collapsed(name, label) for label in head.labels])
    head.temperature = 1.0
    untempered = head.probabilities(questions)

    def surprise(temperature: float) -> float:
        probabilities = tempered(untempered, temperature)
        right = np.where(truth[:, None] == collapsed[None, :], probabilities, 0).sum(axis=1)
        return float(-np.log(np.clip(right, 1e-9, 1)).mean())

    return round(float(min(TEMPERATURES, key=surprise)), 2)


def _collapsed(head: str, label: str) -> str:
    return ("dynamic" if label in DYNAMIC else "static") if head == "dynamism" else label


def best_threshold(
    certainty: Sequence[float], svm_right: Sequence[bool], llm_right: Sequence[bool]
) -> tuple[float, float]:
    """The certainty below which the LLM is called, in steps of 0.05, and the accuracy of both together.

    Of equally good ones the lowest, with the fewest calls.
    """
    sure, svm, llm = np.asarray(certainty), np.asarray(svm_right), np.asarray(llm_right)
    accuracies = {
        round(float(candidate), 2): float(np.where(sure >= candidate, svm, llm).mean())
        for candidate in np.arange(0.0, 1.01, 0.05)
    }
    best = max(accuracies, key=lambda candidate: (accuracies[candidate], -candidate))
    return best, accuracies[best]


def familiarity(vectors: Floats, groups: NDArray[np.str_]) -> Familiarity:
    """Means of the groups, and the cosines between which trust grows, from how near questions are to other groups."""
    names, member = np.unique(groups, return_inverse=True)
    centroids = np.zeros((len(names), vectors.shape[1]), np.float32)
    np.add.at(centroids, member, vectors)
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True) + np.float32(1e-9)
    cosines = vectors @ centroids.T
    cosines[np.arange(len(vectors)), member] = -1
    nearest = cosines.max(axis=1)
    return Familiarity(centroids, float(np.quantile(nearest, STRANGE)), float(np.quantile(nearest, FAMILIAR)))


def card(
    trained: Trained,
    examples: Sequence[Example],
    *,
    sources: Sequence[str],
    thresholds: Mapping[str, float],
    thresholds_by: str,
) -> dict[str, Any]:
    """The model card, as JSON.

    Args:
        sources: where the examples are from.
        thresholds: of `auto`, by head.
        thresholds_by: how they were chosen, in words.
    """
    return {
        "made": datetime.now(UTC).date().isoformat(),
        "encoder": trained.svm.encoder,
        "versions": {"python": platform.python_version(), "scikit-learn": sklearn.__version__, "numpy": np.__version__},
        "data": {
            "sources": list(sources),
            "sha256": digest(examples),
            "questions": len(examples),
            "groups": len({example.group for example in examples}),
            "validated_on": len(trained.validation),
            "labels": {
                head: {label: sum(example.label(head) == label for example in examples) for label in labels}
                for head, labels in HEADS.items()
            },
        },
        "settings": {head: asdict(settings) for head, settings in trained.settings.items()},
        "temperatures": {head: trained.svm.heads[head].temperature for head in HEADS},
        "compared": trained.compared,
        "familiarity": {"low": round(trained.svm.familiarity.low, 4), "high": round(trained.svm.familiarity.high, 4)},
        "thresholds": dict(thresholds),
        "thresholds_by": thresholds_by,
        "validation": {head: scores.summary() for head, scores in trained.scores.items()},
    }
