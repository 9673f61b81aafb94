"""`GET /services`: how each service is, whatever state it is in."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from services.gateway import health
from services.gateway.health import Health, Services
from services.gateway.mesh import Mesh
from services.gateway.settings import GatewaySettings
from services.kit.admission import Admission
from services.kit.client import http_client

pytestmark = pytest.mark.anyio

Handler = Callable[[httpx.Request], httpx.Response]
PORTS = {8001: "retriever", 8002: "reranker", 8003: "classifier", 8004: "kg", 8005: "generator"}
# Readiness and metrics of each, and the generator's models.
ASKED = 2 * len(PORTS) + 1


def readiness(service: str, **fields: Any) -> dict[str, Any]:
    common = {"ready": True, "service": service, "device": "cpu", "precision": "bf16"}
    return common | {"model": f"{service}-model"} | fields


def well(request: httpx.Request) -> httpx.Response:
    name = PORTS[request.url.port or 0]
    if request.url.path == "/metrics":
        text = f'# HELP cragmesh_in_flight x\ncragmesh_in_flight{{service="{name}"}} 2.0\n'
        if name == "generator":
            text = 'vllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_running{engine="1"} 1.0\n'
            text += 'vllm:num_requests_waiting{engine="0"} 7.0\n'
        return httpx.Response(200, text=text)
    if name == "generator" and request.url.path == "/v1/models":
        return httpx.Response(200, json={"data": [{"id": "a-model"}, {"id": "an-adapter", "parent": "a-model"}]})
    return httpx.Response(200, json=readiness(name))


class Transport(httpx.AsyncBaseTransport):
    """Answers by a function; counts what it was asked."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[httpx.Request] = []
        self.seconds: dict[str, float] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        await asyncio.sleep(self.seconds.get(PORTS[request.url.port or 0], 0.0))
        return self.handler(request)


@asynccontextmanager
async def probing(transport: Transport, **settings: Any) -> AsyncIterator[Health]:
    configured = GatewaySettings(**settings)
    async with http_client(transport) as http:
        yield Health(Mesh.connect(configured, http), http, configured, Admission(5))


def instead(name: str, reply: httpx.Response | Exception) -> Handler:
    """All are well but one, which says this to everything."""

    def handler(request: httpx.Request) -> httpx.Response:
        if PORTS[request.url.port or 0] != name:
            return well(request)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return handler


def of(services: Services, name: str) -> dict[str, Any]:
    return next(service for service in services.services if service.name == name).model_dump()


async def test_each_says_what_it_runs_and_how_busy_it_is() -> None:
    async with probing(Transport(well)) as probes:
        services = await probes.services()
    assert [service.name for service in services.services] == ["gateway", *PORTS.values()]
    assert all(service.ready and service.reachable for service in services.services)
    reranker, generator, gateway = of(services, "reranker"), of(services, "generator"), of(services, "gateway")
    assert (reranker["model"], reranker["device"], reranker["precision"]) == ("reranker-model", "cpu", "bf16")
    assert (reranker["in_flight"], reranker["waiting"], reranker["breaker"]) == (2, None, "closed")
    assert (generator["model"], generator["in_flight"], generator["waiting"]) == ("a-model, an-adapter", 4, 7)
    assert (generator["device"], generator["precision"]) == ("cpu", "bf16")
    assert (gateway["in_flight"], gateway["limit"], gateway["detail"]) == (0, 5, "")


@pytest.mark.parametrize(
    ("reply", "reachable", "detail"),
    [
        (httpx.ConnectError("refused"), False, "no connection"),
        (httpx.RemoteProtocolError("not HTTP"), False, "no answer: RemoteProtocolError"),
        (httpx.Response(503, json=readiness("kg", ready=False, detail="loading")), True, "loading"),
        (httpx.Response(200, text="<html>a hotel's wifi</html>"), True, "answers HTTP 200, and not as a service"),
        (httpx.Response(502, content=b"\x00\xff{{{"), True, "answers HTTP 502, and not as a service"),
        (httpx.Response(200, content=b"x" * (health.MAX_REPLY_BYTES + 1)), True, "answers HTTP 200, and not"),
    ],
)
async def test_one_that_is_not_well_is_named(reply: httpx.Response | Exception, reachable: bool, detail: str) -> None:
    async with probing(Transport(instead("kg", reply))) as probes:
        services = await probes.services()
    kg = of(services, "kg")
    assert (kg["ready"], kg["reachable"]) == (False, reachable)
    assert detail in kg["detail"]
    assert of(services, "retriever")["ready"]
    assert of(services, "gateway") | {"ready": True, "detail": "answers without: kg"} == of(services, "gateway")


