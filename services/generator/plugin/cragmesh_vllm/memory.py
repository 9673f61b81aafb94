"""Memory of a model on a CPU: what vLLM would hold twice, and what malloc would keep.

vLLM packs the table of embeddings as if something were multiplied by it, packs it again for the vocabulary's layer, and
keeps it unpacked for both: three times 0.9 GB in float32 for 150,000 tokens of 1,536 numbers. And the weights that int8
layers were packed from are freed into a heap that does not shrink.
"""

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

import torch

from cragmesh_vllm.int8 import LEVELS, SMALLEST, pack

# Set by the launcher beside a model in int8: its vocabulary's layer is one too, from this many weights on. Below it
# float32 costs little, and the embedded model's confidence was fitted with it.
INT8_VOCABULARY = "CRAGMESH_INT8_VOCABULARY"
LARGE = 100_000_000
# Rows that are worked on at a time, so that no copy of a whole table, or of all logits, is made on the way.
TABLE_ROWS, LOGIT_ROWS = 4_096, 64
# Between two requests' activations lie small objects that stay, and the heap keeps the holes around them: a third more
# memory within hours. Fetching the pages of a minute anew takes a thousandth of it.
TRIM_S = 60.0

Product = Callable[[torch.Tensor], torch.Tensor]


def economise() -> None:
    """Keep the table of embeddings once, in bfloat16 where that loses nothing, and the vocabulary's layer packed only.

    What is freed while a model is loaded goes back to the kernel before the engine starts.
    """
    from vllm.model_executor.layers import utils
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, UnquantizedEmbeddingMethod
    from vllm.v1.worker.cpu_worker import CPUWorker

    if getattr(UnquantizedEmbeddingMethod, "economical", False):
        return
    warm_up = CPUWorker.compile_or_warm_up_model

    def process(_self: Any, layer: Any) -> None:
        if not isinstance(layer, ParallelLMHead):
            # Models whose table is their vocabulary's layer too multiply by it as it is.
            layer.cpu_linear = lambda x, weight, bias: torch.nn.functional.linear(x, weight.to(x.dtype), bias)
            layer.row_dtype = layer.weight.dtype
            # A new parameter: the vocabulary's layer may still hold the one of before.
            layer.weight = torch.nn.Parameter(halved(layer.weight.data), requires_grad=False)
        elif os.environ.get(INT8_VOCABULARY) == "1" and layer.weight.numel() >= LARGE:
            product = int8_product(layer.weight.data)
            layer.cpu_linear = lambda x, _, bias: product(x) if bias is None else product(x) + bias
            layer.weight = torch.nn.Parameter(layer.weight.new_empty(0), requires_grad=False)
        else:
            utils.dispatch_cpu_unquantized_gemm(layer, remove_weight=True)

    def embedding(_self: Any, layer: Any, tokens: torch.Tensor) -> torch.Tensor:
        rows = torch.nn.functional.embedding(tokens, layer.weight)
        return rows.to(getattr(layer, "row_dtype", rows.dtype))

    def compile_or_warm_up_model(self: Any) -> Any:
        times = warm_up(self)
        trim()
        threading.Thread(target=trim_often, name="trim", daemon=True).start()
        return times

    UnquantizedEmbeddingMethod.process_weights_after_loading = process
    UnquantizedEmbeddingMethod.embedding = embedding
    UnquantizedEmbeddingMethod.economical = True
    CPUWorker.compile_or_warm_up_model = compile_or_warm_up_model


def halved(table: torch.Tensor) -> torch.Tensor:
    """The table in bfloat16 where each number is one of bfloat16's, as in most models; else as it is."""
    if table.dtype != torch.float32:
        return table
    half = table.to(torch.bfloat16)
    blocks = zip(torch.split(half, TABLE_ROWS), torch.split(table, TABLE_ROWS), strict=True)
    return half if all(torch.equal(ours.float(), theirs) for ours, theirs in blocks) else table


def int8_product(weight: torch.Tensor) -> Product:
    """x, shape (..., inputs), to x @ weight.T by int8 weights, with a scale for each output.

    x itself becomes the sum of two rows of int8, the second of what the first leaves: eight bits alone would change the
    likeliest token four times in a hundred, these once. Reading the weights takes the time, and both rows share it.

    Args:
        weight: shape (outputs, inputs), any floating type.
    """
    rounded = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(len(weight), 1)
    for ours, scale, block in zip(*(torch.split(t, TABLE_ROWS) for t in (rounded, scales, weight)), strict=True):
        scale.copy_(block.float().abs().amax(1, keepdim=True).clamp(min=SMALLEST) / LEVELS)
        ours.copy_((block.float() / scale).round().clamp(-LEVELS, LEVELS))
    weights = pack(rounded, scales)

    def multiply(rows: torch.Tensor) -> torch.Tensor:
        first = weights.held(rows)
        products, products_of_rest = torch.chunk(weights.multiply(torch.cat((first, rows - first))), 2)
        return products + products_of_rest

    def product(x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1]).float()
        logits: torch.Tensor = torch.cat([multiply(block) for block in torch.split(rows, LOGIT_ROWS)])
        return logits.to(x.dtype).view(*x.shape[:-1], -1)

    return product


def trim() -> None:
    """Give freed memory back to the kernel, where the C library can."""
    release = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if release is not None:
        release(0)


def trim_often() -> None:
    """Trim every minute, without end."""
    never = threading.Event()
    while not never.wait(TRIM_S):
        trim()
