"""All real apps in one process: every call goes over ASGI transports, with faults to switch on in front of each."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_lifespan import LifespanManager
from pydantic import HttpUrl

from services.classifier.app import create_app as create_classifier
from services.classifier.settings import ClassifierSettings
from services.gateway import confidence
from services.gateway.app import create_app as create_gateway
from services.gateway.calibration import STAGE
from services.gateway.confidence import Head
from services.gateway.settings import GatewaySettings
from services.gateway.speed import GeneratorSpeed
from services.kg.app import create_app as create_kg
from services.kg.settings import KgSettings
from services.kit.caution import COSTS
from services.reranker.app import create_app as create_reranker
from services.reranker.settings import RerankerSettings
from services.retriever.app import create_app as create_retriever
from services.retriever.settings import RetrieverSettings
from tests.mesh.fakes import FakeGenerator, Faulty

HOSTS = {
    "retriever_url": "http://retriever",
    "reranker_url": "http://reranker",
    "classifier_url": "http://classifier",
    "kg_url": "http://kg",
    "generator_url": "http://generator",
}

NOWHERE = Path("no/such/folder")
# What a busy machine takes to wake this process for a reply that left in time.
LATE_S = 1.0


class Router(httpx.AsyncBaseTransport):
    """Sends each request to the application of its host."""

    def __init__(self, apps: dict[str, Faulty]) -> None:
        self._apps = apps
        self._transports = {host: httpx.ASGITransport(app, raise_app_exceptions=False) for host, app in apps.items()}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._apps[request.url.host].fault == "killed":
            raise httpx.ConnectError("connection refused", request=request)
        return await self._transports[request.url.host].handle_async_request(request)


class Elsewhere(httpx.AsyncBaseTransport):
    """How applications that outlive a test reach those of the test that runs."""

    def __init__(self) -> None:
        self.current: Router | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.current is None:
            raise httpx.ConnectError("no test runs", request=request)
        return await self.current.handle_async_request(request)


@pytest.fixture(autouse=True)
def unfitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No confidence that is shipped, or was fitted on this machine, weighs what the scripted generator says."""
    monkeypatch.setattr(confidence, "load", dict)


