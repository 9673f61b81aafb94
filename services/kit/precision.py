"""Which device and number format a model runs in, decided once at start.

The bundled MiniLM runs on ONNX Runtime, in int8 where the CPU has AVX2 and in fp32 elsewhere. Measured in one run on
300 passages of 200 characters, a CPU with avx512_bf16 and VNNI: passages a second of a core, milliseconds of one query,
and the lowest cosine to sentence-transformers' fp32.

    torch           fp32   74   14.3 ms   1
                    bf16  208    9.9 ms   0.99987
    ONNX Runtime    fp32  114    3.4 ms   1.00000
                    int8  235    2.2 ms   0.9993

With AVX2 alone int8 takes two thirds of fp32's time (223 to 338 us a token, AMD Zen 3), at the same cosine: its weights
are scaled so that sums of 16 bits do not overflow.

So torch in bf16 earns neither its seconds of import nor its 400 MB, and runs the bundled model only on a GPU or where
`bf16` is configured. Dynamic quantisation by ONNX Runtime or PyTorch, with one scale for all activations, is no choice:
its vectors fall to 0.974. `services/kit/bert.py` explains ours.

Other models run on torch, in bf16 where the CPU has its instructions and in fp32 elsewhere.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from services.kit import extras
from services.kit.cpu import IsaLimit, computes_bf16, computes_int8, instruction_set

if TYPE_CHECKING:
    import torch

Dtype = Literal["fp32", "fp16", "bf16", "int8"]
DtypeSetting = Literal["auto", "fp32", "fp16", "bf16", "int8"]

# Of a weight.
BYTES: Mapping[Dtype, int] = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}
TORCH_EXTRA = extras.command("torch")
# Their drivers' devices show a GPU without the seconds that importing torch takes.
GPU_DRIVERS = (Path("/dev/nvidia0"), Path("/dev/kfd"))


@dataclass(frozen=True, slots=True)
class Precision:
    """A choice of device and number format; `/readyz` reports it.

    Attributes:
        device: `cpu`, `cuda:0` ...
        dtype: number format of weights and activations.
        reason: one line for people.
        threads: on ONNX Runtime batches at once, 0 of all cores; on torch threads within one operation, 0 its own.
    """

    device: str
    dtype: Dtype
    reason: str
    threads: int = 0

    @property
    def torch_dtype(self) -> "torch.dtype":
        """The format's torch type; a ValueError where it is int8, which torch does not run here."""
        import torch

        dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        if self.dtype not in dtypes:
            raise ValueError(f"{self.dtype} is for BERT encoders on ONNX Runtime; choose bf16, fp32 or auto")
        return dtypes[self.dtype]


def has_torch() -> bool:
    """Whether torch and sentence-transformers are installed; neither is imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "sentence_transformers"))


def choose_precision(
    dtype: DtypeSetting = "auto",
    *,
    model: str = "",
    device: str = "",
    threads: int = 0,
    limit: IsaLimit = "",
) -> Precision:
    """The device and the number format for this process.

    Args:
        dtype: a number format, or `auto` for the fastest that is exact enough.
        model: a folder or hub name; empty is the bundled MiniLM.
        device: a torch device; empty takes the first GPU, else the CPU.
        threads: as `Precision` has them. torch's are set for the whole process. Two processes that together have more
            threads than cores run many times slower.
        limit: the newest instruction set that counts.

    Raises:
        ValueError: fp16 on a CPU, which would compute it in software, int8 without AVX2, or bf16 or fp16 without torch.
    """
    device = device or ("" if dtype == "int8" else _first_gpu()) or "cpu"
    on_cpu = device.partition(":")[0] == "cpu"
    isa = instruction_set(limit)
    if dtype == "fp16" and on_cpu:
        raise ValueError("fp16 is for GPUs; choose bf16, fp32 or auto on a CPU")
    if dtype == "int8" and not (on_cpu and computes_int8(isa)):
        raise ValueError("int8 is for CPUs with AVX2; choose fp32 or auto")
    if on_cpu and not model and dtype == "auto":
        if computes_int8(isa):
            return Precision(device, "int8", f"on ONNX Runtime; the CPU computes int8 ({isa})", threads=threads)
        return Precision(device, "fp32", f"on ONNX Runtime; the CPU computes no int8 ({isa})", threads=threads)
    if dtype == "int8" or (on_cpu and dtype == "fp32" and not model):
        return Precision(device, dtype, "as configured, on ONNX Runtime", threads=threads)
    if not has_torch():
        if dtype not in ("auto", "fp32"):
            raise ValueError(f"{dtype} needs torch: {TORCH_EXTRA}")
        return Precision(device, "fp32", f"torch is not installed ({TORCH_EXTRA})", threads=threads)
    if threads:
        import torch

        torch.set_num_threads(threads)
    if dtype != "auto":
        return Precision(device, dtype, "as configured", threads=threads)
    if not on_cpu:
        # The T4 has no bfloat16 units, and every later GPU is as fast in fp16.
        return Precision(device, "fp16", "a GPU", threads=threads)
    if computes_bf16(isa):
        return Precision(device, "bf16", f"the CPU computes bfloat16 ({isa})", threads=threads)
    return Precision(device, "fp32", f"the CPU has no bfloat16 instructions ({isa})", threads=threads)


def _first_gpu() -> str:
    if not any(driver.exists() for driver in GPU_DRIVERS) or not has_torch():
        return ""
    import torch

    return "cuda:0" if torch.cuda.is_available() else ""
