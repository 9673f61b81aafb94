"""One admission for the whole mesh: as many questions as its generator answers in time, whichever gateways have them.

Their number follows from the engine: `GeneratorSpeed` learns how long it takes for a question, and as many are admitted
as it answers within half of the deadline (`QUEUE_SHARE`). Each has a place from its admission until its answer: a lease
in the store that all gateways share, which expires when its gateway dies. Without a store each gateway has an equal
share (`CRAGMESH_GATEWAYS`). `docs/decisions/0014-leases-in-one-store.md` compares this with the engine's own metrics.
"""

import asyncio
import contextlib
import math
import secrets
from collections.abc import AsyncIterator

from services.gateway.access import takes_a_place
from services.gateway.settings import GatewaySettings
from services.gateway.shared import PREFIX, SharedStore
from services.gateway.speed import GeneratorSpeed, current_sharing
from services.kit.admission import Admission
from services.kit.errors import Overloaded

# Share of the longest deadline that the generator may take for a question, with all others that share it.
QUEUE_SHARE = 0.5
# Up to this share one question more is admitted, so that the engine does not idle while a large one is prepared.
MAX_QUEUE_SHARE = 0.8
KEY = f"{PREFIX}:places"
# By the store's clock: those of the gateways differ.
EXPIRE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1e6
for _, key in ipairs(KEYS) do redis.call('ZREMRANGEBYSCORE', key, '-inf', now) end
"""
TAKE = f"""{EXPIRE}
local taken = redis.call('ZCARD', KEYS[1])
if taken >= tonumber(ARGV[1]) then return {{0, taken}} end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
return {{1, taken + 1}}
"""
GIVE_BACK = "redis.call('ZREM', KEYS[1], ARGV[1]) return redis.call('ZCARD', KEYS[1])"


class Places:
    """The places of the mesh, as one gateway sees them.

    Args:
        speed: knows what a question costs the engine, and gets the number of those that share it.
        store: counts the places of all gateways.
        settings: with the places until the first question has been measured, the longest deadline, and the number of
            gateways for when no store counts.

    Attributes:
        taken: places in all gateways, when last counted.
    """

    def __init__(self, speed: GeneratorSpeed, store: SharedStore, settings: GatewaySettings) -> None:
        self.speed = speed
        self.taken = 0
        self._store = store
        self._first = settings.gateway_max_in_flight
        self._deadline_s = settings.max_deadline_s
        self._gateways = settings.gateways
        self._taken_here = 0
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def limit(self) -> int:
        """Places of the whole mesh: at least one, since only a question shows that the engine is fast again."""
        cost_s = self.speed.question_s
        if cost_s is None:
            return self._first
        count = math.ceil(QUEUE_SHARE * self._deadline_s / max(cost_s, 1e-3))
        return count if count * cost_s <= MAX_QUEUE_SHARE * self._deadline_s else max(1, count - 1)

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold a place while the context is open.

        Raises:
            Overloaded: all are taken; `Retry-After` is the time in which one comes free.
        """
        lease = secrets.token_hex(8)
        try:
            granted, taken = await self._store.run(
                TAKE, [KEY], self.limit, self._deadline_s, lease, alone=self._take_here
            )
        except asyncio.CancelledError:
            # The store may have granted it.
            self._give_back(lease)
            raise
        self._taken_here += granted
        self._update(taken)
        if not granted:
            raise Overloaded(
                f"{taken} questions are on their way, which is all that the generator answers in time",
                retry_after_s=math.ceil(self.speed.question_s or 1),
            )
        # Not read later: each of those that come at the same moment would count all the others as before it.
        current_sharing.set(taken)
        try:
            yield
        finally:
            current_sharing.set(0)
            self._taken_here -= 1
            # Whoever hangs up may have this cancelled as well, and the lease must go all the same.
            await asyncio.shield(self._give_back(lease))

    def _give_back(self, lease: str) -> "asyncio.Task[None]":
        async def give_back() -> None:
            taken = await self._store.run(GIVE_BACK, [KEY], lease, alone=lambda: self._taken_here * self._gateways)
            self._update(taken)

        task = asyncio.create_task(give_back())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    def _update(self, taken: int) -> None:
        self.taken = taken
        self.speed.in_flight_elsewhere = max(0, taken - self._taken_here)

    def _take_here(self) -> tuple[bool, int]:
        granted = self._taken_here < max(1, self.limit // self._gateways)
        return granted, (self._taken_here + granted) * self._gateways


class MeshAdmission(Admission):
    """Bounds the requests of a gateway, and the questions of the whole mesh."""

    def __init__(self, settings: GatewaySettings, speed: GeneratorSpeed, store: SharedStore) -> None:
        super().__init__(settings.gateway_max_in_flight)
        self.places = Places(speed, store, settings)

    @contextlib.asynccontextmanager
    async def place(self, wait_s: float, gone: "asyncio.Future[None]", path: str = "") -> AsyncIterator[None]:
        """As `Admission.place`; a question also takes one of the mesh's places."""
        async with super().place(wait_s, gone, path):
            if not takes_a_place(path):
                yield
                return
            async with self.places.one():
                yield
