"""Encoders that are being loaded, and requests for others meanwhile."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from services.kit.encoder import Encoder
from services.kit.encoders import EncoderDefinition, EncoderPool
from services.kit.errors import InvalidRequest, Unavailable
from services.retriever.collections.encoding import Encoding
from services.retriever.collections.locks import Locks
from tests.unit.conftest import FP32

pytestmark = pytest.mark.anyio


class Slow(Encoder):
    """Reads its weights when it is let."""

    begun: defaultdict[str, threading.Event]
    let: defaultdict[str, threading.Event]
    loads: list[str]

    def load(self) -> None:
        self.loads.append(self._place)
        self.begun[self._place].set()
        if self._place == "broken":
            raise OSError("no such model")
        assert self.let[self._place].wait(60)

    @property
    def nbytes(self) -> int:
        return 1


@pytest.fixture
async def encoding() -> AsyncIterator[Encoding]:
    Slow.begun, Slow.let, Slow.loads = defaultdict(threading.Event), defaultdict(threading.Event), []
    defined = {name: EncoderDefinition(model=name) for name in ("large", "other", "broken")}
    pool = EncoderPool(defined, max_bytes=10, choose=lambda *_: FP32, make=Slow)
    pool.pin("own", Slow("own", precision=FP32))
    async with Encoding(pool).running() as encoding:
        yield encoding
    for name in defined:
        Slow.let[name].set()


async def begun(name: str) -> None:
    assert await asyncio.to_thread(Slow.begun[name].wait, 60)


async def test_what_is_loaded_waits_for_nothing(encoding: Encoding) -> None:
    waiting = [asyncio.create_task(encoding.get("large")) for _ in range(100)]
    await begun("large")
    assert (await encoding.get("own")).name == "own"
    # The common threads are free.
    assert await asyncio.to_thread(lambda: 1) == 1
    assert not any(task.done() for task in waiting)
    Slow.let["large"].set()
    assert len({id(encoder) for encoder in await asyncio.gather(*waiting)}) == 1
    assert Slow.loads == ["large"]


async def test_who_waits_for_one_is_not_put_behind_the_next(encoding: Encoding) -> None:
    first = asyncio.create_task(encoding.get("large"))
    await begun("large")
    other = asyncio.create_task(encoding.get("other"))
    await asyncio.sleep(0)
    late = asyncio.create_task(encoding.get("large"))
    Slow.let["large"].set()
    await begun("other")
    assert await late is await first
    assert not other.done()
    Slow.let["other"].set()
    assert (await other).name == "other"


async def test_who_gives_up_leaves_no_thread_waiting(encoding: Encoding) -> None:
    first = asyncio.create_task(encoding.get("large"))
    await begun("large")
    given_up = [first, *(asyncio.create_task(encoding.get(name)) for name in ("large", "other") * 20)]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    await asyncio.wait(given_up)
    Slow.let["large"].set()
    # What was being read is kept for the next; what was only waited for is not read.
    assert (await encoding.get("large")).name == "large"
    assert Slow.loads == ["large"]


async def test_what_cannot_be_had_is_named(encoding: Encoding) -> None:
    with pytest.raises(Unavailable, match="no such model"):
        await encoding.get("broken")
    with pytest.raises(InvalidRequest, match="no encoder is named 'none'"):
        await encoding.get("none")


async def test_locks_that_nobody_holds_are_forgotten() -> None:
    locks = Locks()

    counts: list[int] = []

    async def hold() -> None:
        async with locks["a"]:
            await asyncio.sleep(0)
            counts.append(len(locks))

    await asyncio.gather(hold(), hold(), hold())
    assert counts == [1, 1, 1]
    assert len(locks) == 0
