"""The places that callers of all gateways leave free, for batches."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

from services.gateway.places import EXPIRE, GIVE_BACK, KEY
from services.gateway.shared import PREFIX, SharedStore
from services.kit.admission import Admission
from services.kit.concurrency import beside
from services.kit.lane import GaveWay, IdleLane

# Apart from the callers' places: no caller is refused one for a batch's sake.
IDLE_KEY = f"{PREFIX}:idle"
# Between two looks for callers of other gateways; after the lease, the places of a gateway that died are free.
LOOK_S, LEASE_S = 0.5, 5.0
# Takes a place, or renews the lease of one's own; where it refuses, that place is lost.
TAKE = f"""{EXPIRE}
redis.call('ZREM', KEYS[2], ARGV[3])
if redis.call('ZCARD', KEYS[1]) + redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[1]) then return 0 end
return redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[3])
"""


class MeshLane(IdleLane):
    """An idle lane that gives way to the callers of every gateway: `level` counts over all of them.

    Without a store, or while it is away, each gateway counts for itself.
    """

    def __init__(self, admission: Admission, level: int, store: SharedStore) -> None:
        super().__init__(admission, level)
        self._store = store
        self._mesh_level = level

    async def wait(self) -> None:
        await super().wait()
        while not await self._take("next", 0):
            await asyncio.sleep(LOOK_S)
            await super().wait()

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        lease = secrets.token_hex(8)
        async with super().place():
            if not await self._take(lease, LEASE_S):
                raise GaveWay
            try:
                async with asyncio.timeout(None) as deadline:
                    async with beside(self._watch(lease, deadline)):
                        yield
            except TimeoutError:
                if deadline.expired():
                    raise GaveWay from None
                raise
            finally:
                # Where the store is away the lease ends by itself.
                await self._store.run(GIVE_BACK, [IDLE_KEY], lease, alone=lambda: None)

    async def _watch(self, lease: str, deadline: asyncio.Timeout) -> None:
        while await self._take(lease, LEASE_S):  # noqa: ASYNC110 - the store calls nobody
            await asyncio.sleep(LOOK_S)
        deadline.reschedule(0)

    async def _take(self, lease: str, seconds: float) -> bool:
        keys = [KEY, IDLE_KEY]
        return bool(await self._store.run(TAKE, keys, self._mesh_level, seconds, lease, alone=lambda: True))
