"""What the mesh adds to vLLM, by its documented entry points; the launcher puts this folder on vLLM's path.

`register` mends the CPU backend, and saves its memory and half of its start, `readiness` is the server's `/readyz`,
`masked` a server on a CPU that pretends to be older. Written for vLLM 0.32.
"""


def register() -> None:
    """Let the CPU backend apply adapters at the price of their arithmetic, and to int8 weights, smoothed or not.

    Other backends keep their own ways. vLLM calls it in each of its processes, and may call it again.
    """
    from vllm.platforms import current_platform
    from vllm.platforms.cpu import CpuPlatform

    from cragmesh_vllm.fork import fork_engine
    from cragmesh_vllm.int8 import serve_int8
    from cragmesh_vllm.memory import economise
    from cragmesh_vllm.smoothing import smooth_adapters

    if isinstance(current_platform, CpuPlatform):
        CpuPlatform.get_punica_wrapper = classmethod(_wrapper)
        serve_int8()
        economise()
        fork_engine()
        smooth_adapters()


def _wrapper(_platform: type) -> str:
    return "cragmesh_vllm.lora.PunicaWrapperRuns"
