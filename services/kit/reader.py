"""An extractive reader: the spans of a passage that answer a question, and the probability that none does.

MiniLM, changed by an adapter (LoRA), reads `[CLS] question [SEP] title : passage [SEP]`; a linear head gives each token
a value as a start and one as an end, and the first token a value for "does not say". Spans and "does not say" share one
softmax (Lee et al. 2016, "Learning Recurrent Span Representations"), so a span's odds against "does not say" compare
between the windows of a long passage, and between passages, once those are normalised together (Clark & Gardner 2018,
"Simple and Effective Multi-Paragraph Reading Comprehension").

The weights are a folder of two files, written by `cragmesh train reader`: `reader.safetensors` with the adapter's
products and the head, a few MB, and `reader.json` with the values fitted on held-out passages.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tokenizers import Encoding, Tokenizer

from services.kit import bert, encoder
from services.kit.backend import Floats, Ints
from services.kit.precision import Precision

Flags = NDArray[np.bool_]

WEIGHTS, CARD = "reader.safetensors", "reader.json"
MAX_TOKENS, OVERLAP = 384, 128
# Longer questions and titles are cut, to leave room for the passage.
MAX_QUERY_TOKENS, MAX_TITLE_TOKENS = 64, 24
MAX_SPAN_TOKENS = 30
# A word of thousands of letters is one token.
MAX_SPAN_CHARS = 500
# Some 6,000 tokens; 20,000 characters of English are 18 windows, of scripts with a token a letter more.
MAX_WINDOWS = 24
# Rows of the head: a value of each token as a start, as an end, and of the first token for "does not say".
START, END, NOTHING = range(3)
# In place of minus infinity, of which a softmax alone would be NaN.
IMPOSSIBLE = -1e4
# Log-odds below which a span is no candidate.
LEAST = -100.0


class NoReader(Exception):
    """No reader can be loaded; the message says why."""


class Card(BaseModel):
    """The description of the weights.

    Attributes:
        base: fingerprint of the encoder that they change.
        temperature: divides the values, so that probabilities are calibrated.
        threshold: the least probability of a span that is worth an answer, where a wrong one costs as much as a right
            one earns.
        made_from: sources of the training data and their counts.
        held_out: measures on held-out passages.
    """

    model_config = ConfigDict(extra="forbid")

    base: str
    temperature: float = Field(1.0, gt=0)
    threshold: float = Field(0.5, ge=0, le=1)
    made_from: dict[str, int] = Field(default_factory=dict)
    held_out: dict[str, float] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text:
    """A passage with its title, which may be empty."""

    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a question and a passage that the model reads at a time.

    Attributes:
        ids: vocabulary ids, shape (tokens,); the passage's last is the last but one.
        second: index of the first token of the second type.
        first: index of the passage's first token, and `at` its number in the passage.
    """

    ids: Ints
    second: int
    first: int
    at: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A passage's tokens, shape (tokens,) each: from character `starts` to before `ends`.

    `opens` says whether a word begins with a token, `closes` whether one ends with it.
    """

    ids: Ints
    starts: Ints
    ends: Ints
    opens: Flags
    closes: Flags

    @classmethod
    def of(cls, encoding: Encoding) -> "Tokens":
        offsets = np.asarray(encoding.offsets, np.int64).reshape(-1, 2)
        words = np.asarray([-1 if word is None else word for word in encoding.word_ids], np.int64)
        changes = words[1:] != words[:-1]
        ends = np.ones(min(1, len(words)), bool)
        return cls(
            np.asarray(encoding.ids, np.int64),
            offsets[:, 0],
            offsets[:, 1],
            np.concatenate([ends, changes]),
            np.concatenate([changes, ends]),
        )

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Span:
    """A candidate: characters of the passage, and the log-odds of all spans there against "does not say"."""

    start: int
    end: int
    odds: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The reader's result for a passage.

    Attributes:
        spans: candidates that do not overlap, best first; a candidate stands for those that overlap it.
        odds: log-odds that the passage answers; minus infinity where it has no words.
        complete: False where time ran out before its end.
    """

    spans: tuple[Span, ...] = ()
    odds: float = -math.inf
    complete: bool = True


