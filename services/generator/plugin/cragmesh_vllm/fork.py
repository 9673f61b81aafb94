"""The engine's process as a copy of the server's, which has imported vLLM already: nine core-seconds and 300 MB less.

vLLM's CPU backend starts it anew, for the OpenMP of its workers: threads of their own where there are several, and
PyTorch's library before the system's. With the `uni` executor there is one worker, and a PyTorch whose library has the
system's name shares it with vLLM's kernels anyway. Until then the server computes nothing by OpenMP's threads, which a
copy would not have and wait for.
"""

import gc
import os
import signal
import socket
from pathlib import Path
from typing import Any

import torch

from cragmesh_vllm.memory import trim

METHOD = "VLLM_WORKER_MULTIPROC_METHOD"
# Whoever asks for a library of this name gets PyTorch's, which is there first.
OPENMP = Path(torch.__file__).parent / "lib" / "libgomp.so.1"
FILES = Path("/proc/self/fd")


def fork_engine() -> None:
    """Have the CPU backend copy the server's process for the engine where it can."""
    from vllm.platforms.cpu import CpuPlatform

    check = CpuPlatform.check_and_update_config
    if getattr(check, "forks", False) or not OPENMP.is_file():
        return

    def check_and_fork(_platform: type, config: Any) -> None:
        check(config)
        if config.parallel_config.distributed_executor_backend == "uni":
            os.environ[METHOD] = "fork"

    check_and_fork.forks = True  # type: ignore[attr-defined]
    CpuPlatform.check_and_update_config = classmethod(check_and_fork)
    os.register_at_fork(before=_settle, after_in_child=_leave_to_the_server)


def _settle() -> None:
    """Take what is there out of the garbage collector's sight, whose marks would copy each page that both share."""
    gc.collect()
    gc.freeze()
    trim()


def _leave_to_the_server() -> None:
    """Let go of the port, which would stay taken when the server dies, and of the server's signals."""
    signal.set_wakeup_fd(-1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir(FILES):
        try:
            one = socket.socket(fileno=int(name))
        except OSError:
            # A file, or the folder that was just listed.
            continue
        is_port = one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] != 0
        one.detach()
        if is_port:
            # Not closed: those who hold its number would meet another file by it.
            os.dup2(nowhere, int(name))
    os.close(nowhere)
