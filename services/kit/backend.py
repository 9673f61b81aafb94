"""The interface of the runtimes of a sentence encoder: ONNX Runtime and torch."""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from tokenizers import Tokenizer

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Pooling = Literal["mean", "cls", "lasttoken"]
T = TypeVar("T")
R = TypeVar("R")


class EncoderUsage(BaseModel):
    """How to use a model, where its files do not say or say otherwise; `encoders.yaml` explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    pooling: Pooling | None = None
    query_instruction: str | None = None
    passage_instruction: str | None = None
    normalise: bool = True
    max_length: int = Field(0, ge=0, le=131_072)
    static_passages: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass over a batch: vectors of the shape (texts, d), and the last hidden states, if they are kept.

    Those are of the shape (texts, tokens, d), with undefined rows of padding.
    """

    vectors: Floats
    states: Floats | None = field(repr=False)


class Backend(Protocol):
    """A loaded model with its tokenizer, which truncates and does not pad."""

    # Batches that run at once.
    streams: int
    tokenizer: Tokenizer
    dimension: int
    nbytes: int
    padding_id: int
    # The files' prefixes of a text, by `query` and `passage`.
    prompts: MutableMapping[str, str]

    def run(self, ids: Ints, mask: Ints, *, keep_states: bool) -> Pass:
        """Encode a padded batch; `ids` and `mask` have the shape (texts, tokens)."""
        ...

    def map(self, work: Callable[[T], R], batches: Sequence[T]) -> Iterable[R]:
        """The result of `work` for each batch, in order; several batches may run at once."""
        ...
