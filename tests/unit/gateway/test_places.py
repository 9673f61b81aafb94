"""Three gateways and one slow engine: what is promised is what it does, whoever has the questions."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer
from redis.asyncio import Redis

from lab.goldens import virtual
from services.gateway.deadline import in_time
from services.gateway.places import KEY, MeshAdmission, Places
from services.gateway.run import Run
from services.gateway.settings import GatewaySettings
from services.gateway.shared import SharedStore
from services.gateway.speed import GeneratorSpeed
from services.kit.budget import Budget
from services.kit.errors import Overloaded
from services.kit.llm import Completion
from tests.load.fake_generator import Engine

pytestmark = pytest.mark.anyio

DEADLINE_S = 30.0
PROMPT, COMPLETION = 1_000, 7
RETRIEVAL_S = 0.7
SECONDS = 80.0
TIMES_ITS_RATE = 20
# Of gateways that begin anew, until the first questions have been measured.
START_S = 20.0


@dataclass
class Gateway:
    """What a gateway does with a question, over an engine that takes its time."""

    places: Places
    engine: Engine
    answered: list[float] = field(default_factory=list)
    cut: int = 0
    refused: int = 0

    async def ask(self) -> None:
        try:
            async with self.places.one():
                await self.answer()
        except Overloaded:
            self.refused += 1

    async def answer(self) -> None:
        run = Run(Budget(DEADLINE_S))
        async with in_time(run, self.places.speed, task="test"):
            await asyncio.sleep(RETRIEVAL_S)
            with run.generating():
                await self.engine.work(PROMPT, COMPLETION)
            run.completions["test"] = [Completion((), PROMPT, COMPLETION, "")]
            self.answered.append(virtual_now())
        self.cut += not run.completions


def virtual_now() -> float:
    return asyncio.get_running_loop().time() - virtual.BEGIN_S


def gateway(engine: Engine, client: Redis | None = None, **settings: Any) -> Gateway:
    configured = GatewaySettings(**{"max_deadline_s": DEADLINE_S} | settings)
    return Gateway(Places(GeneratorSpeed(1e-3, 0.04), SharedStore(client), configured), engine)


async def flood(gateways: list[Gateway], rate: float, weights: tuple[int, ...]) -> None:
    """Questions at random moments, on average so many a second, after one of each gateway's own."""
    for one in gateways:
        await one.answer()
    draw = random.Random(7)
    async with asyncio.TaskGroup() as group:
        while virtual_now() < SECONDS:
            await asyncio.sleep(draw.expovariate(rate))
            group.create_task(draw.choices(gateways, weights)[0].ask())


@dataclass
class Outcome:
    """Answers to those that the engine could have given, and what else became of questions."""

    share: float
    cut: int
    refused: int


def simulate(make: Callable[[Engine], list[Gateway]], engine: Engine, rate: float, weights: tuple[int, ...]) -> Outcome:
    async def main() -> Outcome:
        gateways = make(replace(engine))
        await flood(gateways, rate * TIMES_ITS_RATE, weights)
        within = sum(START_S <= at < SECONDS for one in gateways for at in one.answered)
        cut, refused = (sum(getattr(one, name) for one in gateways) for name in ("cut", "refused"))
        return Outcome(within / ((SECONDS - START_S) * rate), cut, refused)

    return virtual.run(main())


def with_a_store(engine: Engine) -> list[Gateway]:
    client = FakeAsyncRedis()
    return [gateway(engine, client) for _ in range(3)]


def told_how_many(engine: Engine) -> list[Gateway]:
    return [gateway(engine, gateways=3) for _ in range(3)]


def each_for_itself(engine: Engine) -> list[Gateway]:
    return [gateway(engine) for _ in range(3)]


# Each answers once a second: reading one after the other, or four at a time.
IN_TURN, BESIDE = Engine(prefill=1_000), Engine(decode=1.75, max_num_seqs=4)


@pytest.mark.parametrize(
    ("make", "engine", "rate", "weights"),
    [
        (with_a_store, BESIDE, 1, (1, 1, 1)),
        (with_a_store, Engine(prefill=250), 0.25, (1, 1, 1)),
        (with_a_store, IN_TURN, 1, (8, 1, 1)),
        (told_how_many, IN_TURN, 1, (1, 1, 1)),
    ],
)
def test_of_twenty_times_its_rate_the_engine_gets_its_rate_and_nobody_is_late(
    make: Callable[[Engine], list[Gateway]], engine: Engine, rate: float, weights: tuple[int, ...]
) -> None:
    outcome = simulate(make, engine, rate, weights)
    assert outcome.share == pytest.approx(1, abs=0.1)
    assert outcome.cut == 0
    assert outcome.refused > (TIMES_ITS_RATE - 5) * rate * SECONDS


