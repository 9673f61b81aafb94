"""vLLM's server on a CPU that pretends to be older: `python -m cragmesh_vllm.masked ...` in place of vLLM's own module.

oneDNN and PyTorch are told by their own variables; vLLM asks PyTorch which of its builds to load, and is answered here
from `CRAGMESH_CPU_ISA`. Where the engine's process is spawned, it imports its parent's main module, hence this again.
"""

import os
import runpy

import torch

ORDER = ("avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx")
# The functions of `torch.cpu` that vLLM asks, and the instruction set from which on each says yes.
ANSWERS = {
    "_is_avx512_supported": "avx512",
    "_is_avx512_bf16_supported": "avx512_bf16",
    "_is_amx_tile_supported": "amx",
    "_is_amx_fp16_supported": "amx",
}


def mask(limit: str) -> None:
    """Have PyTorch deny every instruction set above `limit`."""
    for name, needed in ANSWERS.items():
        if ORDER.index(limit) < ORDER.index(needed):
            setattr(torch.cpu, name, lambda: False)


mask(os.environ["CRAGMESH_CPU_ISA"])

if __name__ == "__main__":
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
