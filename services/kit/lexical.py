"""BM25 over the passages of one request.

Only the query's terms are counted, because an index of all terms, which bm25s builds, serves one query here and costs
ten times as much. Tokens, stop words and stems are bm25s's own, so scores are in proportion to its.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import Stemmer
from numpy.typing import NDArray

# bm25s's index would use them where they are installed; its tokens, all that is used here, do not: 10 MB less. A module
# of None cannot be imported.
_unused: dict[str, Any] = {name: None for name in ("jax", "numba", "scipy") if name not in sys.modules}
sys.modules |= _unused
try:
    import bm25s
finally:
    for _name in _unused:
        del sys.modules[_name]

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
    """Score of each document as a share of what any document could score, 0..1, shape (documents,).

    BM25 itself (Lucene's variant) has no scale: it grows with the number and rarity of the query's terms. The sum of
    their inverse document frequencies bounds it, and divided by that it can be added to a cosine.
    """
    scores = np.zeros(len(documents), np.float32)
    if not documents:
        return scores
    lengths = np.fromiter((len(document) for document in documents), np.float32, len(documents))
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
    bound = 0.0
    # Sorted, because the order of a set differs between processes and with it the last digit of a sum.
    for term in sorted(set(query)):
        counts = np.fromiter((document.count(term) for document in documents), np.float32, len(documents))
        frequency = int(np.count_nonzero(counts))
        idf = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        bound += idf
        scores += idf * counts / (counts + norm)
    return scores / bound if bound else scores
