"""Rankings of a request's chunks. Adding one means adding a function and its name in `RANKINGS`.

Each scores the embedded candidates of a BM25 pass; higher is better. Embedding is nearly all of the time, so
`PREFILTER` candidates are embedded at most: with 200 of a request's 800 chunks the context holds the answer as often as
with 300 or all of them (`docs/measurements.md`), at a fraction of the cost.

Scores are sums on fixed scales, cosine, MaxSim and the share of BM25's bound, never standardised within a request:
where no word of the query occurs, standardising blows noise up to the size of a signal. Measured on web pages, adding
standardised BM25 to cosine loses answers that cosine alone finds; the fixed sums lose none there and win where wording
is shared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from proto.retrieve import PREFILTER
from services.kit.encoder import Encoded, Encoder, Floats, Ints, TokenStates
from services.kit.late_interaction import maxsim
from services.kit.lexical import Stems, bm25, stems
from services.retriever.corpus import SearchablePage

Scores = NDArray[np.float32]

# Weight of BM25's share beside a cosine; anything from 0.1 to 0.5 does as well.
LEXICAL = 0.25
# Late interaction for the best only: 50 give no better context, and their token states are what pages cache.
LATE_POOL = 20
# WeKnow: 5 candidates by BM25 and 20 by vectors go on to the reranker.
HYBRID_SPARSE, HYBRID_DENSE = 5, 20


@dataclass(frozen=True, slots=True)
class Hit:
    """A child that matched: its page among those searched, its index in the page, and its score."""

    page: int
    child: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """A ranking's input: BM25 and cosine of all candidates, and a function for the MaxSim of some."""

    lexical: Scores
    dense: Scores
    late: Callable[[Sequence[int]], Scores]


def _positions(scores: Scores) -> NDArray[np.int64]:
    return np.argsort(np.argsort(-scores, kind="stable"), kind="stable")


def by_hybrid(candidates: Candidates) -> Scores:
    """The 5 best by BM25 and the 20 best by cosine, in turns (WeKnow, stage 2); the rest by cosine."""
    scores = candidates.dense - 2.0
    dense_rank, sparse_rank = _positions(candidates.dense), _positions(candidates.lexical)
    best = np.minimum(
        np.where(dense_rank < HYBRID_DENSE, dense_rank, np.inf),
        np.where(sparse_rank < HYBRID_SPARSE, sparse_rank + 0.5, np.inf),
    )
    return np.asarray(np.where(np.isfinite(best), 1 / (1 + best), scores), np.float32)


def by_late_interaction(candidates: Candidates) -> Scores:
    """Cosine and a little of BM25's share of its bound (convex combination: Bruch et al., 2023).

    For the best by this sum MaxSim is added; the others come after them.
    """
    scores = candidates.dense + LEXICAL * candidates.lexical
    pool = np.argsort(-scores, kind="stable")[:LATE_POOL]
    late = candidates.late([int(index) for index in pool])
    # A cosine spans 2 and MaxSim 2 more: none outside the pool can overtake one in it.
    rest = scores - 5.0
    rest[pool] = scores[pool] + late
    return np.asarray(rest, np.float32)


RANKINGS: dict[str, Callable[[Candidates], Scores]] = {
    "default": by_late_interaction,
    # Of db3, section 2.2.
    "dense": lambda candidates: candidates.dense,
    "hybrid": by_hybrid,
}


def rank(
    query: str,
    pages: Sequence[SearchablePage],
    encoder: Encoder,
    *,
    ranking: str,
    recall_k: int,
    fields: Sequence[str] = (),
    prefilter: int = PREFILTER,
) -> list[Hit]:
    """The `recall_k` best children of all pages, best first; ties keep the order of the pages.

    Args:
        fields: for each page a text (its name and snippet) that counts for its children in BM25; empty for none.
        prefilter: chunks to embed at most, the best by BM25; never fewer than `recall_k`.
    """
    places, documents = _distinct(pages, fields)
    if not places:
        return []
    lexical = bm25(stems([query])[0], documents)
    # Where too few chunks share a word with the query, the beginnings of all pages fill up, not only the first page.
    order = sorted(range(len(places)), key=lambda index: (-lexical[index], places[index][1], places[index][0]))
    prefiltered = np.sort(np.asarray(order[: max(prefilter, recall_k)]))
    candidates = [places[index] for index in prefiltered]
    embedding = _Embedding(query, pages, candidates, encoder, RANKINGS[ranking] is by_late_interaction)
    scores = RANKINGS[ranking](Candidates(lexical[prefiltered], embedding.cosines(), embedding.maxsims))
    best = np.argsort(-scores, kind="stable")[:recall_k]
    return [Hit(page=candidates[index][0], child=candidates[index][1], score=float(scores[index])) for index in best]


def _distinct(pages: Sequence[SearchablePage], fields: Sequence[str]) -> tuple[list[tuple[int, int]], list[Stems]]:
    """The places of all children without repeated texts, and their stems."""
    texts: set[str] = set()
    places: list[tuple[int, int]] = []
    documents: list[Stems] = []
    extra = stems(fields) if fields else [()] * len(pages)
    for index, page in enumerate(pages):
        for child, chunk in enumerate(page.children):
            if chunk.text not in texts:
                texts.add(chunk.text)
                places.append((index, child))
                documents.append(page.stems[child] + extra[index])
    return places, documents


@dataclass(slots=True)
class _Embedding:
    """Similarities of a request's candidates to the query; encodes only those without vectors in their pages.

    Attributes:
        keep: keep the token states of each forward pass, for MaxSim.
        fresh: token states and ids of the places that this request has encoded.
    """

    query: str
    pages: Sequence[SearchablePage]
    places: Sequence[tuple[int, int]]
    encoder: Encoder
    keep: bool
    encoded: Encoded = field(init=False)
    fresh: dict[tuple[int, int], tuple[Floats, Ints]] = field(default_factory=dict)

    def cosines(self) -> Scores:
        """Cosine of each candidate."""
        self.encoded = self.encoder.encode_query(self.query, keep_token_states=self.keep)
        missing = [(page, child) for page, child in self.places if child not in self.pages[page].vectors]
        for (page, child), vector in zip(missing, self._encode(missing), strict=True):
            self.pages[page].vectors[child] = vector.astype(np.float16)
        vectors = np.stack([self.pages[page].vectors[child] for page, child in self.places])
        return np.asarray(vectors.astype(np.float32) @ self.encoded.vectors[0], np.float32)

    def maxsims(self, candidates: Sequence[int]) -> Scores:
        """MaxSim of some candidates, by their index."""
        if self.encoded.token_states is None:
            raise RuntimeError("the encoder kept no token states")
        places = [self.places[index] for index in candidates]
        self._encode(
            [place for place in places if place not in self.fresh and place[1] not in self.pages[place[0]].states]
        )
        for page, child in places:
            if child not in self.pages[page].states:
                states, ids = self.fresh[page, child]
                self.pages[page].states[child] = states.astype(np.float16), ids.copy()
        states_and_ids = [self.pages[page].states[child] for page, child in places]
        return maxsim(self.encoded.token_states, TokenStates.join(states_and_ids))

    def _encode(self, places: Sequence[tuple[int, int]]) -> Floats:
        texts = [self.pages[page].children[child].text for page, child in places]
        encoded = self.encoder.encode(texts, keep_token_states=self.keep)
        if encoded.token_states is not None:
            self.fresh |= {place: encoded.token_states.of(index) for index, place in enumerate(places)}
        return encoded.vectors
