"""Weights of an ensemble by coordinate search: one weight after the other takes the value that ranks best.

The measure is MAP@20 itself, which has no gradient. There are few weights and few values, and a ranking costs
milliseconds. Weights stay equal, which overfits least, unless a change gains enough.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lab.papers.data import Grades

DEPTH = 20
# No list has weight 0: where the others fail, it ranks alone.
VALUES = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
MAX_ROUNDS = 8
# Of MAP@20; a smaller gain on some hundred questions is chance.
MIN_GAIN = 5e-4

Floats = NDArray[np.float64]
# A question's candidates, in the order that decides ties; their scores by each list, 0..1, shape (candidates, lists).
Scored = tuple[Sequence[str], Floats]


class Objective:
    """MAP@20 of weights over a set of questions, all of them at once.

    Args:
        scored: by question.
        qrels: of the same questions; relevant documents in no list count as missed.
    """

    def __init__(self, scored: Mapping[str, Scored], qrels: Mapping[str, Grades]) -> None:
        longest = max((len(ids) for ids, _ in scored.values()), default=0)
        lists = max((features.shape[1] for _, features in scored.values()), default=0)
        self._features = np.zeros((len(scored), longest, lists))
        self._relevant = np.zeros((len(scored), longest), bool)
        # Padding ranks last.
        self._padding = np.full((len(scored), longest), -np.inf)
        self._totals = np.ones(len(scored))
        for row, (query, (ids, features)) in enumerate(scored.items()):
            grades = qrels[query]
            count = len(ids)
            self._features[row, :count] = features
            self._relevant[row, :count] = [grades.get(name, 0) > 0 for name in ids]
            self._padding[row, :count] = 0.0
            self._totals[row] = max(1, sum(grade > 0 for grade in grades.values()))

    def __call__(self, weights: Floats) -> float:
        return float(self.each(weights).mean()) if len(self._totals) else 0.0

    def each(self, weights: Floats) -> Floats:
        """Average precision at 20 of each question, shape (questions,)."""
        scores = self._features @ weights + self._padding
        order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        hits = np.take_along_axis(self._relevant, order, axis=1)
        precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        return np.asarray((precision * hits).sum(axis=1) / self._totals, np.float64)


def coordinate_search(objective: Objective, lists: int) -> tuple[Floats, float]:
    """Weights, shape (lists,), and their value: from all equal on, until a round over all of them changes none."""
    weights = np.ones(lists)
    best = objective(weights)
    for _ in range(MAX_ROUNDS):
        before = best
        for index in range(lists):
            for value in VALUES:
                candidate = weights.copy()
                candidate[index] = value
                score = objective(candidate)
                if score > best + MIN_GAIN:
                    best, weights = score, candidate
        if best <= before:
            break
    return weights, best
