"""Work on batches: it uses the places that callers of all gateways leave free, and gives way to them."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any

from services.gateway.places import EXPIRE, GIVE_BACK, KEY
from services.gateway.shared import PREFIX, SharedStore
from services.kit.admission import Admission
from services.kit.concurrency import beside

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


class GaveWay(Exception):
    """A caller needed the place: the work is to be done again later."""


class IdleLane:
    """Runs work while few callers are served, and cancels it when one more comes.

    The work takes no place of `admission`: it runs while requests in flight, its own included, are no more than
    `level`, which is at most what the service takes. So nobody waits for a place, or is refused one, for its sake.
    At a level of 1 it runs only while there is no caller.
    """

    def __init__(self, admission: Admission, level: int) -> None:
        self._admission = admission
        self._level = min(level, admission.limit)
        self._running: list[asyncio.Task[Any]] = []
        self._free = asyncio.Event()
        admission.changed = self._adjust
        self._adjust()

    async def wait(self) -> None:
        """Wait for a free place; `place` gets it if nothing is awaited in between."""
        while not self._free.is_set():
            await self._free.wait()

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Have a place while the context is open.

        Raises:
            GaveWay: there is none, or a caller needed it and the work inside was cancelled.
        """
        task = asyncio.current_task()
        if task is None or not self._free.is_set():
            raise GaveWay
        self._running.append(task)
        self._adjust()
        try:
            yield
        except asyncio.CancelledError:
            # `_adjust` removes from the list the task that it cancels; others may have cancelled it as well.
            if task in self._running or task.uncancel():
                raise
            raise GaveWay from None
        finally:
            if task in self._running:
                self._running.remove(task)
            self._adjust()

    def _adjust(self) -> None:
        """Fit the lane to the free places; the newest work gives way first, having lost the least."""
        room = max(0, self._level - self._admission.in_flight)
        while len(self._running) > room:
            self._running.pop().cancel()
        if len(self._running) < room:
            self._free.set()
        else:
            self._free.clear()


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