def test_gateways_that_know_nothing_of_each_other_promise_the_engine_several_times() -> None:
    assert simulate(each_for_itself, Engine(prefill=150), 0.15, (1, 1, 1)).cut > 5


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def places(server: FakeServer | None = None, **settings: Any) -> Places:
    return gateway(IN_TURN, FakeAsyncRedis(server=server) if server else None, **settings).places


async def test_a_gateway_that_dies_gives_its_places_back(server: FakeServer) -> None:
    dead, alive = places(server, gateway_max_in_flight=1, max_deadline_s=1.0), places(server, gateway_max_in_flight=1)
    await dead.one().__aenter__()
    with pytest.raises(Overloaded, match="1 questions"):
        await alive.one().__aenter__()
    await asyncio.sleep(1.05)
    async with alive.one():
        assert alive.speed.in_flight_elsewhere == 0


async def test_a_store_that_is_away_stops_nobody(server: FakeServer) -> None:
    one = places(server, gateway_max_in_flight=6, gateways=3)
    async with one.one():
        server.connected = False
        async with one.one():
            assert (one.taken, one.speed.in_flight_elsewhere) == (6, 4), "two here, and as many in each other gateway"
            with pytest.raises(Overloaded):
                await one.one().__aenter__()


async def test_each_knows_how_many_share_the_engine(server: FakeServer) -> None:
    one, other = places(server), places(server)
    async with one.one(), other.one(), other.one():
        assert (other.speed.in_flight_elsewhere, other.taken) == (1, 3)
    assert one.taken == 0


@pytest.mark.parametrize(
    ("cost_s", "limit"), [(None, 10), (0.0, 15_000), (1.0, 15), (7.0, 3), (11.0, 2), (13.0, 1), (99.0, 1)]
)
def test_as_many_are_let_in_as_are_answered_in_time(cost_s: float | None, limit: int) -> None:
    one = places()
    if cost_s is not None:
        one.speed.observe_question(4 * cost_s, 4)
    assert one.limit == limit


def test_a_question_in_a_hurry_is_refused_where_others_are_before_it() -> None:
    speed = places().speed
    speed.observe_question(4.0, 1)
    speed.require(1.0)
    with speed.request():
        speed.require(8.0)
        with pytest.raises(Overloaded, match="more than 5 s") as refusal:
            speed.require(5.0)
    assert refusal.value.headers == {"retry-after": "4"}


async def test_only_questions_have_places_of_the_mesh() -> None:
    settings = GatewaySettings(gateways=1_000)
    admission = MeshAdmission(settings, GeneratorSpeed.configured(settings), SharedStore())
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with admission.place(0, gone, "/answer"), admission.place(0, gone, "/collections/notes/search"):
        for path in ("/v1/chat/completions", "/answer\n"):
            with pytest.raises(Overloaded):
                await admission.place(0, gone, path).__aenter__()
        assert admission.in_flight == 2


@pytest.mark.parametrize("during", ["taking", "holding"])
async def test_a_place_is_given_back_whenever_its_holder_is_cancelled(during: str, monkeypatch: Any) -> None:
    client, run, asked, held = FakeAsyncRedis(), SharedStore.run, asyncio.Event(), asyncio.Event()

    async def slow(store: SharedStore, *args: Any, **options: Any) -> Any:
        found = await run(store, *args, **options)
        asked.set()
        await asyncio.sleep(0.01)
        return found

    monkeypatch.setattr(SharedStore, "run", slow)
    places = Places(GeneratorSpeed(1e-3, 0.04), SharedStore(client), GatewaySettings(gateway_max_in_flight=4))

    async def hold() -> None:
        async with places.one():
            held.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await (asked if during == "taking" else held).wait()
    assert await client.zcard(KEY) == 1
    # Frameworks cancel again whatever waits while it ends.
    for _ in range(3):
        holder.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await holder
    await asyncio.sleep(0.05)
    assert await client.zcard(KEY) == 0
