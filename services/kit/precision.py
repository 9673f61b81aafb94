"""Which device and number format a model runs in, decided once at start by a short measurement.

Measured on 300 passages of 200 characters with MiniLM, two cores with avx512_bf16: fp32 185 passages a second, bf16
580, its vectors at a cosine of 0.9999 to fp32. Dynamic int8 quantisation is no choice here: its vectors fall to 0.986,
and PyTorch has deprecated it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import torch

Dtype = Literal["fp32", "fp16", "bf16"]
Wanted = Literal["auto", "fp32", "fp16", "bf16"]

TORCH_DTYPES: Mapping[str, torch.dtype] = MappingProxyType(
    {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
)
# Without one of them bfloat16 is emulated, many times slower than fp32: not worth the measurement.
BF16_CPU_FLAGS = ("amx_bf16", "amx_tile", "avx512_bf16", "bf16", "sve_bf16")
# A smaller gain is noise on a shared machine, and fp32 is the exact one.
MIN_GAIN = 1.1


@dataclass(frozen=True, slots=True)
class Precision:
    """What was chosen, and why; `/readyz` reports it.

    Attributes:
        device: `cpu`, `cuda:0` ...
        dtype: number format of weights and activations.
        reason: one line for people.
        measured: milliseconds of the probe by number format; empty when nothing had to be measured.
    """

    device: str
    dtype: Dtype
    reason: str
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def torch_dtype(self) -> torch.dtype:
        return TORCH_DTYPES[self.dtype]


def choose_precision(
    wanted: Wanted = "auto", *, device: str = "", threads: int = 0, calibration_s: float = 0.3
) -> Precision:
    """Choose for this process.

    Args:
        wanted: a number format, or `auto` for the fastest that is exact enough.
        device: a torch device; empty takes the first GPU, else the CPU.
        threads: threads within one operation, set for the whole process before measuring; 0 leaves torch's own. Two
            processes that together have more threads than cores run many times slower.
        calibration_s: the longest that measuring may take, in seconds.

    Raises:
        ValueError: fp16 was asked for on a CPU, which would compute it in software.
    """
    if threads:
        torch.set_num_threads(threads)
    device = device or ("cuda:0" if torch.cuda.is_available() else "cpu")
    on_cpu = torch.device(device).type == "cpu"
    if wanted == "fp16" and on_cpu:
        raise ValueError("fp16 is for GPUs; choose bf16, fp32 or auto on a CPU")
    if wanted != "auto":
        return Precision(device, wanted, "as configured")
    if not on_cpu:
        # The T4 has no bfloat16 units, and every later GPU is as fast in fp16.
        return Precision(device, "fp16", "a GPU")
    flags = [flag for flag in BF16_CPU_FLAGS if torch.cpu.get_capabilities().get(flag)]
    if not flags:
        return Precision(device, "fp32", "the CPU has no bfloat16 instructions")
    measured = calibrate(calibration_s)
    gain = measured["fp32"] / measured["bf16"]
    return Precision(
        device,
        "bf16" if gain >= MIN_GAIN else "fp32",
        f"bf16 is {gain:.1f} times as fast as fp32 on this CPU ({flags[0]})",
        measured,
    )


def calibrate(seconds: float) -> dict[str, float]:
    """Milliseconds of one feed-forward block of MiniLM's size over 1,024 tokens, by number format: the best of many.

    The formats take turns, so that a busy moment of a shared machine does not decide.
    """
    best = {"fp32": float("inf"), "bf16": float("inf")}
    with torch.inference_mode():
        blocks = {name: _feed_forward(TORCH_DTYPES[name]) for name in best}
        tokens = {name: torch.ones(1_024, 384, dtype=TORCH_DTYPES[name]) for name in best}
        for name, block in blocks.items():
            block(tokens[name])
        end = time.perf_counter() + seconds
        while True:
            for name, block in blocks.items():
                start = time.perf_counter()
                block(tokens[name])
                best[name] = min(best[name], (time.perf_counter() - start) * 1000)
            if time.perf_counter() >= end:
                return best


def _feed_forward(dtype: torch.dtype) -> torch.nn.Module:
    block = torch.nn.Sequential(torch.nn.Linear(384, 1_536), torch.nn.GELU(), torch.nn.Linear(1_536, 384))
    return block.to(dtype).eval()
