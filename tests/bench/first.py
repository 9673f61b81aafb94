"""What the first questions to a fresh mesh take: `make bench-first` starts it anew.

    python -m tests.bench.first [--gateway http://127.0.0.1:8000] [--questions 6] [--max-ratio 1.3]

Each question has pages of its own and of one size, so that all are the same work and none is in a cache. Fails where
the first takes more than so many times what the third takes.
"""

import asyncio
import sys
import time

import httpx
from rich.console import Console
from rich.table import Table

from tests.bench import common
from tests.bench.made_up import question

BUDGET_S = 30.0
STAGES = ("classify", "retrieve", "rerank", "kg", "generate")


async def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--gateway", default="http://127.0.0.1:8000")
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--max-ratio", type=float, default=1.3)
    options = parser.parse_args()
    console = Console()
    table = Table("question", "s", *(f"{stage}, ms" for stage in STAGES), "answer")
    seconds = []
    # Other pages at every call: a mesh that was up already has these in no cache.
    seed = time.time_ns()
    async with httpx.AsyncClient(base_url=options.gateway, timeout=2 * BUDGET_S) as client:
        for number in range(options.questions):
            body = question(seed + number)
            began = time.perf_counter()
            reply = (await client.post("/answer", json=body)).raise_for_status().json()
            seconds.append(time.perf_counter() - began)
            took = (f"{reply['timings'].get(stage, {}).get('elapsed_ms', 0):.0f}" for stage in STAGES)
            table.add_row(str(number + 1), f"{seconds[-1]:.2f}", *took, reply["answer"][:40])
    console.print(table)
    ratio = seconds[0] / seconds[2]
    console.print(f"the first takes {ratio:.2f} times what the third takes")
    return int(ratio > options.max_ratio)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
