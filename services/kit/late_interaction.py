"""MaxSim: each token of the query finds its best token in a passage (ColBERT, section 3.3), here without training.

Every token counts by its inverse document frequency among the passages, so that rare words decide and the encoder's
special tokens do not.
"""

import math

import numpy as np
from numpy.typing import NDArray

from services.kit.encoder import TokenStates


def maxsim(query: TokenStates, passages: TokenStates) -> NDArray[np.float32]:
    """Mean best cosine over the tokens of the query, one text, for each passage, in -1..1, shape (passages,)."""
    if len(passages) == 0:
        return np.zeros(0, np.float32)
    similarity = query.states @ passages.states.T
    best = np.maximum.reduceat(similarity, passages.offsets[:-1], axis=1)
    weights = _idf(query, passages)
    return np.asarray(weights @ best, np.float32)


def _idf(query: TokenStates, passages: TokenStates) -> NDArray[np.float32]:
    count = len(passages)
    owner = np.repeat(np.arange(count), np.diff(passages.offsets))
    weights = np.zeros(len(query.ids), np.float32)
    # The first and the last are the encoder's special tokens, which stand for no word.
    for index in range(1, len(query.ids) - 1):
        frequency = len(np.unique(owner[passages.ids == query.ids[index]]))
        weights[index] = math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
    total = float(weights.sum())
    if total <= 1e-9:
        return np.full(len(weights), 1 / max(1, len(weights)), np.float32)
    return weights / total
