"""BM25 as sparse vectors: saturated term frequencies in the passages, and inverse document frequencies by Qdrant.

A passage's value for a term is BM25's `tf / (tf + k1 (1 - b + b l / L))` (Robertson and Zaragoza, 2009, section 3.4); a
query's is the term's count. Qdrant multiplies by the term's inverse document frequency in the collection as it is
then (`Modifier.IDF`), so that a dot product is BM25. `L`, the average length, cannot follow the collection as it grows,
since it is inside every stored value: it is fixed with the first documents.

A term's index is 32 bits of its hash: of `n` terms about `n ** 2 / 2 ** 33` pairs share one, 1 pair of 100,000 terms
and 116 pairs of a million.
"""

from collections import Counter
from functools import lru_cache
from hashlib import blake2b

from qdrant_client.models import SparseVector

from services.kit.lexical import K1, B, Stems

# Stems of a chunk and its title: 25,000 chunks of encyclopaedia articles have 57 on average.
CHUNK_LENGTH = 57.0
# Stems of a whole document, where the first batch is too small to tell; an abstract's.
DOCUMENT_LENGTH = 100.0
# Fewer documents than this say little about the length of those to come.
MIN_SAMPLE = 16


@lru_cache(maxsize=200_000)
def term_index(stem: str) -> int:
    """The index of a stem, 0 .. 2 ** 32 - 1; the same in every process."""
    return int.from_bytes(blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def passage_vector(words: Stems, average_length: float) -> SparseVector:
    """A passage's weight of each of its terms, 0..1; `average_length` is that of the collection, in stems."""
    norm = K1 * (1 - B + B * len(words) / average_length)
    counts = query_vector(words)
    return SparseVector(indices=counts.indices, values=[count / (count + norm) for count in counts.values])


def query_vector(words: Stems) -> SparseVector:
    """A query's counts of its terms; empty for stop words alone."""
    counts = Counter(map(term_index, words))
    indices = sorted(counts)
    return SparseVector(indices=indices, values=[float(counts[index]) for index in indices])


def average_length(lengths: list[int]) -> float:
    """The average length that a collection of whole documents keeps, by the lengths of its first ones."""
    return max(1.0, sum(lengths) / len(lengths)) if len(lengths) >= MIN_SAMPLE else DOCUMENT_LENGTH
