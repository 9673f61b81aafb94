"""One ranking out of many lists: a weighted sum of their scores, each list brought to 0..1 first (Onewo, ensemble)."""

import math

from services.gateway.papers.candidates import Listing, Pool
from services.gateway.papers.weights import Weights


def rank(pool: Pool, weights: Weights) -> dict[str, float]:
    """All candidates' ids with their scores in 0..1, best first; ties stay in the order of the searches.

    Weights count in proportion to the sum of those whose lists are there, so a missing list shifts nothing.
    """
    weighed = [(listing, weights.of(listing.source, listing.form, listing.role)) for listing in pool.lists]
    total = math.fsum(weight for _, weight in weighed)
    if total <= 0:
        weighed, total = [(listing, 1.0) for listing in pool.lists], float(len(pool.lists))
    parts = [(weight, normalised(listing)) for listing, weight in weighed if weight > 0]
    scores = {
        name: math.fsum(weight * part.get(name, 0.0) for weight, part in parts) / max(total, 1e-12)
        for name in pool.candidates
    }
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def normalised(listing: Listing) -> dict[str, float]:
    """A list's scores, its worst 0 and its best 1; a document outside of the list counts as 0."""
    low, high = min(listing.scores.values(), default=0.0), max(listing.scores.values(), default=0.0)
    # The worst of a list stands above documents outside of it: a list of one, or of equals, is all best.
    return {name: (score - low) / (high - low) if high > low else 1.0 for name, score in listing.scores.items()}
