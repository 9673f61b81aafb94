"""Searching the web for an answer: from every door, in time whatever the searcher does, named where it fails."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgi_lifespan import LifespanManager

from services.searcher.app import create_app
from services.searcher.settings import SearcherSettings
from tests.mesh.conftest import BAKERY, LATE_S, LIGHTHOUSE, Services, answer_to, events, missing
from tests.mesh.fakes import Faulty
from tests.mesh.test_faults import BUDGET_S, FAST_GENERATOR, REASONS
from tests.site import Site, reply

pytestmark = pytest.mark.anyio

QUERY = "Who designed the harbour lighthouse?"
ASKED = {"query": QUERY, "search": True, "strategy": "naive-rag"}
HERE = {"searcher_url": "http://searcher"} | FAST_GENERATOR


class Engine(httpx.AsyncBaseTransport):
    """A search engine that finds the site's pages for every query."""

    def __init__(self, site: Site) -> None:
        self.queries: list[str] = []
        self._site = site

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.queries.append(request.url.params["q"])
        hits = [{"url": self._site.url(path), "title": path, "content": "A summary."} for path in self._site.pages]
        return httpx.Response(200, json={"results": hits})


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().served() as running:
        running.pages["/lighthouse"] = reply(LIGHTHOUSE["page_result"].encode())
        yield running


@pytest.fixture
async def engine(services: Services, site: Site) -> AsyncIterator[Engine]:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    engine = Engine(site)
    settings = {"search_allow_networks": "127.0.0.1/32", "search_ports": str(site.port)}
    app = create_app(SearcherSettings.model_validate(settings), transport=engine, resolve=resolve)
    async with LifespanManager(app) as manager:
        services.faults["searcher"] = Faulty(manager.app)
        yield engine


