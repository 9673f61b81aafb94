"""BM25 over the passages of one request.

Only the query's terms are counted, because an index of all terms, which bm25s builds, serves one query here and costs
ten times as much. Tokens, stop words and stems are bm25s's own, so scores are the ones it would give.
"""

import math
from collections.abc import Sequence

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray

Stems = tuple[str, ...]

# Robertson's k1 and b, as in Lucene and bm25s.
K1 = 1.5
B = 0.75

_stemmer = Stemmer.Stemmer("english")


def stems(texts: Sequence[str]) -> list[Stems]:
    """Stemmed words of each text without English stop words."""
    if not texts:
        return []
    tokens = bm25s.tokenize(
        list(texts), stopwords="en", stemmer=_stemmer, return_ids=False, show_progress=False, lower=True
    )
    return [tuple(document) for document in tokens]


def bm25(query: Stems, documents: Sequence[Stems]) -> NDArray[np.float32]:
    """Score of each document, shape (documents,); zero where no term of the query occurs (Lucene's variant)."""
    scores = np.zeros(len(documents), np.float32)
    if not documents:
        return scores
    lengths = np.fromiter((len(document) for document in documents), np.float32, len(documents))
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
    for term in set(query):
        counts = np.fromiter((document.count(term) for document in documents), np.float32, len(documents))
        found = int(np.count_nonzero(counts))
        if found:
            idf = math.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
            scores += idf * counts / (counts + norm)
    return scores
