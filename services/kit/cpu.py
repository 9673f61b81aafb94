"""The CPU's instruction set, by which the encoder and the generator choose their number formats.

Standard library only: the generator's launcher has no torch.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Literal

CPUINFO = Path("/proc/cpuinfo")


class Isa(StrEnum):
    """Instruction sets of x86-64 by what they add to a matrix product, each with all before it."""

    BASE = "base"
    AVX2 = "avx2"
    AVX512 = "avx512"
    AVX512_VNNI = "avx512_vnni"
    AVX512_BF16 = "avx512_bf16"
    AMX = "amx"


Int8Kernel = Literal["", "fbgemm", "onednn"]
# A setting that pretends an older CPU, to see here how the services run there.
IsaLimit = Literal["", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"]

_NEEDS: Mapping[Isa, frozenset[str]] = {
    Isa.BASE: frozenset(),
    Isa.AVX2: frozenset({"avx2", "fma"}),
    Isa.AVX512: frozenset({"avx512f", "avx512bw", "avx512vl", "avx512dq"}),
    Isa.AVX512_VNNI: frozenset({"avx512_vnni"}),
    Isa.AVX512_BF16: frozenset({"avx512_bf16"}),
    Isa.AMX: frozenset({"amx_tile", "amx_bf16", "amx_int8"}),
}
_ONEDNN: Mapping[Isa, str] = {
    Isa.BASE: "SSE41",
    Isa.AVX2: "AVX2",
    Isa.AVX512: "AVX512_CORE",
    Isa.AVX512_VNNI: "AVX512_CORE_VNNI",
    Isa.AVX512_BF16: "AVX512_CORE_BF16",
}
# PyTorch's own kernels know these three.
_ATEN: Mapping[Isa, str] = {Isa.BASE: "default", Isa.AVX2: "avx2"}
# FBGEMM, within PyTorch, computes nothing below AVX2.
_FBGEMM: Mapping[Isa, str] = {Isa.BASE: "AVX2", Isa.AVX2: "AVX2", Isa.AVX512: "AVX512"}


def instruction_set(limit: IsaLimit = "", cpuinfo: Path = CPUINFO) -> Isa:
    """The newest instruction set that the CPU has whole, up to `limit`."""
    flags = _flags(cpuinfo)
    newest = Isa.BASE
    for isa, needs in _NEEDS.items():
        if not needs <= flags:
            break
        newest = isa
        if isa == limit:
            break
    return newest


def computes_bf16(isa: Isa) -> bool:
    """Whether the CPU computes bfloat16 products; emulated, they are several times slower than float32."""
    return isa in (Isa.AVX512_BF16, Isa.AMX)


def computes_int8(isa: Isa) -> bool:
    """Whether int8 products are faster than float32 ones; exact, without VNNI, where pairs of weights fit 16 bits."""
    return isa is not Isa.BASE


def int8_kernel(isa: Isa) -> Int8Kernel:
    """The generator's library for products of int8.

    With VNNI they are summed in 32 bits. Without it pairs are summed in 16 bits first, which overflow with oneDNN; for
    FBGEMM the plugin scales the weights so that they do not.
    """
    if isa in (Isa.AVX512_VNNI, Isa.AVX512_BF16, Isa.AMX):
        return "onednn"
    return "fbgemm" if computes_int8(isa) else ""


def library_limits(limit: IsaLimit) -> dict[str, str]:
    """The environment in which oneDNN, PyTorch and FBGEMM use nothing newer than `limit`.

    ONNX Runtime asks the CPU itself and takes no such hint.
    """
    if not limit or limit not in _ONEDNN:
        return {}
    isa = Isa(limit)
    return {
        "ONEDNN_MAX_CPU_ISA": _ONEDNN[isa],
        "ATEN_CPU_CAPABILITY": _ATEN.get(isa, "avx512"),
        "FBGEMM_ENABLE_INSTRUCTIONS": _FBGEMM.get(isa, "AVX512_E1"),
    }


@lru_cache(maxsize=8)
def _flags(cpuinfo: Path) -> frozenset[str]:
    try:
        text = cpuinfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    first = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return frozenset(first.partition(":")[2].split())
