"""How soon vLLM is idle after a client of the running mesh has hung up.

    python -m tests.load.hang_up

Asks long and short questions, hangs up while the engine reads the prompt, and watches vLLM's own count of running
requests fall to 0.
"""

import asyncio
import time

import httpx

from tests.bench import common

GATEWAY = "http://127.0.0.1:8000"
GENERATOR = "http://127.0.0.1:8005"
REPEATS = 5


async def counts(http: httpx.AsyncClient, generator: str = GENERATOR) -> tuple[float, float]:
    """vLLM's own counts of running and of finished requests."""
    lines = (await http.get(f"{generator}/metrics")).text.splitlines()

    def total(name: str) -> float:
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    return total("vllm:num_requests_running"), total("vllm:request_success_total")


async def hang_up(words: int, number: int, http: httpx.AsyncClient) -> float:
    """Milliseconds from the hang-up to an idle engine."""
    question = {
        "query": f"Why is it so, number {words} {number}?",
        "evidence": [(f"word{number} " * words)[:19_000]] * 3,
    }
    async with httpx.AsyncClient(timeout=60, trust_env=False) as leaving:
        asking = asyncio.create_task(leaving.post(f"{GATEWAY}/answer", json=question))
        while not (await counts(http))[0]:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.wait({asking})
    began = time.monotonic()
    while (await counts(http))[0]:
        await asyncio.sleep(0.005)
    return (time.monotonic() - began) * 1000


async def main() -> None:
    common.parser(__doc__).parse_args()
    worst = 0.0
    async with httpx.AsyncClient(timeout=10, trust_env=False) as http:
        for words in (3_000, 1_500, 300):
            waits = [await hang_up(words, number, http) for number in range(REPEATS)]
            worst = max(worst, *waits)
            print(
                f"evidence of 3 x {words} words: idle after {', '.join(f'{wait:.0f}' for wait in waits)} ms", flush=True
            )
    if worst > 200:
        raise SystemExit(f"slower than 200 ms: {worst:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
