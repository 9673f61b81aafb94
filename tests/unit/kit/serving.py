"""Applications behind a server in this very loop: what they have not read yet is in its sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from services.kit.app import GracefulServer


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(240):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)


@asynccontextmanager
async def serving(app: Any, grace_s: int) -> AsyncIterator[tuple[GracefulServer, tuple[str, int]]]:
    """A server with its address; at the end it has left."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = GracefulServer(
            app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=grace_s
        )
        task = asyncio.create_task(server.serve(sockets=[bound]))
        await until(lambda: server.started)
        try:
            yield server, bound.getsockname()
        finally:
            server.should_exit = True
            async with asyncio.timeout(240):
                await task
