"""Scorers of (query, passage) pairs. Adding one means adding a class and its name in `SCORERS`.

A score is in 0..1 and comparable between requests of one scorer: cross-encoders give a probability, late interaction a
mapped cosine. Nothing is normalised within a request, so that good passages can be told from the best of bad ones.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.kit.encoder import Encoder
from services.kit.late_interaction import maxsim
from services.kit.lexical import bm25, stems
from services.kit.precision import Precision

# Weights of the sum that late interaction ranks by: MaxSim decides, the others break near-ties.
DENSE, MAXSIM, LEXICAL = 0.5, 1.0, 0.1
# Logistic regression of that sum on whether the passage is the right one, over the 20 best of 250 SQuAD questions.
MIDDLE, STEEPNESS = 0.96, 17.0
# About 200 tokens of English.
PIECE_CHARS = 800


@dataclass(frozen=True, slots=True)
class Pairs:
    """One query and the passages to score against it."""

    query: str
    passages: tuple[str, ...]


class Scorer(ABC):
    """A model that scores pairs. Loading is apart from making, since it takes seconds."""

    name: str

    def __init__(self, model: str, precision: Precision, batch_tokens: int) -> None:
        self.model = model
        self.precision = precision
        self.batch_tokens = batch_tokens

    @abstractmethod
    def load(self) -> None:
        """Read the weights."""

    @abstractmethod
    def score(self, pairs: Pairs) -> list[float]:
        """Relevance of each passage, 0..1, in the order given."""

    def warm_up(self) -> None:
        """Run once, so that the first request does not pay for it."""
        self.score(Pairs("which request is the first?", ("a warm-up passage " * 20, "short")))


class LateInteraction(Scorer):
    """Dense cosine, MaxSim over token states and BM25 of one small encoder: no weights beyond the retriever's own."""

    name = "late-interaction"

    def load(self) -> None:
        self._encoder = Encoder(self.model, precision=self.precision)
        self._encoder.load()
        self.model = self._encoder.name

    def score(self, pairs: Pairs) -> list[float]:
        query = self._encoder.encode_query(pairs.query, keep_token_states=True)
        # The encoder reads 256 tokens; of a longer passage the best piece speaks for the whole.
        pieces = [_pieces(passage) for passage in pairs.passages]
        encoded = self._encoder.encode([piece for passage in pieces for piece in passage], keep_token_states=True)
        if query.token_states is None or encoded.token_states is None:
            raise RuntimeError("the encoder kept no token states")
        firsts = np.cumsum([0, *(len(passage) for passage in pieces[:-1])])
        dense = np.maximum.reduceat(encoded.vectors @ query.vectors[0], firsts)
        late = np.maximum.reduceat(maxsim(query.token_states, encoded.token_states), firsts)
        words = stems([pairs.query])[0]
        mixed = DENSE * dense + MAXSIM * late + LEXICAL * bm25(words, stems(pairs.passages))
        return [1 / (1 + math.exp(-STEEPNESS * (float(value) - MIDDLE))) for value in mixed]


def _pieces(passage: str) -> list[str]:
    return [passage[start : start + PIECE_CHARS] for start in range(0, max(1, len(passage)), PIECE_CHARS)]


class CrossEncoderScorer(Scorer):
    """Any sequence-classification cross-encoder through sentence-transformers."""

    name = "cross-encoder"

    def load(self) -> None:
        import torch
        from sentence_transformers import CrossEncoder

        self._model: Any = CrossEncoder(
            self.model,
            device=self.precision.device,
            model_kwargs={"dtype": self.precision.torch_dtype},
            activation_fn=torch.nn.Sigmoid(),
        )
        self._length = int(self._model.max_seq_length or 512)

    def score(self, pairs: Pairs) -> list[float]:
        # Its predict sorts by length; a batch is bounded by what its longest pair takes.
        batch = max(1, self.batch_tokens // self._length)
        values = self._model.predict(
            [(pairs.query, passage) for passage in pairs.passages],
            batch_size=batch,
            show_progress_bar=False,
            convert_to_tensor=True,
        )
        return _unit(values.float().cpu().numpy().tolist())


class FlagEmbeddingScorer(Scorer):
    """bge-reranker-v2-m3 and its kin through FlagEmbedding (db3, section 2.2)."""

    name = "flag-embedding"

    def load(self) -> None:
        from FlagEmbedding import FlagReranker

        self._model: Any = FlagReranker(
            self.model,
            use_fp16=self.precision.dtype == "fp16",
            use_bf16=self.precision.dtype == "bf16",
            devices=self.precision.device,
        )

    def score(self, pairs: Pairs) -> list[float]:
        batch = max(1, self.batch_tokens // 512)
        values = self._model.compute_score(
            [(pairs.query, passage) for passage in pairs.passages], normalize=True, batch_size=batch
        )
        return _unit(np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist())


def _unit(values: Sequence[float]) -> list[float]:
    """Scores within 0..1; what is no number, as half precision can overflow, is irrelevant."""
    return [min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0 for value in values]


SCORERS: dict[str, type[Scorer]] = {
    scorer.name: scorer for scorer in (LateInteraction, CrossEncoderScorer, FlagEmbeddingScorer)
}


def build_scorer(name: str, *, model: str, precision: Precision, batch_tokens: int) -> Scorer:
    """The scorer of that name, not loaded.

    Raises:
        ValueError: there is none, or it needs a model and got none.
    """
    if name not in SCORERS:
        raise ValueError(f"no scorer is named {name!r}; there are {', '.join(SCORERS)}")
    if not model and name != LateInteraction.name:
        raise ValueError(f"the scorer {name!r} needs CRAGMESH_RERANKER_MODEL")
    return SCORERS[name](model, precision, batch_tokens)
