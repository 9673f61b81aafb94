"""A fetcher whose names resolve as a test says."""

import contextlib
from collections.abc import AsyncIterator
from ipaddress import ip_network

from services.searcher.addresses import Policy
from services.searcher.cache import Cache
from services.searcher.fetch import Bounds, Fetcher
from services.searcher.robots import Robots
from tests.site import Site

# All of loopback is private, but for the one address that a setting allows.
HERE = "127.0.0.2"
AGENT = "Testbot/1 (tests)"
KIB = 1024


@contextlib.asynccontextmanager
async def fetching(
    site: Site, *answers: list[str], seconds: float = 20.0, robots: bool = False, proxy: str = "", redirects: int = 3
) -> AsyncIterator[Fetcher]:
    """A fetcher for which every name is at `HERE`, or at each of the `answers` in turn, and the site's port is open."""
    turns = [*answers] or [[HERE]]

    async def resolve(_host: str, _port: int) -> list[str]:
        return turns.pop(0) if len(turns) > 1 else turns[0]

    policy = Policy(networks=[ip_network(f"{HERE}/32")], ports=[site.port])
    cache = Cache(None, max_bytes=2**20, age_s=60)
    bounds = Bounds(seconds, 64 * KIB, redirects)
    heeded = Robots(AGENT, cache) if robots else None
    fetcher = Fetcher(policy, resolve, bounds, agent=AGENT, robots=heeded, proxy=proxy)
    try:
        yield fetcher
    finally:
        await fetcher.aclose()
        cache.close()
