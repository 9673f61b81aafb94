"""One admission for the whole mesh: as many questions as its generator answers in time, whichever gateways have them.

How many follows from the engine itself: `Pace` learns how long it takes for a question, and only so many are let in as
it answers within half of the deadline (`QUEUE_SHARE`). Each has a place from its admission until its answer: a lease in
the store that all gateways share, which ends by itself when its gateway dies. Without a store a gateway has the share
that it is told (`CRAGMESH_GATEWAYS`). `docs/decisions/0014-leases-in-one-store.md` says why it is neither the engine's
own metrics nor shares alone.
"""

import asyncio
import contextlib
import math
import secrets
from collections.abc import AsyncIterator

from services.gateway.access import QUESTIONS
from services.gateway.pace import Pace, current_sharing
from services.gateway.settings import GatewaySettings
from services.gateway.shared import PREFIX, SharedStore
from services.kit.admission import Admission
from services.kit.errors import Overloaded

# Of the longest deadline: what the generator may take for a question, with all others that share it.
QUEUE_SHARE = 0.5
# One more than fits is let in up to here: few large questions leave an engine idle else, while the next is prepared.
MOST_SHARE = 0.8
KEY = f"{PREFIX}:places"
# Leases end by the store's own clock: those of the gateways differ.
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
        pace: is told how many questions share the engine, and says what one costs it.
        store: where all gateways count.
        first: places until the first question has been measured.
        deadline_s: of a request, at most.
        gateways: how many share the engine where no store counts.
    """

    def __init__(self, pace: Pace, store: SharedStore, *, first: int, deadline_s: float, gateways: int = 1) -> None:
        self.pace = pace
        self.taken = 0
        self._store = store
        self._first = first
        self._deadline_s = deadline_s
        self._gateways = gateways
        self._here = 0

    @property
    def most(self) -> int:
        """Places of the whole mesh: at least one, since only a question tells that the engine is fast again."""
        cost_s = self.pace.question_s
        if cost_s is None:
            return self._first
        count = math.ceil(QUEUE_SHARE * self._deadline_s / max(cost_s, 1e-3))
        return count if count * cost_s <= MOST_SHARE * self._deadline_s else max(1, count - 1)

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Have a place while the context is open.

        Raises:
            Overloaded: all are taken; `Retry-After` is the time in which one comes free.
        """
        lease = secrets.token_hex(8)
        granted, taken = await self._store.run(TAKE, [KEY], self.most, self._deadline_s, lease, alone=self._take_here)
        self._here += granted
        self._know(taken)
        if not granted:
            raise Overloaded(
                f"{taken} questions are on their way, which is all that the generator answers in time",
                retry_after_s=math.ceil(self.pace.question_s or 1),
            )
        # Those that come at the same moment are told apart: all of them together would seem to be before each.
        current_sharing.set(taken)
        try:
            yield
        finally:
            current_sharing.set(0)
            self._here -= 1
            self._know(await self._store.run(GIVE_BACK, [KEY], lease, alone=lambda: self._here * self._gateways))

    def _know(self, taken: int) -> None:
        self.taken = taken
        self.pace.elsewhere = max(0, taken - self._here)

    def _take_here(self) -> tuple[bool, int]:
        granted = self._here < max(1, self.most // self._gateways)
        return granted, (self._here + granted) * self._gateways


class MeshAdmission(Admission):
    """Bounds a gateway, and beyond it the questions of the whole mesh."""

    def __init__(self, settings: GatewaySettings, pace: Pace, store: SharedStore) -> None:
        super().__init__(settings.gateway_max_in_flight)
        self.places = Places(
            pace,
            store,
            first=settings.gateway_max_in_flight,
            deadline_s=settings.max_deadline_s,
            gateways=settings.gateways,
        )

    @contextlib.asynccontextmanager
    async def place(self, wait_s: float, gone: "asyncio.Future[None]", path: str = "") -> AsyncIterator[None]:
        """As `Admission.place`; a question has one of the mesh's places too."""
        async with super().place(wait_s, gone, path):
            if path not in QUESTIONS:
                yield
                return
            async with self.places.one():
                yield
