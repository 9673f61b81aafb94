"""The server around a service: how it leaves."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Receive, Scope, Send

from proto.base import Problem
from services.kit import app as kit
from services.kit.app import GracefulServer
from tests.unit.kit.test_deadline import until

pytestmark = pytest.mark.anyio

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class App:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.began = asyncio.Event()

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        self.began.set()
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


class Keeping:
    """A client that keeps its connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self) -> None:
        self._writer.write(REQUEST)

    async def reply(self) -> str:
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert await self._reader.readexactly(2) == b"ok"
        return head.decode()

    async def is_closed(self) -> bool:
        ended = await self._reader.read() == b""
        self._writer.close()
        await self._writer.wait_closed()
        return ended


@asynccontextmanager
async def serving(app: App, grace_s: int) -> AsyncIterator[tuple[GracefulServer, tuple[str, int]]]:
    """A server with its address; at the end it has left."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = GracefulServer(
            app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=grace_s
        )
        task = asyncio.create_task(server.serve(sockets=[bound]))
        await until(lambda: server.started)
        yield server, bound.getsockname()
        async with asyncio.timeout(240):
            await task


async def test_a_server_that_stops_closes_no_connection_on_which_a_request_may_be_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It ends when the last connection has.
    monkeypatch.setattr(kit, "CLOSING_S", 60.0)
    app = App()
    async with serving(app, grace_s=60) as (server, address):

        async def connect() -> Keeping:
            return Keeping(*await asyncio.open_connection(*address))

        idle, busy = await connect(), await connect()
        for client in (idle, busy):
            client.send()
            assert "connection: close" not in await client.reply()
        app.go.clear()
        app.began.clear()
        busy.send()
        await app.began.wait()
        server.should_exit = True
        await until(lambda: server._closing)
        app.go.set()
        late = await connect()
        for client in (idle, late):
            client.send()
        for client in (busy, idle, late):
            head = await client.reply()
            assert head.startswith("HTTP/1.1 200")
            assert "connection: close" in head
            assert await client.is_closed()


@pytest.mark.parametrize(("connections", "grace_s"), [(0, 3_600), (1, 0)])
async def test_a_server_without_connections_or_without_grace_leaves_at_once(
    monkeypatch: pytest.MonkeyPatch, connections: int, grace_s: int
) -> None:
    monkeypatch.setattr(kit, "CLOSING_S", 3_600.0)
    async with serving(App(), grace_s) as (server, address):
        kept = [Keeping(*await asyncio.open_connection(*address)) for _ in range(connections)]
        for client in kept:
            client.send()
            await client.reply()
        server.should_exit = True
    for client in kept:
        assert await client.is_closed()


@pytest.mark.parametrize("sent", [b"GET /?%s HTTP/1.1\r\nhost: x\r\n\r\n" % (b"a" * 70_000), b"no\r\n\r\n"])
async def test_what_no_application_sees_is_refused_as_a_problem(sent: bytes) -> None:
    async with serving(App(), grace_s=0) as (server, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json")
        assert "64 KiB" in Problem.model_validate_json(body).detail
        writer.close()
        server.should_exit = True