async def test_nobody_waits_for_a_frozen_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PROBE_S", 0.2)
    transport = Transport(well)
    transport.seconds = {"retriever": 3600.0, "generator": 3600.0}
    async with probing(transport) as probes:
        services = await probes.services()
    assert [service.name for service in services.services if not service.ready] == ["retriever", "generator"]
    assert of(services, "gateway")["detail"] == "answers without: retriever, generator"
    assert of(services, "retriever")["detail"] == "no answer within 0.2 s"


async def test_readiness_is_asked_past_the_breakers_and_tells_them_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FRESH_S", 0)
    settings = GatewaySettings(breaker_threshold=2, breaker_max_open_s=60)
    async with http_client(Transport(instead("kg", httpx.ConnectError("refused")))) as http:
        mesh = Mesh.connect(settings, http)
        probes = Health(mesh, http, settings, Admission(5))
        # A frozen engine lists its models all the same.
        for _ in range(2):
            mesh.generator.breaker.failed()
        for _ in range(3):
            _, *others = (await probes.services()).services
            assert {one.name: one.ready for one in others} == {name: name != "kg" for name in PORTS.values()}
            assert mesh.generator.breaker.state != "closed"
            assert mesh.kg.breaker.state == "closed"


async def test_many_who_look_at_once_share_one_look() -> None:
    transport = Transport(well)
    async with probing(transport) as probes:
        await asyncio.gather(*(probes.services() for _ in range(20)))
    assert len(transport.requests) == ASKED


async def test_a_look_goes_on_when_the_one_who_began_it_hangs_up() -> None:
    transport = Transport(well)
    transport.seconds = dict.fromkeys(PORTS.values(), 0.5)
    async with probing(transport) as probes:
        first = asyncio.create_task(probes.services())
        other = asyncio.create_task(probes.services())
        await asyncio.sleep(0.01)
        first.cancel()
        assert of(await other, "kg")["ready"]
        assert first.cancelled()
        await probes.close()
    assert len(transport.requests) == ASKED


async def test_a_generator_elsewhere_gets_its_key_and_needs_no_metrics() -> None:
    def hosted(request: httpx.Request) -> httpx.Response:
        if PORTS[request.url.port or 0] == "generator" and request.url.path != "/v1/models":
            return httpx.Response(404)
        return well(request)

    transport = Transport(hosted)
    async with probing(transport, generator_api_key="k3y") as probes:
        generator = of(await probes.services(), "generator")
    assert (generator["ready"], generator["in_flight"], generator["waiting"]) == (True, None, None)
    assert (generator["model"], generator["precision"]) == ("a-model, an-adapter", "")
    keys = {PORTS[request.url.port or 0]: request.headers.get("authorization") for request in transport.requests}
    assert keys.pop("generator") == "Bearer k3y"
    assert set(keys.values()) == {None}


@pytest.mark.parametrize(
    ("metrics", "value"),
    [
        ("cragmesh_in_flight 1e999\n", 2**31 - 1),
        ("cragmesh_in_flight NaN\n", None),
        ('cragmesh_in_flight{a="}"} 1\n', None),
        ("# cragmesh_in_flight 4\n", None),
        ("cragmesh_in_flight_total 4\n", None),
    ],
)
async def test_odd_metrics_do_no_harm(metrics: str, value: int | None) -> None:
    def odd(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=metrics) if request.url.path == "/metrics" else well(request)

    async with probing(Transport(odd)) as probes:
        assert of(await probes.services(), "kg")["in_flight"] == value
