"""The tests of the mesh, in one process and as real ones, under every instruction set that this CPU can play.

    python -m tests.isa [--only avx2] [pytest's own arguments]

An older CPU is played by `CRAGMESH_CPU_ISA`, which every choice of a number format and vLLM's launcher read, and by the
limits that oneDNN and PyTorch know. One line a set says how it went; what failed stands above it.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from services.kit.cpu import Isa, IsaLimit, instruction_set, library_limits

ROOT = Path(__file__).parents[1]
TESTS = ("tests/mesh", "tests/e2e")
# Those that differ in which of our number formats they compute: AVX-512 alone is AVX2 with wider registers.
LIMITS: tuple[IsaLimit, ...] = ("avx2", "avx512_vnni", "avx512_bf16", "amx")


def playable(newest: Isa) -> list[IsaLimit]:
    """The limits below what the CPU has, oldest first, and no limit at all."""
    order = list(Isa)
    return [limit for limit in LIMITS if order.index(Isa(limit)) < order.index(newest)] + [""]


def environment(limit: IsaLimit) -> dict[str, str]:
    """What a run under a limit is given."""
    kept = {name: value for name, value in os.environ.items() if name != "CRAGMESH_CPU_ISA"}
    return kept | ({"CRAGMESH_CPU_ISA": limit} | library_limits(limit) if limit else {})


def main() -> int:
    """Run the tests once a limit.

    Returns:
        The exit status: 1 if any run failed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*LIMITS, "native"], help="one instruction set")
    arguments, further = parser.parse_known_args()
    newest = instruction_set()
    limits = playable(newest)
    if arguments.only:
        wanted = "" if arguments.only == "native" else arguments.only
        if wanted not in limits:
            parser.error(f"this CPU is {newest}, and cannot play {arguments.only}")
        limits = [wanted]
    lines = []
    for limit in limits:
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", *TESTS, "-n", "2", *further]
        status = subprocess.run(command, cwd=ROOT, env=environment(limit), check=False).returncode  # noqa: S603
        outcome = "passed" if status == 0 else f"FAILED (pytest's status {status})"
        lines.append((status, f"{limit or f'{newest} (native)'}: {outcome} in {time.monotonic() - began:.0f} s"))
    print(*(line for _, line in lines), sep="\n")
    return int(any(status for status, _ in lines))


if __name__ == "__main__":
    sys.exit(main())
