"""CRAG's score with intervals, from the counts of outcomes.

Intervals are 95 % intervals of the Bayesian bootstrap (Rubin 1981): the weights of the questions are drawn from a
Dirichlet distribution, which for outcomes in a few categories depends on their counts alone. Jeffreys' half a count is
added to each category, so that an outcome that did not occur in a small slice is not taken for impossible. One seed for
all, so that a report is the same every time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.evaluator.judge.verdict import WEIGHTS

SEED = 20240301
RESAMPLES = 4_000
LEVEL = 0.95
PRIOR = 0.5

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

OUTCOMES = ("right", "missing", "wrong")
# Of the outcomes: CRAG's score, accuracy, missing rate and hallucination are sums of the shares under one each.
_WEIGHTS = (np.array([WEIGHTS["right"], WEIGHTS["missing"], WEIGHTS["wrong"]], dtype=np.float64), *np.eye(3))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Scores:
    """Outcomes of one set of questions; accuracy, missing and hallucination are shares of all of them."""

    questions: int
    right: int
    missing: int
    wrong: int
    score: Estimate
    accuracy: Estimate
    missing_rate: Estimate
    hallucination: Estimate


def scores(outcomes: Sequence[str], *, seed: int = SEED) -> Scores:
    """Score a set of outcomes; an empty set scores 0 with the widest interval."""
    counts = np.array([sum(outcome == name for outcome in outcomes) for name in OUTCOMES], dtype=np.int64)
    total = int(counts.sum())
    shares = _resampled(counts, seed)
    score, accuracy, missing, wrong = (
        _estimate(float(counts @ weights) / max(1, total), shares @ weights) for weights in _WEIGHTS
    )
    return Scores(total, int(counts[0]), int(counts[1]), int(counts[2]), score, accuracy, missing, wrong)


def _resampled(counts: Counts, seed: int, prior: float = PRIOR) -> Floats:
    """Shares of the categories in each resample, shape (resamples, categories)."""
    gammas = np.random.default_rng(seed).standard_gamma(counts + prior, size=(RESAMPLES, len(counts)))
    return np.asarray(gammas / gammas.sum(axis=1, keepdims=True), dtype=np.float64)


def _estimate(value: float, resamples: Floats) -> Estimate:
    low, high = np.quantile(resamples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, min(value, float(low)), max(value, float(high)))


@dataclass(frozen=True, slots=True)
class Difference:
    """A second run less a first one, over the same questions: score and accuracy with intervals, and who was right."""

    questions: int
    score: Estimate
    accuracy: Estimate
    hallucination: Estimate
    both: int
    only_first: int
    only_second: int


def difference(first: Sequence[str], second: Sequence[str], *, seed: int = SEED) -> Difference:
    """Paired: the two outcomes of a question are drawn together, so that what is hard for both cancels out."""
    if len(first) != len(second):
        raise ValueError("runs over different questions cannot be paired")
    index = {name: place for place, name in enumerate(OUTCOMES)}
    counts = np.zeros(9, dtype=np.int64)
    for one, two in zip(first, second, strict=True):
        counts[3 * index[one] + index[two]] += 1
    total = max(1, len(first))
    # Over the pairs of outcomes: what the second adds to the first.
    joint = [(weights[None, :] - weights[:, None]).reshape(9) for weights in _WEIGHTS]
    # A half for each outcome, spread over the pairs that it may be part of.
    shares = _resampled(counts, seed, PRIOR / 3)
    score, accuracy, _, wrong = (_estimate(float(counts @ weights) / total, shares @ weights) for weights in joint)
    return Difference(
        questions=len(first),
        score=score,
        accuracy=accuracy,
        hallucination=wrong,
        both=int(counts[0]),
        only_first=int(counts[1] + counts[2]),
        only_second=int(counts[3] + counts[6]),
    )


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The effect of withholding answers below a confidence, for each confidence that occurs, highest first.

    `coverage` is the share of all questions that is answered, `risk` the share of wrong ones among those answers,
    `score` CRAG's score. `area` is the mean risk over the answers. In-sample: a threshold chosen here flatters itself.
    """

    threshold: Floats
    coverage: Floats
    risk: Floats
    score: Floats
    area: float


def risk_coverage(confidence: Floats, right: NDArray[np.bool_], questions: int) -> RiskCoverage:
    """The curve over the answered questions; answers of one confidence are taken or withheld together."""
    order = np.argsort(-confidence, kind="stable")
    ranked, hits = confidence[order], right[order].astype(np.float64)
    if not len(ranked):
        empty = np.zeros(0)
        return RiskCoverage(empty, empty, empty, empty, 0.0)
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    answers = ends + 1.0
    correct = np.cumsum(hits)[ends]
    risk = 1 - correct / answers
    sizes = np.diff(answers, prepend=0.0)
    return RiskCoverage(
        threshold=ranked[ends],
        coverage=answers / questions,
        risk=risk,
        score=(2 * correct - answers) / questions,
        area=float((risk * sizes).sum() / answers[-1]),
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about the same confidence: how many, their mean confidence, and how many were right."""

    answers: int
    confidence: float
    accuracy: Estimate


def reliability(confidence: Floats, right: NDArray[np.bool_], bins: int = 10) -> list[Bin]:
    """Bins of equal width that are not empty, from low to high."""
    places = np.clip((confidence * bins).astype(int), 0, bins - 1)
    filled = []
    for place in range(bins):
        chosen = places == place
        count, hits = int(chosen.sum()), int(right[chosen].sum())
        if count:
            shares = _resampled(np.array([hits, count - hits]), SEED)
            filled.append(Bin(count, float(confidence[chosen].mean()), _estimate(hits / count, shares[:, 0])))
    return filled


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: the gap between confidence and accuracy, weighted by the answers of each bin."""
    total = sum(item.answers for item in bins)
    return sum(item.answers * abs(item.confidence - item.accuracy.value) for item in bins) / total if total else 0.0


def separation(confidence: Floats, right: NDArray[np.bool_]) -> float:
    """Area under the ROC curve: how often a right answer is surer than a wrong one; one half when either is lacking."""
    good, bad = confidence[right], confidence[~right]
    if not len(good) or not len(bad):
        return 0.5
    ranks = np.searchsorted(np.sort(bad), good, side="left") + np.searchsorted(np.sort(bad), good, side="right")
    return float(ranks.mean() / (2 * len(bad)))
