"""LoRA on a CPU: two matrix products for each run of tokens of one adapter.

vLLM's own wrapper gathers both weight matrices once for every token of a batch and multiplies token by token: an
adapter of rank 8 then triples the time that the embedded model takes to read a prompt. It also gives the last slot's
adapter to rows of the base model that share a batch with an adapter. Tokens of a request stand side by side, so a batch
is a few runs, most often one. The slices of a fused layer (q, k and v; gate and up) are one product each way: their A
stand below each other, their B are the blocks of a block-diagonal matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from vllm import _custom_ops as ops
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

Stack = tuple[torch.Tensor, ...]
Product = Callable[[torch.Tensor], torch.Tensor]
# Row counts that oneDNN keeps compiled, as vLLM does for its own layers.
SHAPES = 32


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring rows of a batch that belong to one adapter: rows `start:end`, adapter in slot `slot`."""

    slot: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fused:
    """The adapter of one slot in one layer.

    Attributes:
        versions: of the tensors that it was made of; others mean that the slot was given to another adapter.
        add: x, shape (tokens, inputs), to what is added to y, shape (tokens, outputs); None where that is nothing.
    """

    versions: tuple[int, ...]
    add: Product | None


class PunicaWrapperRuns(PunicaWrapperCPU):  # type: ignore[misc]
    """vLLM's CPU wrapper with the linear layers' and the vocabulary's products done by runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._runs: tuple[Run, ...] = ()
        self._sampler_runs: tuple[Run, ...] = ()
        # By the address of a layer's first A, which lives as long as the layer.
        self._fused: dict[tuple[int, int], Fused] = {}

    def update_metadata(self, *args: Any, **kwargs: Any) -> None:
        super().update_metadata(*args, **kwargs)
        self._runs = _runs(self.token_lora_indices)
        self._sampler_runs = _runs(self.sampler_indices)

    def add_lora_linear(
        self,
        y: torch.Tensor,
        x: torch.Tensor,
        lora_a_stacked: Stack,
        lora_b_stacked: Stack,
        scale: float,
        output_slices: tuple[int, ...],
        *,
        buffer: Stack | None = None,
        **kwargs: Any,
    ) -> None:
        """Add to y, shape (tokens, outputs), what the adapters make of x, shape (tokens, inputs)."""
        self._add(self._runs, y, x, lora_a_stacked, lora_b_stacked, scale, output_slices)

    def add_lora_logits(
        self,
        y: torch.Tensor,
        x: torch.Tensor,
        lora_a_stacked: torch.Tensor,
        lora_b_stacked: torch.Tensor,
        scale: float,
        *,
        buffer: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> None:
        """Add to the logits y, shape (samples, vocabulary), what the adapters make of x, shape (samples, inputs)."""
        stacks = (lora_a_stacked,), (lora_b_stacked,)
        self._add(self._sampler_runs, y, x, *stacks, scale, (lora_b_stacked.shape[-2],))

    def _add(
        self,
        runs: tuple[Run, ...],
        y: torch.Tensor,
        x: torch.Tensor,
        a: Stack,
        b: Stack,
        scale: float,
        output_slices: tuple[int, ...],
    ) -> None:
        if not runs:
            return
        y, x = y.view(-1, y.shape[-1]), x.view(-1, x.shape[-1])
        for run in runs:
            fused = self._fuse(run.slot, a, b, output_slices)
            if fused.add is None:
                continue
            rows = slice(run.start, run.end)
            added = fused.add(x[rows])
            # The vocabulary can be padded to different lengths here and there.
            width = min(y.shape[1], added.shape[1])
            y[rows, :width].add_(added[:, :width], alpha=scale)

    def _fuse(self, slot: int, a: Stack, b: Stack, output_slices: tuple[int, ...]) -> Fused:
        key = (a[0].data_ptr(), slot)
        versions = tuple(tensor._version for tensor in (*a, *b))
        fused = self._fused.get(key)
        if fused is None or fused.versions != versions:
            fused = self._fused[key] = _fuse(slot, a, b, output_slices, versions)
        return fused


def _runs(slots: torch.Tensor) -> tuple[Run, ...]:
    """The runs of a batch, from the slot of each row; -1 is the base model, which needs none."""
    runs: list[Run] = []
    start = 0
    values, counts = torch.unique_consecutive(slots, return_counts=True)
    for slot, count in zip(values.tolist(), counts.tolist(), strict=True):
        if slot >= 0:
            runs.append(Run(slot, start, start + count))
        start += count
    return tuple(runs)


def _fuse(slot: int, a: Stack, b: Stack, output_slices: tuple[int, ...], versions: tuple[int, ...]) -> Fused:
    lefts, rights = [t[slot].reshape(t.shape[-2:]) for t in a], [t[slot].reshape(t.shape[-2:]) for t in b]
    if not any(right.any() for right in rights):
        return Fused(versions, None)
    blocks = [right[:width].T for right, width in zip(rights, output_slices, strict=True)]
    shrink, expand = _product(torch.cat(lefts).T), _product(torch.block_diag(*blocks))  # type: ignore[no-untyped-call]
    return Fused(versions, lambda x: expand(shrink(x)))


def _product(weight: torch.Tensor) -> Product:
    """x to x @ weight, with the weight packed beforehand where oneDNN can: not each type on each CPU."""
    try:
        handler = ops.create_onednn_mm(weight, SHAPES)
    except (RuntimeError, AttributeError):
        return lambda x: x @ weight
    return lambda x: ops.onednn_mm(handler, x, None)
