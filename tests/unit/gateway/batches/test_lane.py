"""Two gateways and one store: batches fill up what the callers of both leave free."""

import asyncio

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from services.gateway.batches import lane
from services.gateway.batches.lane import MeshLane
from services.gateway.places import Places
from services.gateway.settings import GatewaySettings
from services.gateway.shared import SharedStore
from services.gateway.speed import GeneratorSpeed
from services.kit.admission import Admission
from services.kit.lane import GaveWay

pytestmark = pytest.mark.anyio


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