@pytest.fixture
async def gateway(services: Services, engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with services.usual(**HERE, reader_threshold=1) as client:
        yield client


async def asked(gateway: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    return await answer_to(gateway, ASKED | body)


@pytest.mark.parametrize("strategy", ["naive-rag", "db3", "adaptive", "weknow", "electric-sheep"])
async def test_an_answer_rests_on_pages_of_the_web(
    services: Services, gateway: httpx.AsyncClient, site: Site, strategy: str
) -> None:
    body = await asked(gateway, strategy=strategy, query=f"Please tell me {QUERY.lower()}", trace=True)
    if strategy == "electric-sheep" and "web_search" not in body["timings"]:
        pytest.skip("the classifier takes the question for one that changes fast")
    (citation, *_) = [item for item in body["citations"] if "Marta Lindqvist" in item["text"]]
    assert (citation["page"], citation["page_url"]) == (0, site.url("/lighthouse"))
    assert body["timings"]["web_search"]["elapsed_ms"] > 0
    assert not {item["stage"] for item in missing(body)} & {"searcher", "search_engine", "page:0"}
    (stage,) = [event for event in body["trace"]["events"] if event["step"] == "web_search"]
    assert stage["detail"] == f"1 pages for {QUERY.lower()}"


async def test_nothing_leaves_the_mesh_unless_it_is_asked_for(gateway: httpx.AsyncClient, engine: Engine) -> None:
    for body in ({"search": False}, {"evidence": ["The lighthouse was designed by Marta Lindqvist."]}):
        assert "web_search" not in (await asked(gateway, **body))["timings"]
    assert engine.queries == []


async def test_pages_that_are_found_stand_behind_those_that_are_given(gateway: httpx.AsyncClient, site: Site) -> None:
    site.pages["/missing"] = reply(b"", status="404 Not Found")
    body = await asked(gateway, search_results=[BAKERY, BAKERY])
    pages = {item["page"]: item["page_url"] for item in body["citations"]}
    assert pages[2] == site.url("/lighthouse")
    assert {"stage": "page:3", "reason": "failed", "detail": "HTTP 404"} in body["degraded"]


async def test_a_page_without_room_for_its_text_is_named_and_the_next_is_read(
    gateway: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = dict(site.pages)
    site.pages = {"/long": reply(f"<p>{'A long page. ' * 400}</p>".encode()), **pages}
    room = len(BAKERY["page_result"]) + 4_000
    monkeypatch.setattr("services.gateway.steps.search.MAX_PAGES_CHARS", room)
    body = await asked(gateway, search_results=[BAKERY])
    assert ("page:1", "skipped") in {(item["stage"], item["reason"]) for item in body["degraded"]}
    assert any("Marta Lindqvist" in item["text"] and item["page"] == 2 for item in body["citations"])


async def test_without_room_for_a_page_the_web_is_not_searched(gateway: httpx.AsyncClient, engine: Engine) -> None:
    body = await asked(gateway, search_results=[BAKERY] * 50)
    assert ("web_search", "skipped") in {(item["stage"], item["reason"]) for item in body["degraded"]}
    assert engine.queries == []


async def test_a_mesh_without_a_searcher_says_so(services: Services) -> None:
    async with services.usual() as gateway:
        body = await asked(gateway, search_results=[LIGHTHOUSE])
        assert "searcher" not in (await gateway.get("/readyz")).json()["dependencies"]
    assert ("searcher", "unavailable") in {(item["stage"], item["reason"]) for item in body["degraded"]}
    assert body["answer"] == "Paris"


@pytest.mark.parametrize("fault", ["killed", "frozen"])
async def test_a_searcher_that_fails_costs_its_pages_and_no_time(
    services: Services, gateway: httpx.AsyncClient, fault: str
) -> None:
    services.faults["searcher"].fault = fault
    began = time.monotonic()
    body = await asked(gateway, search_results=[LIGHTHOUSE], budget_s=BUDGET_S)
    assert time.monotonic() - began < BUDGET_S + LATE_S
    assert ("searcher", REASONS[fault]) in {(item["stage"], item["reason"]) for item in body["degraded"]}
    assert (body["answer"], body["citations"][0]["page"]) == ("Paris", 0)


async def test_a_site_that_hangs_costs_its_page_alone(
    services: Services, gateway: httpx.AsyncClient, site: Site
) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await writer.wait_closed()

    site.pages["/silent"] = silent
    began = time.monotonic()
    # The search itself has to end first, on a busy machine too.
    budget_s = 2 * BUDGET_S
    body = await asked(gateway, budget_s=budget_s)
    assert time.monotonic() - began < budget_s + LATE_S
    assert ("page:1", "timeout") in {(item["stage"], item["reason"]) for item in body["degraded"]}
    assert any("Marta Lindqvist" in item["text"] for item in body["citations"])


async def test_a_hang_up_reaches_the_searcher(services: Services, gateway: httpx.AsyncClient) -> None:
    services.faults["searcher"].fault = "frozen"
    asking = asyncio.create_task(gateway.post("/answer", json=ASKED))
    async with asyncio.timeout(60):
        while not (await gateway.get("/metrics")).text.count('cragmesh_in_flight{service="gateway"} 1.0'):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.wait({asking})
        while not services.faults["searcher"].cancelled:
            await asyncio.sleep(0.01)


async def test_every_door_has_the_switch(services: Services, gateway: httpx.AsyncClient, engine: Engine) -> None:
    stream = await gateway.post("/answer", json=ASKED, headers={"accept": "text/event-stream"})
    assert ("web_search", "done") in {(data.get("stage"), data.get("status")) for _, data in events(stream.text)}
    chat = {"model": "cragmesh/naive-rag", "messages": [{"role": "user", "content": QUERY}], "search": True}
    message = (await gateway.post("/v1/chat/completions", json=chat)).json()["choices"][0]["message"]
    assert any("/lighthouse" in item["url_citation"]["url"] for item in message["annotations"])
    call = {"name": "answer", "arguments": {"question": QUERY, "search_web": True, "strategy": "naive-rag"}}
    tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"accept": "application/json, text/event-stream"}
    result = (await gateway.post("/mcp", json=tool, headers=headers)).json()["result"]["structuredContent"]
    assert any("/lighthouse" in source["url"] for source in result["sources"])
    assert len(engine.queries) == 1, "the second and the third time the searcher remembers"


async def test_the_searcher_is_one_of_the_services(
    services: Services, gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.gateway.health.FRESH_S", 0)
    assert (await gateway.get("/readyz")).json()["dependencies"]["searcher"] is True
    (seen,) = [item for item in (await gateway.get("/services")).json()["services"] if item["name"] == "searcher"]
    assert (seen["ready"], seen["model"], seen["in_flight"]) == (True, "searxng", 0)
    services.faults["searcher"].fault = "killed"
    assert (await gateway.get("/readyz")).json()["detail"] == "answers without: searcher"
