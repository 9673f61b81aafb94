"""The server around a service: how it leaves."""

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from proto.base import Problem
from services.kit import app as kit
from tests.unit.kit.serving import serving, until

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

    @classmethod
    async def to(cls, address: tuple[str, int]) -> "Keeping":
        return cls(*await asyncio.open_connection(*address))

    def send(self, content: bytes = REQUEST) -> None:
        self._writer.write(content)

    async def reply(self) -> str:
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert await self._reader.readexactly(2) == b"ok"
        return head.decode()

    async def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        rest = await self._reader.read()
        self._writer.close()
        await self._writer.wait_closed()
        return rest


async def test_a_server_that_stops_closes_no_connection_on_which_a_request_may_be_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It ends when the last connection has.
    monkeypatch.setattr(kit, "CLOSING_S", 60.0)
    app = App()
    async with serving(app, grace_s=60) as (server, address):
        idle, busy = await Keeping.to(address), await Keeping.to(address)
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
        late = await Keeping.to(address)
        for client in (idle, late):
            client.send()
        for client in (busy, idle, late):
            head = await client.reply()
            assert head.startswith("HTTP/1.1 200")
            assert "connection: close" in head
            assert await client.rest() == b""


@pytest.mark.parametrize(("connections", "grace_s"), [(0, 3_600), (1, 0)])
async def test_a_server_without_connections_or_without_grace_leaves_at_once(
    monkeypatch: pytest.MonkeyPatch, connections: int, grace_s: int
) -> None:
    monkeypatch.setattr(kit, "CLOSING_S", 3_600.0)
    async with serving(App(), grace_s) as (server, address):
        kept = [await Keeping.to(address) for _ in range(connections)]
        for client in kept:
            client.send()
            await client.reply()
        server.should_exit = True
    for client in kept:
        assert await client.rest() == b""


@pytest.mark.parametrize("sent", [b"GET /?%s HTTP/1.1\r\nhost: x\r\n\r\n" % (b"a" * 70_000), b"no\r\n\r\n"])
async def test_what_no_application_sees_is_refused_as_a_problem(sent: bytes) -> None:
    async with serving(App(), grace_s=0) as (_, address):
        client = await Keeping.to(address)
        client.send(sent)
        head, _, body = (await client.rest()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json")
        assert "64 KiB" in Problem.model_validate_json(body).detail
