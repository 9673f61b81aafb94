"""The generator's number formats on each CPU that this one can play: which one the launcher should choose.

    python -m tests.bench.formats [--isa avx2 --isa avx512_vnni] [--precision int8 --precision fp32] [--rounds 3]

Starts the launcher for every pair, one after the other, and asks prompts of 400 and 960 tokens for four more, of the
base model and of the adapter `answer`; a figure is the best of the rounds. bfloat16 is left out where it is emulated,
unless it is asked for: it takes many seconds there.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, get_args

import httpx
from rich.console import Console
from rich.table import Table

from services.generator.launch import command
from services.generator.settings import GeneratorSettings
from services.kit.cpu import IsaLimit, computes_bf16, computes_int8, instruction_set
from tests.bench.cpu import NEW_TOKENS, VOCABULARY, ours
from tests.load.restart import ready
from tests.ports import free_port

LENGTHS = (400, 960)
START_S = 300.0


@asynccontextmanager
async def serving(isa: IsaLimit, precision: str) -> AsyncIterator[httpx.AsyncClient]:
    """A generator of its own, warm."""
    port = free_port()
    launch = command(GeneratorSettings.model_validate({"port": port, "cpu_isa": isa, "precision": precision}))
    quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL, "start_new_session": True}
    process = await asyncio.create_subprocess_exec(*launch.argv, env=os.environ | launch.env, **quiet)
    try:
        await ready(f"http://127.0.0.1:{port}/readyz", within_s=START_S)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            yield client
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        await process.wait()


async def measure(client: httpx.AsyncClient, rounds: int) -> list[float]:
    """Best seconds of each length, base model and adapter."""
    chance = random.Random(1)
    names = [(await client.get("/v1/models")).json()["data"][0]["id"], "answer"]
    best: dict[tuple[int, str], float] = {}
    for _ in range(rounds):
        for length in LENGTHS:
            for name in names:
                prompt = [chance.randrange(*VOCABULARY) for _ in range(length)]
                took = await ours(client, name)([prompt])
                best[length, name] = min(took, best.get((length, name), took))
    return [best[length, name] for length in LENGTHS for name in names]


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    here = instruction_set()
    limits = [limit for limit in get_args(IsaLimit) if limit and instruction_set(limit) == limit]
    parser.add_argument("--isa", action="append", choices=limits, help="all by default")
    parser.add_argument("--precision", action="append", choices=("int8", "fp32", "bf16"), help="all by default")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    console = Console()
    heads = (f"{length} + {NEW_TOKENS}, {who}, s" for length in LENGTHS for who in ("base", "adapter"))
    table = Table("CPU as", "format", *heads)
    for isa in options.isa or limits:
        for precision in options.precision or ("int8", "fp32", "bf16"):
            if precision == "bf16" and not computes_bf16(instruction_set(isa)) and not options.precision:
                continue
            if precision == "int8" and not computes_int8(instruction_set(isa)):
                console.print(f"{isa}, int8: its products would overflow")
                continue
            console.print(f"{isa}, {precision} ...")
            # The newest is this CPU as it is, without a mask.
            async with serving("" if isa == here else isa, precision) as client:
                row: list[Any] = await measure(client, options.rounds)
            table.add_row(isa, precision, *(f"{seconds:.2f}" for seconds in row))
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
