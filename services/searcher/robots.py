"""robots.txt of sites (RFC 9309)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx
from protego import Protego

from services.searcher.cache import Cache
from services.searcher.errors import Refused

# RFC 9309, section 2.5, has crawlers read 500 KiB at least.
MAX_ROBOTS = 512 * 1024
# Fetches a site's robots.txt; None where it has none.
Get = Callable[[httpx.URL], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class Robots:
    """Asks each site once a lifetime of the cache's entries; rules name a word of our `User-Agent`, `agent`."""

    agent: str
    cache: Cache

    async def check(self, url: httpx.URL, get: Get) -> None:
        """See that a page may be read; without an answer of its site it may not (RFC 9309, section 2.3.1.4).

        Raises:
            Refused: it may not.
            NotFetched: robots.txt cannot be fetched.
        """
        address = url.copy_with(raw_path=b"/robots.txt")
        key = f"robots {address}"
        text = await self.cache.get(key)
        if text is None:
            text = await get(address) or b""
            await self.cache.put(key, text)
        if text and not await asyncio.to_thread(_allowed, text, str(url), self.agent):
            raise Refused("robots.txt says no")


def _allowed(text: bytes, url: str, agent: str) -> bool:
    return Protego.parse(text.decode("utf-8", "replace")).can_fetch(url, agent)
