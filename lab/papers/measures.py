"""Measures of rankings by ir-measures, which runs trec_eval's own code, with intervals.

Intervals are 95 % intervals of the Bayesian bootstrap over questions (Rubin 1981), paired where two rankings of the
same questions are compared. One seed for all, so that a report is the same every time.
"""

from collections.abc import Mapping, Sequence

import ir_measures
import numpy as np
from ir_measures import AP, RR, R, nDCG
from numpy.typing import NDArray

from lab.evaluator.score import LEVEL, RESAMPLES, SEED, Estimate
from lab.papers.data import Grades

# AQA is scored by MAP@20; 150 is the length of a list of candidates.
DEPTH = 150
MAP = "MAP@20"
MEASURES = {MAP: AP @ 20, "Recall@150": R @ 150, "MRR": RR, "nDCG@20": nDCG @ 20}

Floats = NDArray[np.float64]
# Document ids, best first, by question.
Rankings = Mapping[str, Sequence[str]]


def measure(rankings: Rankings, qrels: Mapping[str, Grades]) -> dict[str, Floats]:
    """Each measure's value for each ranked question, in the rankings' order, shape (questions,)."""
    judged = {query: qrels[query] for query in rankings}
    run = {
        query: {document: float(-place) for place, document in enumerate(dict.fromkeys(documents))}
        for query, documents in rankings.items()
    }
    place = {query: index for index, query in enumerate(rankings)}
    names = {measure: name for name, measure in MEASURES.items()}
    values = {name: np.zeros(len(place)) for name in MEASURES}
    # trec_eval leaves out a question without a ranked document, whose value is 0.
    for metric in ir_measures.iter_calc(list(MEASURES.values()), judged, run):
        values[names[metric.measure]][place[metric.query_id]] = metric.value
    return values


def mean(values: Floats) -> Estimate:
    """The mean over the questions, with its interval."""
    return _estimate(float(values.mean()), _weights(len(values)) @ values)


def difference(values: Floats, base: Floats) -> Estimate:
    """The mean gain over a base with the same questions, with its interval."""
    return mean(values - base)


def relative(values: Floats, base: Floats) -> Estimate:
    """The gain as a share of the base's mean, with its interval."""
    weights = _weights(len(values))
    samples = (weights @ values) / np.maximum(weights @ base, 1e-12) - 1
    return _estimate(float(values.mean() / max(float(base.mean()), 1e-12) - 1), samples)


def _weights(questions: int) -> Floats:
    samples = np.random.default_rng(SEED).standard_exponential((RESAMPLES, questions))
    return np.asarray(samples / samples.sum(axis=1, keepdims=True), np.float64)


def _estimate(value: float, samples: Floats) -> Estimate:
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high))