class Layout:
    """Cuts texts into windows of at most `max_tokens`, by the tokenizer in the encoder's folder.

    Two windows share `overlap` tokens of the passage.
    """

    def __init__(self, folder: Path, *, max_tokens: int = MAX_TOKENS, overlap: int = OVERLAP) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # A page that writes a control token means its letters.
        self._tokenizer.encode_special_tokens = True
        self._max_tokens, self._overlap = max_tokens, overlap
        self._cls, self._sep = (self._tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
        self._colon = self._tokenizer.token_to_id(":")

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        return [Tokens.of(encoding) for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def windows(self, query: Tokens, title: Tokens, passage: Tokens) -> list[Window]:
        """The windows of a passage, in order; none where it has no tokens."""
        head = [self._cls, *query.ids[:MAX_QUERY_TOKENS], self._sep]
        second = len(head)
        if len(title):
            head += [*title.ids[:MAX_TITLE_TOKENS], self._colon]
        room = self._max_tokens - len(head) - 1
        step = max(1, room - self._overlap)
        count = 1 + max(0, math.ceil((len(passage) - room) / step))
        return [
            Window(np.asarray([*head, *passage.ids[at : at + room], self._sep], np.int64), second, len(head), at)
            for at in range(0, count * step, step)
            if len(passage)
        ]


def padded(windows: Sequence[Window]) -> tuple[Ints, Ints, Ints]:
    """Ids, mask and token types of a batch, each of shape (windows, longest); padding is id 0."""
    ids, mask = encoder.padded([window.ids for window in windows])
    types = mask.copy()
    for row, window in enumerate(windows):
        types[row, : window.second] = 0
    return ids, mask, types


class Reader:
    """The model and its weights, on ONNX Runtime.

    Args:
        weights: the folder that `cragmesh train reader` writes.
        precision: of a CPU, fp32 or int8.
        folder: of the encoder that the weights change; the bundled one when None.

    Raises:
        NoReader: the weights are missing, damaged, or for another encoder.
    """

    def __init__(self, weights: Path, precision: Precision, folder: Path | None = None) -> None:
        # ONNX Runtime takes a while to import, and `Layout` does not need it.
        from services.kit.onnx_backend import Graph

        try:
            folder = folder or encoder.bundled_model()
            self.card = Card.model_validate_json((weights / CARD).read_bytes())
            if self.card.base != encoder.fingerprint(folder):
                raise NoReader(f"the reader's weights in {weights.name} are for another encoder than {folder.name}")
            tensors = {name: np.array(value) for name, value in bert.read_safetensors(weights / WEIGHTS).items()}
            model = bert.read(folder, "int8" if precision.dtype == "int8" else "fp32", changes(tensors))
            self._head = np.asarray(tensors["head.weight"], np.float32).T
            self._bias = np.asarray(tensors["head.bias"], np.float32)
        except (OSError, ValueError, KeyError, ValidationError) as error:
            raise NoReader(f"the reader's weights cannot be read: {' '.join(str(error).split())[:300]}") from error
        self._layout = Layout(folder, max_tokens=min(MAX_TOKENS, len(model.positions)))
        self._graph = Graph(model, precision.threads)
        self.precision = precision

    def read(self, query: str, passages: Sequence[Text], *, spans: int = 5, until: float = math.inf) -> list[Reading]:
        """The reading of each passage, of as many as there is time for, in their order.

        Args:
            spans: candidates of a passage at most.
            until: when the caller stops waiting, on the monotonic clock; no batch begins after it.
        """
        return [
            reading(tokens, values, spans, self.card.temperature, complete=_covered(values) == len(tokens))
            for tokens, values in self.values(query, passages, until=until)
        ]

    def values(
        self, query: str, passages: Sequence[Text], *, until: float = math.inf
    ) -> list[tuple[Tokens, list[tuple[Window, Floats]]]]:
        """Each passage's tokens, and the head's values of the windows read in time."""
        tokens = self._layout.tokens([query, *(text for passage in passages for text in (passage.title, passage.text))])
        question, titles, texts = tokens[0], tokens[1::2], tokens[2::2]
        work = [
            (index, window)
            for index, (title, text) in enumerate(zip(titles, texts, strict=True))
            for window in self._layout.windows(question, title, text)[:MAX_WINDOWS]
        ]
        values: list[list[tuple[Window, Floats]]] = [[] for _ in passages]

        def run(batch: Sequence[int]) -> list[Floats]:
            return [] if time.monotonic() > until else self._run([work[place][1] for place in batch])

        batches = list(_batches([window for _, window in work], self._graph.streams))
        for batch, results in zip(batches, self._graph.map(run, batches), strict=True):
            for place, result in zip(batch, results, strict=False):
                index, window = work[place]
                values[index].append((window, result))
        return list(zip(texts, values, strict=True))

    def warm_up(self) -> None:
        """Read short and long passages, so that the first request does not pay for kernels and memory."""
        sentence = "The first request finds everything in its place. "
        for count in (1, 8, 80):
            self.read("what does the first request find?", [Text(sentence * count, "a title")] * 4)

    def _run(self, windows: Sequence[Window]) -> list[Floats]:
        """The head's values of each window's tokens, shape (tokens, 3)."""
        values = self._graph.run(*padded(windows)) @ self._head + self._bias
        return [values[row, : len(window)] for row, window in enumerate(windows)]


def changes(tensors: dict[str, Floats]) -> dict[str, Floats]:
    """An adapter's addition to each weight: the product of its tensors `NAME.b` (out, rank) and `NAME.a` (rank, in)."""
    names = [name.removesuffix(".a") for name in tensors if name.endswith(".a")]
    return {
        name: np.asarray(tensors[f"{name}.b"], np.float32) @ np.asarray(tensors[f"{name}.a"], np.float32)
        for name in names
    }


def reading(
    passage: Tokens, values: Sequence[tuple[Window, Floats]], spans: int, temperature: float, *, complete: bool = True
) -> Reading:
    """The candidates of a passage, at most `spans`, by the head's values of each window's tokens, shape (tokens, 3)."""
    odds = span_odds(passage, values) / temperature
    total = _log_sum(odds)
    candidates = []
    for _ in range(spans):
        if not odds.size or odds.max() < LEAST:
            break
        first, length = divmod(int(odds.argmax()), MAX_SPAN_TOKENS)
        last = first + length
        rows = slice(max(0, first - MAX_SPAN_TOKENS + 1), last + 1)
        near = odds[rows]
        over = np.arange(rows.start, rows.start + len(near))[:, None] + np.arange(MAX_SPAN_TOKENS) >= first
        start, end = int(passage.starts[first]), int(passage.ends[last])
        if end - start <= MAX_SPAN_CHARS:
            candidates.append(Span(start, end, _log_sum(near[over])))
        near[over] = IMPOSSIBLE
    candidates.sort(key=lambda span: -span.odds)
    return Reading(tuple(candidates), total, complete)


def span_odds(passage: Tokens, values: Sequence[tuple[Window, Floats]]) -> Floats:
    """Log-odds of each span against "does not say", the highest of the windows that hold it.

    Shape (tokens, `MAX_SPAN_TOKENS`), by the first token and the tokens after it; spans that begin or end within a word
    are impossible.
    """
    odds = np.full((len(passage), MAX_SPAN_TOKENS), IMPOSSIBLE, np.float32)
    for window, head in values:
        count = len(window) - window.first - 1
        tokens = slice(window.at, window.at + count)
        inside = head[window.first : window.first + count]
        begin = np.where(passage.opens[tokens], inside[:, START], IMPOSSIBLE)
        end = np.where(passage.closes[tokens], inside[:, END], IMPOSSIBLE)
        end = np.concatenate([end, np.full(MAX_SPAN_TOKENS - 1, IMPOSSIBLE)])
        both = begin[:, None] + sliding_window_view(end, MAX_SPAN_TOKENS) - head[0, NOTHING]
        odds[tokens] = np.maximum(odds[tokens], both)
    return odds


def shares(readings: Sequence[Reading]) -> tuple[list[list[float]], float]:
    """Probability of each reading's spans among those of all readings, and the probability that no passage answers."""
    # "Nothing" has odds of one.
    total = float(np.logaddexp.reduce([0.0, *(one.odds for one in readings)]))
    return [[min(1.0, math.exp(span.odds - total)) for span in one.spans] for one in readings], math.exp(-total)


def _covered(values: Sequence[tuple[Window, Floats]]) -> int:
    """Tokens of a passage, from its first on, that were read."""
    return max((window.at + len(window) - window.first - 1 for window, _ in values), default=0)


def _log_sum(odds: Floats) -> float:
    return float(np.logaddexp.reduce(odds, axis=None, dtype=np.float64)) if odds.size else -math.inf


def _batches(windows: Sequence[Window], streams: int) -> Iterator[list[int]]:
    """Indexes of windows that are read together, in order."""
    most = encoder.batch_share([len(window) for window in windows], encoder.ONNX_BATCH_TOKENS, streams)
    batch: list[int] = []
    longest = 0
    for place, window in enumerate(windows):
        longest = max(longest, len(window))
        if batch and longest * (len(batch) + 1) > most:
            yield batch
            batch, longest = [], len(window)
        batch.append(place)
    if batch:
        yield batch