@dataclass
class Services:
    """The real services and a scripted generator, each behind a switch for faults; gateways are made on top."""

    faults: dict[str, Faulty]
    generator: FakeGenerator

    @asynccontextmanager
    async def gateway_app(self, **settings: Any) -> AsyncIterator[Any]:
        # The page's files are read and compressed for each gateway, which takes longer than most tests.
        given: dict[str, Any] = HOSTS | {"confidence_dir": NOWHERE, "page": False} | settings
        async with LifespanManager(create_gateway(GatewaySettings(**given), transport=Router(self.faults))) as manager:
            yield manager.app

    @asynccontextmanager
    async def gateway(self, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
        async with self.gateway_app(**settings) as app, reaching(app) as client:
            yield client

    @asynccontextmanager
    async def usual_app(self, **settings: Any) -> AsyncIterator[Any]:
        """As `gateway_app`, but for routes and metrics, which are those of all tests of these settings."""
        app, services = built_once(**settings)
        services.current = Router(self.faults)
        async with LifespanManager(app) as manager:
            state = manager._state
            vars(state["mesh"].speed).update(vars(GeneratorSpeed.configured(state["settings"])))
            yield manager.app

    @asynccontextmanager
    async def usual(self, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
        async with self.usual_app(**settings) as app, reaching(app) as client:
            yield client

    def client(self, name: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.faults[name], raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=f"http://{name}", timeout=60)

    async def kg(self, path: str, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        """The graph's reply, asked without a gateway."""
        async with self.client("kg") as client:
            return await client.post(f"/kg/{path}", json=body, headers=headers)


def reaching(app: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=60)


@cache
def built_once(**settings: Any) -> tuple[Any, Elsewhere]:
    """A gateway's application, and how it reaches others: its routes take longer to build than most tests."""
    services = Elsewhere()
    # What a classification takes on a busy machine is more than it may take of a user's time.
    usual: dict[str, Any] = HOSTS | {"confidence_dir": NOWHERE, "page": False, "classify_cap_s": 2}
    return create_gateway(GatewaySettings(**usual | settings), transport=services), services


def alone(reply: Callable[[dict[str, Any]], str], **apps: Any) -> Services:
    """A scripted generator and these applications; of the other services none is there."""
    generator = FakeGenerator(reply)
    faults = {"generator": Faulty(generator.app)}
    for name in (key.removesuffix("_url") for key in HOSTS if key != "generator_url"):
        faults[name] = Faulty(apps.get(name, generator.app))
        faults[name].fault = "" if name in apps else "killed"
    return Services(faults, generator)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Session-wide here, since loading the models once is most of what these tests cost."""
    return "asyncio"


@pytest.fixture(scope="session")
def to_generator() -> Elsewhere:
    return Elsewhere()


@pytest.fixture(scope="session")
def demo_graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store that the first service over it fills with the demo graph."""
    return f"sqlite:///{tmp_path_factory.mktemp('kg') / 'demo.sqlite'}"


@pytest.fixture(scope="session")
async def running(
    to_generator: Elsewhere, demo_graph: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Any]]:
    async with AsyncExitStack() as stack:
        apps = {
            "retriever": create_retriever(
                RetrieverSettings(qdrant_path=tmp_path_factory.mktemp("collections"), threads=1, page_timeout_s=20)
            ),
            "reranker": create_reranker(RerankerSettings(threads=1)),
            "classifier": create_classifier(ClassifierSettings(threads=1)),
            "kg": create_kg(
                KgSettings(kg_database=demo_graph, generator_url=HttpUrl(HOSTS["generator_url"]), threads=1),
                transport=to_generator,
            ),
        }
        managers = {
            name: await stack.enter_async_context(LifespanManager(app, startup_timeout=300, shutdown_timeout=120))
            for name, app in apps.items()
        }
        yield {name: manager.app for name, manager in managers.items()}


async def fill(retriever: Any, name: str, *documents: Mapping[str, Any]) -> None:
    """Make a collection of these documents."""
    transport = httpx.ASGITransport(retriever)
    async with httpx.AsyncClient(transport=transport, base_url="http://retriever", timeout=60) as client:
        assert (await client.put(f"/collections/{name}", json={})).status_code == 201
        reply = await client.post(f"/collections/{name}/documents", json={"documents": documents})
        assert reply.json()["added"] == len(documents)


@pytest.fixture
def services(running: dict[str, Any], to_generator: Elsewhere) -> Services:
    generator = FakeGenerator()
    faults = {name: Faulty(app) for name, app in running.items()} | {"generator": Faulty(generator.app)}
    to_generator.current = Router({"generator": faults["generator"]})
    return Services(faults, generator)


@pytest.fixture
async def gateway(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with services.usual() as client:
        yield client


def page(title: str, *paragraphs: str) -> dict[str, str]:
    """A search result around a small but real page."""
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    html = (
        f"<!DOCTYPE html><html><head><title>{title}</title><script>var tracking = 'ignore me';</script></head><body>"
        f"<nav><a href='/'>Home</a> <a href='/about'>About</a></nav><main><article><h1>{title}</h1>{body}</article>"
        "</main><footer>All rights reserved</footer></body></html>"
    )
    return {"page_name": title, "page_url": f"https://example.org/{len(html)}", "page_snippet": "", "page_result": html}


async def answer_to(gateway: httpx.AsyncClient, question: dict[str, Any]) -> dict[str, Any]:
    reply = await gateway.post("/answer", json=question)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def head(threshold: float = 0.5, *, intercept: float = 0.0, **weights: float) -> Head:
    """A fitted head of these signals, each average at 0.5."""
    halves = (0.5,) * len(weights)
    return Head(
        names=tuple(weights),
        means=halves,
        scales=halves,
        weights=tuple(weights.values()),
        intercept=intercept,
        thresholds=dict.fromkeys(COSTS, threshold),
    )


def missing(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What an answer lacked, but for a confidence: none is fitted for the scripted generator."""
    return [item for item in body["degraded"] if item["stage"] != STAGE]


LIGHTHOUSE = page(
    "Harbour lighthouse",
    "The harbour lighthouse stands on the northern mole and was built between 1861 and 1864 from local granite. "
    "Its lantern rises 43 metres above the sea, and its beam can be seen from 27 kilometres away on a clear night.",
    "The lighthouse was designed by Marta Lindqvist, who also drew the plans of the customs house next to the quay. "
    "Keepers lived in the tower with their families until 1957, when the light was made automatic.",
)
BAKERY = page(
    "The old bakery",
    "The old bakery on Mill Street sells rye bread, cinnamon rolls and a plum cake that people travel for. "
    "It opened in 1923 and has stayed in the same family for four generations, all of them named Oskar.",
)

Reply = Callable[[dict[str, Any]], str]


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Server-sent events as (name, data)."""
    parsed = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n", 1)
        parsed.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return parsed
