"""Counts that the gateways of a mesh share: in one Valkey (or Redis), else each gateway for itself.

A store that is away stops nobody: until it answers again each gateway counts for itself.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from limits import RateLimitItem
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter

from services.kit.breaker import Breaker
from services.kit.telemetry import log

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")
# A store in the same network answers in a millisecond; every question waits for it.
ANSWER_S = 0.25
PREFIX = "cragmesh"


class SharedStore:
    """Counts of all gateways.

    Args:
        client: of the store; None counts in this process.
    """

    def __init__(self, client: "Redis | None" = None) -> None:
        self.client = client
        # While the store is away, one question in five seconds waits for it.
        self._breaker = Breaker(threshold=1)
        self._failures: tuple[type[Exception], ...] = ()
        self._alone = MovingWindowRateLimiter(MemoryStorage())
        self._shared = self._alone
        if client is not None:
            from redis.exceptions import RedisError

            self._failures = (RedisError, OSError)
            storage = RedisStorage(
                "async+redis://",
                implementation="redispy",
                key_prefix=f"{PREFIX}:rates",
                connection_pool=client.connection_pool,  # type: ignore[arg-type]
            )
            self._shared = MovingWindowRateLimiter(storage)

    @classmethod
    def connect(cls, url: str) -> "SharedStore":
        """The store at an address like redis://:password@host:6379/0; this process where it is empty."""
        if not url:
            return cls()
        from redis.asyncio import Redis

        return cls(Redis.from_url(url, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S))

    async def close(self) -> None:
        if self.client is not None:
            await self.client.aclose()

    async def ask(self, shared: Callable[["Redis"], Awaitable[T]], alone: Callable[[], Awaitable[T]]) -> T:
        """The store's answer; this process's own where there is no store, or none that answers."""
        if self.client is None or not self._breaker.admit():
            return await alone()
        try:
            answer = await shared(self.client)
        except self._failures as error:
            self._breaker.failed()
            log.warning("the shared store is away: this gateway counts for itself", error=type(error).__name__)
            return await alone()
        except BaseException:
            self._breaker.abandoned()
            raise
        self._breaker.succeeded()
        return answer

    async def run(self, script: str, keys: Sequence[str], *values: object, alone: Callable[[], Any]) -> Any:
        """The result of a script in the store; that of `alone` where there is no store, or none that answers."""

        async def shared(client: "Redis") -> Any:
            return await cast("Awaitable[Any]", client.eval(script, len(keys), *keys, *map(str, values)))

        async def here() -> Any:
            return alone()

        return await self.ask(shared, here)

    async def hit(self, rate: RateLimitItem, name: str) -> float:
        """Count a request against a rate: 0, or the seconds until there is room for it."""

        async def count(limiter: MovingWindowRateLimiter) -> float:
            if await limiter.hit(rate, name):
                return 0.0
            return max(1.0, (await limiter.get_window_stats(rate, name)).reset_time - time.time())

        return await self.ask(lambda _: count(self._shared), lambda: count(self._alone))
