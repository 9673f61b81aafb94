"""Capacity of the mesh: a queueing model, plans made with it, and a Qdrant cluster."""

from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not below `share` of all; 0 without any."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
