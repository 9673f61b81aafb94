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
# Of two to so many rows torch's product is over before oneDNN's has begun; of one row it wakes a second thread.
FEW_ROWS = 8


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
        of: the layer's first B. Held, so that no other layer is found at its address.
        version: of that tensor when this was made; another means that a slot was given to another adapter.
        a: A of all slices, shape (inputs, slices * rank).
        b: B of all slices on the diagonal, shape (slices * rank, outputs).
        shrink: x, shape (tokens, inputs), to x @ a by packed weights; None where the adapter leaves the layer alone.
    """

    of: torch.Tensor
    version: int
    a: torch.Tensor
    b: torch.Tensor
    shrink: Product | None


class PunicaWrapperRuns(PunicaWrapperCPU):  # type: ignore[misc]
    """vLLM's CPU wrapper with the linear layers' and the vocabulary's products done by runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._runs: tuple[Run, ...] = ()
        self._sampler_runs: tuple[Run, ...] = ()
        # By the address of a layer's first B, and slot.
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
        lefts: Stack,
        rights: Stack,
        scale: float,
        output_slices: tuple[int, ...],
    ) -> None:
        if not runs:
            return
        y, x = y.view(-1, y.shape[-1]), x.view(-1, x.shape[-1])
        for run in runs:
            fused = self._fuse(run.slot, lefts, rights, output_slices)
            if fused.shrink is None:
                continue
            rows = slice(run.start, run.end)
            # The vocabulary can be padded to different lengths here and there.
            width = min(y.shape[1], fused.b.shape[1])
            few = 1 < run.end - run.start <= FEW_ROWS
            inner = x[rows] @ fused.a if few else fused.shrink(x[rows])
            # In place, since y goes through memory once then: that is most of what the second product costs.
            y[rows, :width].addmm_(inner, fused.b[:, :width], alpha=scale)

    def _fuse(self, slot: int, a: Stack, b: Stack, output_slices: tuple[int, ...]) -> Fused:
        key = (b[0].data_ptr(), slot)
        fused = self._fused.get(key)
        # An adapter that takes a slot writes to every tensor of a layer, one that leaves it too.
        if fused is None or fused.version != b[0]._version:
            fused = self._fused[key] = _fuse(slot, a, b, output_slices)
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


def _fuse(slot: int, a: Stack, b: Stack, output_slices: tuple[int, ...]) -> Fused:
    lefts, rights = [t[slot].reshape(t.shape[-2:]) for t in a], [t[slot].reshape(t.shape[-2:]) for t in b]
    left = torch.cat(lefts).T.contiguous()
    blocks = [right[:width].T for right, width in zip(rights, output_slices, strict=True)]
    right = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    if not right.any():
        return Fused(b[0], b[0]._version, left, right, None)
    return Fused(b[0], b[0]._version, left, right, _product(left))


def _product(weight: torch.Tensor) -> Product:
    """x to x @ weight, with the weight packed beforehand where oneDNN can: not each type on each CPU."""
    try:
        handler = ops.create_onednn_mm(weight, SHAPES)
    except (RuntimeError, AttributeError):
        return lambda x: x @ weight
    return lambda x: ops.onednn_mm(handler, x, None)
