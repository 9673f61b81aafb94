"""Passages as sums of their tokens' vectors, beside queries that the model reads whole.

A token's vector is its last hidden state where the model reads nothing else (Tulkens and van Dongen, Model2Vec, 2024),
less the mean of frequent words, weighted by how rare it is (Arora et al., 2017, A Simple but Tough-to-Beat Baseline for
Sentence Embeddings, section 3). So a passage costs a look-up a token in place of a forward pass, and its vector stays
in the space of the model's own for queries. What it loses is in `docs/collections.md`.
"""

import threading
from collections.abc import Sequence

import numpy as np
from tokenizers import Encoding

from services.kit.backend import Backend, Floats, Ints

# The weight of a word of probability p is A / (A + p).
A = 1e-3
# Probabilities by rank (Mandelbrot's form of Zipf's law).
SHIFT = 2.7
# Words whose mean is taken off every vector: what all vectors have in common tells no passage from another.
FREQUENT = 2_000
# Tokens that are read at a time, each with the model's special ones.
TOKENS = 80


class StaticPassages:
    """Vectors of tokens, made when a text first holds them; safe to use from several threads.

    The model's vocabulary is taken to list words by frequency, as those of BERT do.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        vocabulary = backend.tokenizer.get_vocab()
        size = max(vocabulary.values()) + 1
        first = min((n for word, n in vocabulary.items() if len(word) > 1 and word.isalpha()), default=0)
        self._before, self._after = _special(backend)
        self._weights = _weights(size, first)
        # Memory of rows that nothing has asked for is not taken.
        self._rows: Floats = np.zeros((size, backend.dimension), np.float32)
        self._present = np.zeros(size, bool)
        self._lock = threading.Lock()
        frequent = np.arange(first, min(first + FREQUENT, size))
        self._make(frequent)
        self._centre: Floats = self._rows[frequent].mean(axis=0)

    @property
    def nbytes(self) -> int:
        """Memory of the vectors when all are made."""
        return self._rows.nbytes

    def encode(self, texts: Sequence[str]) -> Floats:
        """Vectors of passages, not normalised, shape (texts, d); one without words gets its special tokens' vector."""
        ids = [_words(encoding) for encoding in self._backend.tokenizer.encode_batch(list(texts))]
        if ids:
            self._make(np.unique(np.concatenate(ids)))
        vectors = np.empty((len(ids), self._backend.dimension), np.float32)
        for row, tokens in enumerate(ids):
            weights = self._weights[tokens]
            vectors[row] = (weights @ self._rows[tokens] - weights.sum() * self._centre) / max(1, len(tokens))
        return vectors

    def _make(self, tokens: Ints) -> None:
        """Make the vectors that are missing."""
        with self._lock:
            missing = tokens[~self._present[tokens]]
            if not len(missing):
                return
            parts = np.split(missing, range(TOKENS, len(missing), TOKENS))
            for part, rows in zip(parts, self._backend.map(self._read, parts), strict=True):
                self._rows[part] = rows
            self._present[missing] = True

    def _read(self, tokens: Ints) -> Floats:
        """Each token's last hidden state, shape (tokens, d)."""
        alone = np.array([[*self._before, token, *self._after] for token in tokens], np.int64)
        states = self._backend.run(alone, np.ones_like(alone), keep_states=True).states
        return np.asarray(states, np.float32)[:, len(self._before)]


def _special(backend: Backend) -> tuple[list[int], list[int]]:
    """The special tokens before and after a text."""
    encoding = backend.tokenizer.encode("a")
    words = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: words[0]], encoding.ids[words[-1] + 1 :]


def _words(encoding: Encoding) -> Ints:
    ids = np.asarray(encoding.ids, np.int64)
    words = ids[np.asarray(encoding.special_tokens_mask) == 0]
    return words if len(words) else ids


def _weights(size: int, first: int) -> Floats:
    """A weight for each token of the vocabulary, whose words begin at `first`."""
    probabilities = 1 / (np.maximum(np.arange(size) - first, 1) + SHIFT)
    probabilities /= probabilities[first:].sum()
    return np.asarray(A / (A + probabilities), np.float32)
