"""Scorers of (query, passage) pairs. Adding one means adding a class and its name in `SCORERS`.

A score is in 0..1 and comparable between requests of one scorer: cross-encoders give a probability, the others a mapped
sum. Nothing is normalised within a request, so that the best of bad passages does not look good.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.kit.encoder import Encoder
from services.kit.late_interaction import maxsim
from services.kit.lexical import bm25, stems
from services.kit.precision import Precision
from services.kit.reader import Reader, Text
from services.kit.text.cutting import window_chars

# Weights of the sum that late interaction ranks by: MaxSim decides, the others break near-ties.
DENSE, MAXSIM, LEXICAL = 0.5, 1.0, 0.1
# Logistic regression of that sum on whether the passage is the right one, over the 20 best of 250 SQuAD questions.
MIDDLE, STEEPNESS = 0.96, 17.0
# About 200 tokens of English; pieces of other scripts are shorter.
PIECE_CHARS = 800
WARM_UP = "The first request finds everything in its place, and waits no longer than the third. " * 10
# Weight of the reader's odds beside that sum, by a logistic regression on 160 questions of prose outside all training
# data, and the bound of these odds.
READ, ODDS = 0.03, 8.0
# Passages that it reads, the best first, and the reserve of the caller's time: some 0.2 s of two cores.
READ_POOL, READ_RESERVE_S = 20, 0.3
# Weight of a token's log-likelihood beside that sum, and the logistic regression of both; 160 SQuAD questions.
LIKELIHOOD, LIKELY_MIDDLE, LIKELY_STEEPNESS = 0.2, 1.42, 6.4
# Passages that the language model reads, the best first, and how long it may: 20 take 2 s on two cores.
LIKELY_POOL, LIKELY_S = 20, 3.0
# Time of five passages on a machine that is busy with answers; no batch begins with less time left.
LIKELY_RESERVE_S = 2.5
# Longer ones are cut: a token of the query costs a row of the vocabulary, and 800 characters of another script could be
# thousands of tokens.
QUERY_TOKENS, PASSAGE_TOKENS = 64, 256
# Prompts of a batch: small, so that the time is checked often; larger batches are no faster on a CPU.
PROMPTS_AT_A_TIME = 5
# Gain where half precision has overflowed, below any passage's.
LEAST = -10.0

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """One query and the passages to score against it, until the caller stops waiting, on the monotonic clock.

    `reading` says whether the reader's odds count, where the scorer has a reader.
    """

    query: str
    passages: tuple[str, ...]
    until: float = math.inf
    reading: bool = False


class Scorer(ABC):
    """A model that scores pairs; `load` takes seconds."""

    name: str
    reader: Reader | None = None
    # Passages that the last call had no time for.
    unread: int = 0
    # Whether other requests wait, which need the time more.
    others_wait: Callable[[], bool] = staticmethod(lambda: False)

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
        """Score twenty long passages and one, so that the first request does not pay for kernels and memory."""
        for count in (20, 1):
            passages = tuple(f"{index} {WARM_UP}"[:PIECE_CHARS] for index in range(count))
            self.score(Pairs("which request is the first?", passages))


class LateInteraction(Scorer):
    """Dense cosine, MaxSim over token states and BM25 of one small encoder: no weights beyond the retriever's own.

    With `reading`, the reader's odds that a passage answers the query change the order (like Mao et al., 2021); an
    unread passage gets the least odds of the others. The scores stay those of late interaction, assigned in that order,
    so that thresholds fitted on them hold with and without.
    """

    name = "late-interaction"

    def load(self) -> None:
        self._encoder = Encoder(self.model, precision=self.precision)
        self._encoder.load()
        self.model = self._encoder.name

    def score(self, pairs: Pairs) -> list[float]:
        values, pieces = self.read(pairs)
        self.unread = 0
        scores = _logistic(values, MIDDLE, STEEPNESS)
        if not pairs.reading or self.reader is None:
            return scores
        best = np.argsort(-values, kind="stable")[:READ_POOL]
        texts = [Text(pieces[index]) for index in best]
        readings = self.reader.read(pairs.query, texts, spans=1, until=pairs.until - READ_RESERVE_S)
        odds = {index: one.odds for index, one in zip(best, readings, strict=True) if one.complete}
        self.unread = len(best) - len(odds)
        if not odds:
            return scores
        every = _filled(len(values), list(odds), list(odds.values()))
        order = np.argsort(-(values + READ * np.clip(every, -ODDS, ODDS)), kind="stable")
        ranked = np.empty(len(values))
        ranked[order] = sorted(scores, reverse=True)
        return ranked.tolist()

    def read(self, pairs: Pairs) -> tuple[Values, list[str]]:
        """The sum of each passage, and the best piece of it."""
        query = self._encoder.encode_query(pairs.query, keep_token_states=True)
        # The encoder reads 256 tokens; a longer passage has the score of its best piece.
        pieces = [_pieces(passage) for passage in pairs.passages]
        encoded = self._encoder.encode([piece for passage in pieces for piece in passage], keep_token_states=True)
        if query.token_states is None or encoded.token_states is None:
            raise RuntimeError("the encoder kept no token states")
        firsts = np.cumsum([0, *(len(passage) for passage in pieces[:-1])])
        cosines, late = encoded.vectors @ query.vectors[0], maxsim(query.token_states, encoded.token_states)
        dense = np.maximum.reduceat(cosines, firsts)
        words = stems([pairs.query])[0]
        mixed = (
            DENSE * dense + MAXSIM * np.maximum.reduceat(late, firsts) + LEXICAL * bm25(words, stems(pairs.passages))
        )
        of_pieces = np.split(DENSE * cosines + MAXSIM * late, firsts[1:])
        best = [passage[int(np.argmax(sums))] for passage, sums in zip(pieces, of_pieces, strict=True)]
        return np.asarray(mixed, np.float64), best


def _pieces(passage: str) -> list[str]:
    size = window_chars(passage, PIECE_CHARS)
    return [passage[start : start + size] for start in range(0, max(1, len(passage)), size)]


def _filled(count: int, places: Sequence[int] | NDArray[np.intp], values: Sequence[float]) -> Values:
    """The values of some of `count` passages, and the least of them for the others."""
    every = np.full(count, min(values), np.float64)
    every[places] = values
    return every


def _logistic(values: Values, middle: float, steepness: float) -> list[float]:
    return [1 / (1 + math.exp(-steepness * (float(value) - middle))) for value in values]


class QueryLikelihood(Scorer):
    """Late interaction, and the likelihood of the query after the passage by a language model (Sachan et al., 2022).

    The mean gain in log-likelihood of the query's tokens over an empty passage, by a causal language model. A passage
    that it does not reach in time, or that is not among the best by late interaction, gets the least gain of the
    others.
    """

    name = "query-likelihood"
    allow_s = LIKELY_S

    def load(self) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        # The bundled encoder, whatever the mesh's own is: the weights were fitted with its cosines.
        self._late = LateInteraction("", self.precision, self.batch_tokens)
        self._late.load()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.model)
        model: Any = AutoModelForCausalLM.from_pretrained(self.model, dtype=self.precision.torch_dtype)
        self.language_model = model.to(self.precision.device).eval()

    def score(self, pairs: Pairs) -> list[float]:
        values, pieces = self._late.read(pairs)
        best = np.argsort(-values, kind="stable")[:LIKELY_POOL]
        gains = self.gains(pairs.query, [pieces[index] for index in best], pairs.until)
        self.unread = len(best) - len(gains)
        if not gains:
            return _logistic(values, MIDDLE, STEEPNESS)
        every = _filled(len(values), best[: len(gains)], gains)
        return _logistic(values + LIKELIHOOD * every, LIKELY_MIDDLE, LIKELY_STEEPNESS)

    def gains(self, query: str, passages: Sequence[str], until: float = math.inf) -> list[float]:
        """The gain after each passage, of as many as there is time for.

        No batch begins after `allow_s`, shortly before `until`, or when other requests wait. The result is empty where
        the query has no tokens, or the model's numbers overflow on it.
        """
        question = self._tokens(f" {query}")[:QUERY_TOKENS]
        last = min(time.monotonic() + self.allow_s, until - LIKELY_RESERVE_S)
        if not question or self.others_wait() or time.monotonic() > until - LIKELY_RESERVE_S:
            return []
        (without,) = self._likelihoods([self.prompt("")], question)
        if without is None:
            return []
        prompts = [self.prompt(passage) for passage in passages]
        longest = max(map(len, prompts), default=0) + len(question)
        size = max(1, min(PROMPTS_AT_A_TIME, self.batch_tokens // longest))
        gains: list[float] = []
        for first in range(0, len(prompts), size):
            if gains and (self.others_wait() or time.monotonic() > last):
                break
            likelihoods = self._likelihoods(prompts[first : first + size], question)
            gains += [LEAST if value is None else value - without for value in likelihoods]
        return gains

    def _likelihoods(self, prompts: Sequence[Sequence[int]], question: Sequence[int]) -> list[float | None]:
        """Mean log-likelihood of a question's tokens after each prompt; None where half precision has overflowed."""
        import torch

        longest = max(map(len, prompts))
        # Padded on the left, so that the question's tokens are the last of every row.
        rows = [[0] * (longest - len(prompt)) + [*prompt, *question] for prompt in prompts]
        mask = [[0] * (longest - len(prompt)) + [1] * (len(prompt) + len(question)) for prompt in prompts]
        device = self.language_model.device
        ids, attention = torch.tensor(rows, device=device), torch.tensor(mask, device=device)
        with torch.inference_mode():
            logits = self.language_model(
                input_ids=ids,
                attention_mask=attention,
                position_ids=(attention.cumsum(1) - 1).clamp(min=0),
                logits_to_keep=len(question) + 1,
            ).logits[:, :-1]
            targets = torch.tensor(list(question), device=device).expand(len(rows), -1)
            likelihoods = -torch.nn.functional.cross_entropy(
                logits.float().transpose(1, 2), targets, reduction="none"
            ).mean(1)
        return [value if math.isfinite(value) else None for value in likelihoods.cpu().tolist()]

    def prompt(self, passage: str) -> list[int]:
        """The tokens before the question."""
        text = self._tokens(f" {passage}")[:PASSAGE_TOKENS]
        return [*self._tokens("Passage:"), *text, *self._tokens("\n\nA question that this passage answers:")]

    def _tokens(self, text: str) -> list[int]:
        # A page that writes a control token means its letters.
        return list(self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])


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
        # `predict` sorts by length; the longest pair bounds a batch.
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
    """Scores within 0..1; NaN and infinity, from overflows of half precision, become 0."""
    return [min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0 for value in values]


SCORERS: dict[str, type[Scorer]] = {
    scorer.name: scorer for scorer in (LateInteraction, QueryLikelihood, CrossEncoderScorer, FlagEmbeddingScorer)
}


def build_scorer(name: str, *, model: str, precision: Precision, batch_tokens: int) -> Scorer:
    """The scorer of that name, not loaded.

    Raises:
        ValueError: it needs a model and got none.
    """
    if not model and name != LateInteraction.name:
        raise ValueError(f"the scorer {name!r} needs CRAGMESH_RERANKER_MODEL")
    return SCORERS[name](model, precision, batch_tokens)
