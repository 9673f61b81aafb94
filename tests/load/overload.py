"""Far more questions than a running mesh can answer, and what becomes of them.

    python -m tests.load.overload [--rate 20] [--seconds 60] [--budget 15]

An open loop: questions arrive at a fixed rate whether or not earlier ones are answered, as users do. Prints how many
were answered and refused, whether each answer came within its budget, and the services' memory before and after.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from rich.progress import Progress

from tests.load.memory import memory_mib, whole

DEMO = Path(__file__).resolve().parents[2] / "services" / "cli" / "demo"
GATEWAY = "http://127.0.0.1:8000"
CONNECTIONS = 2_000
# Where `cragmesh up` keeps its pid files.
RUN_DIR = Path(".run")


@dataclass
class Outcome:
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    without_retry_after: int = 0
    degraded: int = 0


def demo_pages() -> list[dict[str, str]]:
    """The demo's pages as search results."""
    return [
        {"page_name": path.stem, "page_url": f"file:{path.name}", "page_result": path.read_text("utf-8")}
        for path in sorted(DEMO.glob("*.html"))
    ]


def question(budget_s: float) -> bytes:
    asked = {"query": "How tall is the Eiffel Tower?", "search_results": demo_pages(), "budget_s": budget_s}
    return json.dumps(asked).encode()


async def ask(http: httpx.AsyncClient, body: bytes, outcome: Outcome) -> None:
    began = time.monotonic()
    try:
        reply = await http.post("/answer", content=body, headers={"content-type": "application/json"})
    except httpx.HTTPError as error:
        outcome.statuses[type(error).__name__] += 1
        return
    outcome.statuses[str(reply.status_code)] += 1
    if reply.status_code == 200:
        outcome.seconds.append(time.monotonic() - began)
        outcome.degraded += bool(reply.json()["degraded"])
    elif reply.status_code == 429 and "retry-after" not in reply.headers:
        outcome.without_retry_after += 1


async def flood(rate: float, seconds: float, body: bytes, http: httpx.AsyncClient) -> Outcome:
    outcome = Outcome()
    began = time.monotonic()
    with Progress() as progress:
        bar = progress.add_task("asking", total=int(rate * seconds))
        async with asyncio.TaskGroup() as group:
            for number in range(int(rate * seconds)):
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
                group.create_task(ask(http, body, outcome))
                progress.advance(bar)
    return outcome


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=20.0, help="questions a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--budget", type=float, default=15.0, help="seconds until each answer is due")
    args = parser.parse_args()
    before = memory_mib(RUN_DIR)
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=100)
    async with httpx.AsyncClient(base_url=GATEWAY, timeout=60, limits=limits, trust_env=False) as http:
        single = Outcome()
        await ask(http, question(30), single)
        if not single.seconds:
            raise SystemExit("the mesh does not answer: start it with `make up`")
        outcome = await flood(args.rate, args.seconds, question(args.budget), http)
        after = Outcome()
        await ask(http, question(30), after)
    ordered = sorted(outcome.seconds)
    late = sum(seconds > args.budget for seconds in ordered)
    print(
        f"one question alone: {single.seconds[0]:.2f} s; afterwards: {after.seconds[0] if after.seconds else -1:.2f} s"
    )
    print(f"asked {int(args.rate * args.seconds)} at {args.rate:g}/s: {dict(outcome.statuses)}")
    print(f"refused without Retry-After: {outcome.without_retry_after}; degraded: {outcome.degraded}; late: {late}")
    if ordered:
        middle, last = ordered[len(ordered) // 2], ordered[-1]
        print(f"answered in {middle:.2f} s (median), {last:.2f} s (slowest) of {args.budget:g} s")
    print(f"memory before, MiB: {whole(before)}\nmemory after, MiB:  {whole(memory_mib(RUN_DIR))}")
    if late or outcome.without_retry_after or set(outcome.statuses) - {"200", "429"}:
        raise SystemExit(1)


if __name__ == "__main__":
    asyncio.run(main())
