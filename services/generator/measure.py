"""How fast this machine reads a prompt, run by vLLM's interpreter: `python -m services.generator.measure FORMAT`.

Multiplies a step's rows by one layer of the large model, in a number format and by the kernels that would serve it, and
prints the seconds that a token takes for each weight, in JSON. No model is needed.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

# (inputs, outputs) of the products of one layer of Qwen2.5-Coder-1.5B: q, k and v; output; gate and up; down.
SHAPES = ((1536, 2048), (1536, 1536), (1536, 17_920), (8960, 1536))
# Rows of a step: `max-num-batched-tokens` of the profile.
ROWS = 256
# The best of each product counts: a busy neighbour makes others look slow.
SECONDS, LEAST_REPEATS = 4.0, 5
# One that is busy all the while slows the best as well, and takes nothing from the time that our threads compute; by so
# much more than that a product takes whose threads have to wait for each other.
WAITING = 1.1
# Attention, norms, quantisation of activations and the scheduler, over the products: measured, with the real engine.
# The faster the products the more the rest is: by VNNI, by FBGEMM, and in float32.
OVERHEAD, OVERHEAD_FBGEMM, OVERHEAD_FP32 = 1.65, 1.45, 1.3


def measure(number_format: str) -> float:
    """Seconds for each token and weight."""
    torch: Any = import_module("torch")
    layers = [_layer(torch, number_format, inputs, outputs) for inputs, outputs in SHAPES]
    best, threads = [float("inf")] * len(layers), torch.get_num_threads()
    began, repeats = time.monotonic(), 0
    while repeats < LEAST_REPEATS or time.monotonic() - began < SECONDS:
        for number, layer in enumerate(layers):
            started, computed = time.perf_counter(), time.process_time()
            layer()
            alone = WAITING * (time.process_time() - computed) / threads
            best[number] = min(best[number], time.perf_counter() - started, alone)
        repeats += 1
    weights = sum(inputs * outputs for inputs, outputs in SHAPES)
    return _overhead(number_format) * sum(best) / ROWS / weights


def _overhead(number_format: str) -> float:
    if number_format == "int8":
        return OVERHEAD_FBGEMM if _int8().by_fbgemm() else OVERHEAD
    return OVERHEAD_FP32 if number_format == "fp32" else OVERHEAD


def _layer(torch: Any, number_format: str, inputs: int, outputs: int) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(inputs + outputs)
    x = torch.randn(ROWS, inputs, generator=generator)
    weight = torch.randn(outputs, inputs, generator=generator)
    if number_format != "int8":
        ops: Any = import_module("vllm._custom_ops")
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[number_format]
        dense, rows_in = ops.create_onednn_mm(weight.to(dtype).t(), 32), x.to(dtype)
        return lambda: ops.onednn_mm(dense, rows_in, None)
    weights = _int8().pack((weight * 32).clamp(-127, 127).to(torch.int8), torch.ones(outputs, 1))
    return lambda: weights.multiply(x)


def _int8() -> Any:
    """The plugin's products, on the path by `PYTHONPATH`."""
    return import_module("cragmesh_vllm.int8")


if __name__ == "__main__":
    print(json.dumps({"seconds": measure(sys.argv[1])}), flush=True)
