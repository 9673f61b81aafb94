"""A web site that misbehaves as it is told: raw bytes over a real socket."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def reply(body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/html; charset=utf-8") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


NOT_FOUND = reply(b"", status="404 Not Found")


def moved(location: str) -> bytes:
    return reply(b"", f"Location: {location}", status="302 Found")


async def for_ever(writer: asyncio.StreamWriter, head: bytes, piece: bytes, pause_s: float = 0.0) -> None:
    writer.write(head)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause_s)


class Site:
    """Pages by path; `asked` are the requests, each a dict of headers with the path under an empty name."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[dict[str, str]] = []
        self.addresses: list[str] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def served(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["Site"]:
        server = await asyncio.start_server(self._take, "0.0.0.0", 0, ssl=tls)  # noqa: S104 - all of loopback
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def paths(self) -> list[str]:
        return [request[""] for request in self.asked if request[""] != "/robots.txt"]

    def url(self, path: str, host: str = "site.test") -> str:
        return f"http://{host}:{self.port}{path}"

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                path = first.split(" ")[1]
                self.asked.append(headers | {"": path})
                self.addresses.append(writer.get_extra_info("sockname")[0])
                page = self.pages.get(path) or self.pages.get(path.partition("?")[0], NOT_FOUND)
                if isinstance(page, bytes):
                    writer.write(page)
                    await writer.drain()
                else:
                    await page(writer)
                    break
