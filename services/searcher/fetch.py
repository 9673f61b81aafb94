"""One page of the web: bounded in bytes, time, redirects and media type, and only where robots.txt allows it."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from services.kit.documents import declared
from services.searcher.addresses import PinnedBackend, Policy, Resolve
from services.searcher.errors import Failed, TooSlow
from services.searcher.robots import MAX_ROBOTS, Robots

PAGES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
CONNECTIONS = 64
# Of an idle connection: its address was judged when it was opened.
KEEPALIVE_S = 5.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Bytes that gzip may add to incompressible ones.
SLACK = 64 * 1024
# With a gzip header.
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Page:
    """A page as its site sent it, inflated.

    Args:
        url: after redirects.
        kind: its media type, in lower case.
        charset: as its header has it; may be empty, or no encoding's name.
        cut: whether it was longer than `body`.
    """

    url: str
    body: bytes
    kind: str
    charset: str
    last_modified: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one page: seconds for all that it takes, bytes when inflated, redirects."""

    seconds: float
    size: int
    redirects: int


class Fetcher:
    """Fetches pages; `aclose` ends its connections. A proxy judges the pages' addresses in our place."""

    def __init__(
        self, policy: Policy, resolve: Resolve, bounds: Bounds, *, agent: str, robots: Robots | None, proxy: str = ""
    ) -> None:
        self._policy = policy
        self._bounds = bounds
        self._robots = robots
        self._headers = [
            (b"user-agent", agent.encode("ascii")),
            (b"accept", b"text/html, application/xhtml+xml, text/plain;q=0.8"),
            (b"accept-encoding", b"gzip"),
        ]
        self._pool = _pool(proxy, PinnedBackend(policy, resolve))

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def page(self, url: str) -> Page:
        """A page of HTML or text.

        Raises:
            NotFetched: it may not be fetched, is no page, or takes too long; the message says which.
        """
        try:
            async with asyncio.timeout(self._bounds.seconds):
                return await self._follow(url, self._bounds.size, PAGES, self._robots)
        except TimeoutError:
            raise TooSlow(f"not there within {self._bounds.seconds:g} s") from None

    async def _follow(
        self, url: str, size: int, kinds: frozenset[str] = frozenset(), robots: Robots | None = None
    ) -> Page:
        """What lies behind a URL's redirects, of these media types (of all when empty)."""
        for _ in range(self._bounds.redirects + 1):
            target = self._policy.check(url)
            if robots:
                await robots.check(target, self._robots_txt)
            reply = await self._get(target, size, kinds)
            if isinstance(reply, Page):
                return reply
            url = reply
        raise Failed(f"more than {self._bounds.redirects} redirects")

    async def _robots_txt(self, url: httpx.URL) -> bytes | None:
        try:
            return (await self._follow(str(url), MAX_ROBOTS)).body
        except _Absent:
            return None

    async def _get(self, url: httpx.URL, size: int, kinds: frozenset[str]) -> Page | str:
        """A page, or the address of a redirect."""
        address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        try:
            async with self._pool.stream("GET", address, headers=self._headers) as response:
                headers = {name.lower(): value for name, value in response.headers}
                if response.status in REDIRECTS and b"location" in headers:
                    return _join(url, headers[b"location"].decode("latin-1"))
                content_type = headers.get(b"content-type", b"")
                kind = content_type.partition(b";")[0].strip().lower().decode("latin-1")
                if 400 <= response.status < 500:
                    raise _Absent(f"HTTP {response.status}")
                if response.status != httpx.codes.OK:
                    raise Failed(f"HTTP {response.status}")
                if kinds and kind not in kinds:
                    raise Failed(f"no page: {kind[:100] or 'nothing'} by its type")
                body, cut = await _read(response.aiter_stream(), size, headers.get(b"content-encoding", b""))
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.ProxyError,
            httpcore.TimeoutException,
            httpcore.UnsupportedProtocol,
        ) as error:
            raise Failed(type(error).__name__) from error
        last_modified = headers.get(b"last-modified", b"").decode("latin-1")
        return Page(str(url), body, kind, declared(content_type), last_modified, cut)


class _Absent(Failed):
    """The site says that there is no such page."""


def _pool(proxy: str, backend: httpcore.AsyncNetworkBackend) -> httpcore.AsyncConnectionPool:
    options: dict[str, Any] = {
        "ssl_context": httpx.create_ssl_context(),
        "max_connections": CONNECTIONS,
        "keepalive_expiry": KEEPALIVE_S,
    }
    if not proxy:
        return httpcore.AsyncConnectionPool(network_backend=backend, **options)
    url = httpx.URL(proxy)
    auth = (url.username, url.password) if url.userinfo else None
    address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/")
    return httpcore.AsyncHTTPProxy(address, proxy_auth=auth, **options)


def _join(url: httpx.URL, location: str) -> str:
    try:
        return str(url.join(location))
    except (httpx.InvalidURL, ValueError) as error:
        raise Failed("a redirect to nowhere") from error


async def _read(stream: AsyncIterator[bytes], size: int, encoding: bytes) -> tuple[bytes, bool]:
    """The first `size` bytes, inflated, and whether there were more; no more than that is received either."""
    name = encoding.strip().lower()
    if name not in (b"", b"identity", b"gzip", b"x-gzip"):
        raise Failed("an encoding that was not asked for")
    inflate = zlib.decompressobj(_GZIP) if name.endswith(b"gzip") else None
    body, sent = bytearray(), 0
    async for chunk in stream:
        sent += len(chunk)
        # One byte too many shows that the body is longer.
        room = size + 1 - len(body)
        try:
            body += inflate.decompress(chunk, room) if inflate else chunk[:room]
        except zlib.error as error:
            raise Failed("no gzip") from error
        if len(body) > size or sent > size + SLACK or (inflate and inflate.eof):
            break
    return bytes(body[:size]), len(body) > size or sent > size + SLACK
