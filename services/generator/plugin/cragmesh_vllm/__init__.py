"""What the mesh adds to vLLM, by its documented entry points; the launcher puts this folder on vLLM's path.

`register` mends the CPU backend, and saves its memory and half of its start, `readiness` is the server's `/readyz`,
`masked` a server on a CPU that pretends to be older. Written for vLLM 0.32.
"""

from typing import Any


def register() -> None:
    """Let the CPU backend apply adapters at the price of their arithmetic, and to int8 weights, smoothed or not.

    Other backends keep their own ways. vLLM calls it in each of its processes, and may call it again.
    """
    from vllm.platforms import current_platform
    from vllm.platforms.cpu import CpuPlatform

    from cragmesh_vllm.fork import fork_engine
    from cragmesh_vllm.memory import economise
    from cragmesh_vllm.smoothing import smooth_adapters

    if isinstance(current_platform, CpuPlatform):
        CpuPlatform.get_punica_wrapper = classmethod(_wrapper)
        _keep_a_weight()
        economise()
        fork_engine()
        smooth_adapters()


def _wrapper(_platform: type) -> str:
    return "cragmesh_vllm.lora.PunicaWrapperRuns"


def _keep_a_weight() -> None:
    """Leave int8 layers a weight after oneDNN has taken theirs over: a LoRA layer asks it for its device."""
    import torch
    from vllm.model_executor.kernels.linear.scaled_mm.cpu import CPUInt8ScaledMMLinearKernel

    from cragmesh_vllm.memory import trim

    pack = CPUInt8ScaledMMLinearKernel.process_weights_for_onednn
    if getattr(pack, "keeps_a_weight", False):
        return

    def pack_and_keep(self: Any, layer: torch.nn.Module) -> None:
        pack(self, layer)
        # Where nothing is given back, the weights of before stay in the heap beside those of after.
        trim()
        name = self.layer_param_names[0]
        if getattr(layer, name) is None:
            setattr(layer, name, torch.nn.Parameter(torch.empty(0, dtype=torch.int8), requires_grad=False))

    pack_and_keep.keeps_a_weight = True  # type: ignore[attr-defined]
    CPUInt8ScaledMMLinearKernel.process_weights_for_onednn = pack_and_keep
