"""One ranking out of many lists: a weighted sum of their scores, each list brought to 0..1 first (Onewo, ensemble)."""

import math
from collections.abc import Callable, Sequence
from typing import get_args

from services.gateway.papers.candidates import Listing, Pool
from services.gateway.papers.weights import Normalisation, Weights

NORMALISATIONS: tuple[Normalisation, ...] = get_args(Normalisation)
# Cormack's constant of reciprocal rank fusion.
RANK_CONSTANT = 60
# Standard deviations that zscore maps to 0..1; scores further out count as those at the edge.
SPREAD = 3.0


def rank(pool: Pool, weights: Weights) -> dict[str, float]:
    """All candidates' ids with their scores in 0..1, best first; ties stay in the order of the searches.

    Weights count in proportion to the sum of those whose lists are there, so a missing list shifts nothing.
    """
    weighed = [(listing, weights.of(listing.source, listing.form, listing.role)) for listing in pool.lists]
    total = math.fsum(weight for _, weight in weighed)
    if total <= 0:
        weighed, total = [(listing, 1.0) for listing in pool.lists], float(len(pool.lists))
    parts = [(weight, normalised(listing, weights.normalise)) for listing, weight in weighed if weight > 0]
    scores = {
        name: math.fsum(weight * part.get(name, 0.0) for weight, part in parts) / max(total, 1e-12)
        for name in pool.candidates
    }
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def normalised(listing: Listing, how: Normalisation) -> dict[str, float]:
    """A list's scores in 0..1; a document outside of the list counts as 0."""
    values = _NORMALISERS[how](list(listing.scores.values()))
    return dict(zip(listing.scores, values, strict=True))


def _minmax(scores: Sequence[float]) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    # The worst of a list stands above documents outside of it: a list of one, or of equals, is all best.
    return [(score - low) / (high - low) for score in scores] if high > low else [1.0] * len(scores)


def _zscore(scores: Sequence[float]) -> list[float]:
    if not scores:
        return []
    mean = math.fsum(scores) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores)) or 1.0
    return [min(1.0, max(0.0, 0.5 + (score - mean) / deviation / (2 * SPREAD))) for score in scores]


def _rank(scores: Sequence[float]) -> list[float]:
    return [(RANK_CONSTANT + 1) / (RANK_CONSTANT + place) for place in range(1, len(scores) + 1)]


_NORMALISERS: dict[Normalisation, Callable[[Sequence[float]], list[float]]] = {
    "minmax": _minmax,
    "zscore": _zscore,
    "rank": _rank,
}
