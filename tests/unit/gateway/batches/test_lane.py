"""Batches fill up what the callers of one gateway, or of two with one store, leave free, and give way to them."""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from services.gateway.batches import lane
from services.gateway.batches.lane import GaveWay, IdleLane, MeshLane
from services.gateway.places import Places
from services.gateway.settings import GatewaySettings
from services.gateway.shared import SharedStore
from services.gateway.speed import GeneratorSpeed
from services.kit.admission import Admission

pytestmark = pytest.mark.anyio


def caller(admission: Admission) -> AbstractAsyncContextManager[None]:
    return admission.place(0, asyncio.get_running_loop().create_future())


async def held(lane: IdleLane) -> str:
    try:
        async with lane.place():
            await asyncio.Event().wait()
    except GaveWay:
        return "gave way"
    raise AssertionError("nothing ends the work")


async def test_the_newest_gives_way_to_a_caller_and_the_lane_fills_up_again() -> None:
    admission = Admission(4)
    lane = IdleLane(admission, 2)
    first, second, third = (asyncio.create_task(held(lane)) for _ in range(3))
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
    tasks = [asyncio.create_task(held(lane)) for _ in range(3)]
    await asyncio.sleep(0)
    async with AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(caller(admission))
        assert [await task for task in tasks] == ["gave way"] * 3


async def test_work_that_others_cancel_is_cancelled() -> None:
    lane = IdleLane(Admission(1), 1)
    task = asyncio.create_task(held(lane))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await lane.wait()


async def test_a_gateway_that_ends_cancels_what_is_giving_way() -> None:
    admission = Admission(1)
    lane = IdleLane(admission, 1)
    task = asyncio.create_task(held(lane))
    await asyncio.sleep(0)
    async with caller(admission):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.setattr(lane, "LOOK_S", 0.01)
    return FakeServer()


def store(server: FakeServer) -> SharedStore:
    return SharedStore(FakeAsyncRedis(server=server))


def lanes(server: FakeServer, level: int = 1) -> list[MeshLane]:
    return [MeshLane(Admission(4), level, store(server)) for _ in range(2)]


async def work(lane: MeshLane) -> str:
    try:
        async with lane.place():
            await asyncio.sleep(0.1)
    except GaveWay:
        return "gave way"
    return "done"


async def test_a_batch_gives_way_to_a_caller_of_another_gateway(server: FakeServer) -> None:
    here, _ = lanes(server)
    places = Places(GeneratorSpeed(1e-3, 0.04), store(server), GatewaySettings(gateway_max_in_flight=1))
    working = asyncio.create_task(work(here))
    await asyncio.sleep(0.05)
    async with places.one():
        assert await working == "gave way"
        waiting = asyncio.create_task(here.wait())
        await asyncio.sleep(0.05)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 5)
    assert await work(here) == "done"


@pytest.mark.parametrize(("level", "outcomes"), [(1, ["done", "gave way"]), (2, ["done", "done"])])
async def test_batches_of_two_gateways_share_the_level(server: FakeServer, level: int, outcomes: list[str]) -> None:
    assert sorted(await asyncio.gather(*map(work, lanes(server, level)))) == outcomes
    assert await asyncio.gather(*map(work, lanes(server, 2))) == ["done", "done"], "all leases are given back"


async def test_a_place_of_a_gateway_that_died_is_free_after_its_lease(server: FakeServer) -> None:
    dead, alive = lanes(server)
    await dead._take("lease", 0.05)
    assert await work(alive) == "gave way"
    await asyncio.wait_for(alive.wait(), 5)


async def test_each_gateway_counts_alone_while_the_store_is_away(server: FakeServer) -> None:
    server.connected = False
    assert await asyncio.gather(*map(work, lanes(server))) == ["done", "done"]
