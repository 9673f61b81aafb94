"""What switching between the base model and its adapters costs: replies in turns beside replies of one alone.

    python -m tests.bench.adapters [--generator http://127.0.0.1:8005] [--rounds 30]

Every name that the generator serves is asked the same short prompt, in turns and then each alone; a reload between two
names would show as a ratio far above 1. Prints medians in milliseconds.
"""

import argparse
import asyncio
import statistics
import sys
import time

from rich.console import Console
from rich.progress import track
from rich.table import Table

from services.kit.client import ServiceClient, http_client
from services.kit.errors import ServiceFailure
from services.kit.llm import LLM, Message

PROMPT = [Message("user", "Which river flows through Vienna? Answer with one word.")]
TOKENS = 4
ALLOW_S = 60.0


async def seconds(llm: LLM, adapter: str) -> float:
    began = time.perf_counter()
    completion = await llm.chat(PROMPT, max_tokens=TOKENS, allow_s=ALLOW_S, adapter=adapter)
    assert not completion.missing_adapter
    return time.perf_counter() - began


async def measure(url: str, rounds: int, console: Console) -> dict[str, tuple[float, float]]:
    """Name -> median seconds of a reply in turns with the others, and alone."""
    async with http_client() as http:
        llm = LLM(ServiceClient("generator", url, http))
        served = await llm.models(allow_s=ALLOW_S)
        names = ["", *sorted(served - {llm.model})]
        for name in names:
            await seconds(llm, name)
        turns: dict[str, list[float]] = {name: [] for name in names}
        alone: dict[str, list[float]] = {name: [] for name in names}
        for _ in track(range(rounds), "in turns", console=console):
            for name in names:
                turns[name].append(await seconds(llm, name))
        for name in track(names, "alone", console=console):
            for _ in range(rounds):
                alone[name].append(await seconds(llm, name))
        return {name or llm.model: (statistics.median(turns[name]), statistics.median(alone[name])) for name in names}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--generator", default="http://127.0.0.1:8005")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    console = Console()
    try:
        found = asyncio.run(measure(options.generator, options.rounds, console))
    except ServiceFailure as failure:
        console.print(str(failure), style="red")
        return 1
    table = Table("served", "in turns, ms", "alone, ms", "ratio")
    for name, (mixed, single) in found.items():
        table.add_row(name, f"{mixed * 1000:.0f}", f"{single * 1000:.0f}", f"{mixed / single:.2f}")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
