"""What the gateway itself computes for a question, by each door, over canned services that answer at once.

    python -m tests.bench.overhead [--questions 200]

A question at a time by `adaptive` over a collection, ten calls of services, in one process. Milliseconds of CPU, less
those of the canned services: reading the request, prompts, calls, weighing the answer, the reply. No socket is in it.
"""

import argparse
import asyncio
import logging
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx
import structlog

from lab.capacity import percentile
from lab.goldens import canned
from lab.goldens.cases import load
from tests.mesh.doors import ANSWER, QUESTIONS, Door, Gateway, Watched, opened

WARM_UP = 20


class Timed(Watched):
    """Canned services that count their CPU; nothing else may run while they are at a call."""

    spent_s = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        began = time.process_time()
        try:
            return await super().handle_async_request(request)
        finally:
            self.spent_s += time.process_time() - began


async def at_once(*_: Any) -> None:
    """Sleep for no time at all, and let nobody else run meanwhile."""


async def ask(gateway: Gateway, services: Timed, door: Door) -> float:
    """Milliseconds of CPU that are the gateway's own."""
    services.spent_s, began = 0.0, time.process_time()
    await gateway.ask(door)
    return 1000 * (time.process_time() - began - services.spent_s)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=200, help="by each door; %(default)s")
    count = parser.parse_args().questions
    logging.disable(logging.INFO)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    clock = SimpleNamespace(sleep=at_once, get_running_loop=asyncio.get_running_loop)
    services = Timed(load()[0])
    with mock.patch.object(canned, "asyncio", clock):
        async with opened(services) as gateway:
            for name, door in QUESTIONS.items():
                times = [await ask(gateway, services, door) for _ in range(WARM_UP + count)][WARM_UP:]
                assert door.read(await gateway.ask(door))[0] == ANSWER
                print(f"{name:<12} {percentile(times, 0.5):5.1f} ms, p95 {percentile(times, 0.95):5.1f} ms", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
