"""The page pool: timeouts, crashes, memory and cancellation cost one task each."""

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from services.kit.errors import Unavailable
from services.retriever.workers import PageFailed, PagePool, PageTimeout

pytestmark = pytest.mark.anyio


def double(value: int) -> int:
    return 2 * value


def spin(_: int) -> int:
    while True:
        pass


def crash(_: int) -> int:
    ctypes.string_at(0)
    return 0


def exit_at_once(_: int) -> int:
    os._exit(3)


def hoard(_: int) -> int:
    return len(bytearray(2**31))


def process_id(_: int) -> int:
    return os.getpid()


def fail(value: int) -> int:
    raise ValueError("a secret of the page")


@pytest.fixture(scope="module")
def pool() -> Iterator[PagePool]:
    pool = PagePool(workers=2, memory_mib=512)
    yield pool
    pool.close()


async def test_results_come_back(pool: PagePool) -> None:
    assert await asyncio.gather(*(pool.run(double, n, timeout_s=60) for n in range(20))) == list(range(0, 40, 2))


@pytest.mark.parametrize(
    ("task", "error"),
    [(spin, PageTimeout), (crash, PageFailed), (exit_at_once, PageFailed), (hoard, PageFailed), (fail, PageFailed)],
)
async def test_a_bad_task_fails_alone(pool: PagePool, task: Callable[[int], int], error: type[Exception]) -> None:
    # What ends by itself must be named by its own end, however late a busy machine sees it.
    bad = asyncio.create_task(pool.run(task, 1, timeout_s=0.5 if task is spin else 60))
    good = [asyncio.create_task(pool.run(double, n, timeout_s=60)) for n in range(4)]
    with pytest.raises(error) as raised:
        await bad
    assert "secret" not in str(raised.value)
    assert [await task for task in good] == [0, 2, 4, 6]


async def test_a_worker_killed_while_idle_costs_nothing() -> None:
    pool = PagePool(workers=2, memory_mib=512)
    try:
        worker = await pool.run(process_id, 0, timeout_s=60)
        os.kill(worker, signal.SIGKILL)
        # The pool sees it some time later.
        for number in range(20):
            assert await pool.run(double, number, timeout_s=60) == 2 * number
            await asyncio.sleep(0.05)
    finally:
        pool.close()
    with pytest.raises(Unavailable):
        await pool.run(double, 1, timeout_s=60)


async def test_cancelling_frees_the_worker(pool: PagePool) -> None:
    stuck = [asyncio.create_task(pool.run(spin, n, timeout_s=100)) for n in range(2)]
    await asyncio.sleep(0.3)
    for task in stuck:
        task.cancel()
    assert await pool.run(double, 4, timeout_s=50) == 8
