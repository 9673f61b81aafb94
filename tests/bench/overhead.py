"""What the gateway itself computes for a question, by each door, over canned services that answer at once.

    python -m tests.bench.overhead [--questions 200]

A question at a time by `adaptive` over a collection, ten calls of services, in one process, the doors in turn.
Milliseconds of CPU, less those of the canned services: reading the request, prompts, calls, weighing the answer, the
reply. No socket is in it. `empty tool` is what the SDK alone takes for a call of a tool that does nothing.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx
import structlog
from mcp.server.mcpserver import MCPServer

from lab.capacity import percentile
from lab.goldens import canned
from lab.goldens.cases import load
from services.gateway.mcp.door import PATH
from tests.bench import common
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


@asynccontextmanager
async def empty_server() -> AsyncIterator[Gateway]:
    """A server of the SDK with a tool that does nothing, opened as the gateway opens its own."""
    server = MCPServer("empty", version="1", subscriptions=False)

    @server.tool()
    async def answer(question: str, collection: str, budget_s: float) -> None:
        """Nothing."""

    app = server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, json_response=True, host="")
    async with app.router.lifespan_context(app):
        yield Gateway(app, {}, Watched(load()[0]))


async def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--questions", type=int, default=200, help="by each door; %(default)s")
    count = parser.parse_args().questions
    logging.disable(logging.INFO)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    clock = SimpleNamespace(sleep=at_once, get_running_loop=asyncio.get_running_loop)
    services = Timed(load()[0])
    with mock.patch.object(canned, "asyncio", clock):
        async with opened(services) as gateway:
            for door in QUESTIONS.values():
                assert door.read(await gateway.ask(door))[0] == ANSWER
            async with empty_server() as empty:
                cases = {name: (gateway, door) for name, door in QUESTIONS.items()}
                cases |= {f"empty tool, {name}": (empty, QUESTIONS[name]) for name in ("agent", "new agent")}
                # In turn: what a neighbour does to the caches of the CPU, it does to every door.
                rounds = [
                    [await ask(asked, services, door) for asked, door in cases.values()] for _ in range(WARM_UP + count)
                ]
    for name, *times in zip(cases, *rounds[WARM_UP:], strict=True):
        print(f"{name:<21} {percentile(times, 0.5):5.1f} ms, p95 {percentile(times, 0.95):5.1f} ms")


if __name__ == "__main__":
    asyncio.run(main())
