"""Run by vLLM's interpreter: adapters added to batches by vLLM's own wrapper and by the plugin's.

One line of JSON a case: the largest distance of either to the same sum in float64. vLLM's own gives rows of the base
model the adapter of the last slot in a batch that has another adapter too, so such batches have no say on ours there.
"""

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from cragmesh_vllm.lora import PunicaWrapperRuns
from vllm.lora.layers.utils import LoRAMapping
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

RANK, ADAPTERS = 8, 2
# Outputs of each slice, and inputs: q, k and v; gate and up; down.
LAYERS = (((48, 16, 16), 48), ((96, 96), 48), ((48,), 96))
# The adapter of each row, 0 for the base model, and whether vLLM calls the batch a prefill.
BATCHES = {
    "one adapter": ([1] * 33, True),
    "two adapters": ([1] * 7 + [2] * 20 + [1] * 3, True),
    "base alone": ([0] * 6, True),
    "base and adapters": ([0] * 5 + [1] * 7 + [2] * 20 + [0] * 3, True),
    "decoding": ([2], False),
    "decoding together": ([1, 2, 2, 1], False),
}


def main() -> None:
    torch.manual_seed(7)
    for dtype in (torch.float32, torch.bfloat16):
        wrappers = [kind(64, 8, "cpu") for kind in (PunicaWrapperCPU, PunicaWrapperRuns)]
        for slices, inputs in LAYERS:
            a = tuple((torch.randn(ADAPTERS, 1, RANK, inputs) / inputs**0.5).to(dtype) for _ in slices)
            b = tuple(torch.randn(ADAPTERS, 1, width, RANK).to(dtype) for width in slices)
            for name, (rows, prefill) in BATCHES.items():
                report(name, dtype, wrappers, rows, prefill, a, b, slices)
            # Another adapter takes the first slot.
            for tensor in (*a, *b):
                tensor[0] = torch.randn_like(tensor[0]) / inputs**0.5
            report("another adapter", dtype, wrappers, [1] * 9, True, a, b, slices)


def report(
    name: str,
    dtype: torch.dtype,
    wrappers: Sequence[Any],
    rows: Sequence[int],
    prefill: bool,
    a: Sequence[torch.Tensor],
    b: Sequence[torch.Tensor],
    slices: Sequence[int],
) -> None:
    x, y = torch.randn(len(rows), a[0].shape[-1]).to(dtype), torch.randn(len(rows), sum(slices)).to(dtype)
    exact = y.double()
    starts = [0, *accumulate(slices)]
    for row, adapter in enumerate(rows):
        for left, right, start, width in zip(a, b, starts, slices, strict=False):
            if adapter:
                added = right[adapter - 1, 0].double() @ (left[adapter - 1, 0].double() @ x[row].double())
                exact[row, start : start + width] += added
    found = {}
    for wrapper in wrappers:
        mapping = LoRAMapping(tuple(rows), tuple(rows), is_prefill=prefill)
        wrapper.update_metadata(mapping, list(range(1, ADAPTERS + 1)), ADAPTERS, 100)
        out = y.clone()
        wrapper.add_lora_linear(out, x, a, b, 1.0, slices)
        found[type(wrapper).__name__] = float((out.double() - exact).abs().max())
    print(json.dumps({"batch": name, "dtype": str(dtype).removeprefix("torch."), "slices": len(slices)} | found))
