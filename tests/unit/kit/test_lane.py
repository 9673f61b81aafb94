"""The idle lane fills up what callers leave free, and gives way to them."""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest

from services.kit.admission import Admission
from services.kit.lane import GaveWay, IdleLane

pytestmark = pytest.mark.anyio


def caller(admission: Admission) -> AbstractAsyncContextManager[None]:
    return admission.place(0, asyncio.get_running_loop().create_future())


async def work(lane: IdleLane) -> str:
    try:
        async with lane.place():
            await asyncio.Event().wait()
    except GaveWay:
        return "gave way"
    raise AssertionError("nothing ends the work")


async def test_the_newest_gives_way_to_a_caller_and_the_lane_fills_up_again() -> None:
    admission = Admission(4)
    lane = IdleLane(admission, 2)
    first, second, third = (asyncio.create_task(work(lane)) for _ in range(3))
    assert await third == "gave way"
    async with caller(admission):
        assert await second == "gave way"
        waiting = asyncio.create_task(lane.wait())
        async with caller(admission):
            assert await first == "gave way"
        await waiting
        async with lane.place():
            pass


async def test_callers_have_every_place_whatever_the_lane_does() -> None:
    admission = Admission(3)
    lane = IdleLane(admission, 9)
    tasks = [asyncio.create_task(work(lane)) for _ in range(3)]
    await asyncio.sleep(0)
    async with AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(caller(admission))
        assert [await task for task in tasks] == ["gave way"] * 3


async def test_work_that_others_cancel_is_cancelled() -> None:
    lane = IdleLane(Admission(1), 1)
    task = asyncio.create_task(work(lane))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await lane.wait()


async def test_a_gateway_that_ends_cancels_what_is_giving_way() -> None:
    admission = Admission(1)
    lane = IdleLane(admission, 1)
    task = asyncio.create_task(work(lane))
    await asyncio.sleep(0)
    async with caller(admission):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
