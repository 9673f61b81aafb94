"""The searcher whole: an engine and a site served here, the public settings, and what is said of what failed."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from services.searcher.app import create_app
from services.searcher.settings import SearcherSettings
from tests.site import Site, for_ever, moved, reply
from tests.unit.conftest import asking
from tests.unit.searcher.fetching import HERE

pytestmark = pytest.mark.anyio

BODY = b"<html><body><p>Lit in 1864.</p></body></html>"


class Engine(httpx.AsyncBaseTransport):
    """Search engine whose hits a test sets; `status` and `seconds` are its faults."""

    def __init__(self) -> None:
        self.hits: list[dict[str, Any]] = []
        self.requests: list[httpx.Request] = []
        self.status = 200
        self.seconds = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        await asyncio.sleep(self.seconds)
        return httpx.Response(self.status, json={"results": self.hits})


@pytest.fixture
def engine() -> Engine:
    return Engine()


@asynccontextmanager
async def searching(site: Site, engine: Engine, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    async def resolve(host: str, _port: int) -> list[str]:
        return ["127.0.0.1"] if host == "inside.test" else [HERE]

    given = {"search_allow_networks": f"{HERE}/32", "search_ports": f"80,{site.port}"} | settings
    app = create_app(SearcherSettings.model_validate(given), transport=engine, resolve=resolve)
    async with asking(app) as client:
        yield client


def listed(site: Site, *paths: str, host: str = "site.test") -> list[dict[str, Any]]:
    return [{"url": site.url(path, host), "title": f"Page {path}", "content": f"About {path}"} for path in paths]


async def search(client: httpx.AsyncClient, deadline_s: float = 30.0, **body: Any) -> dict[str, Any]:
    headers = {"x-deadline-ms": str(int(deadline_s * 1000))}
    response = await client.post("/search", json={"query": "when was the light lit?"} | body, headers=headers)
    assert response.status_code == 200, response.text
    return dict(response.json())


def lacking(body: dict[str, Any]) -> dict[str, str]:
    return {item["stage"]: item["reason"] for item in body["degraded"]}


async def test_a_question_brings_pages_in_the_shape_of_crag(site: Site, engine: Engine) -> None:
    site.pages |= {"/a": reply(BODY), "/b": reply(b"one\n\ntwo <3", kind="text/plain")}
    engine.hits = listed(site, "/a", "/b", "/a")
    async with searching(site, engine, search_user_agent="Ours/1 (us@example.org)") as client:
        body = await search(client)
        metrics = (await client.get("/metrics")).text
        ready = (await client.get("/readyz")).json()
    first, second = body["search_results"]
    assert (first["page_name"], first["page_snippet"]) == ("Page /a", "About /a")
    assert (first["page_url"], first["page_result"].encode()) == (site.url("/a"), BODY)
    assert "<p>two &lt;3</p>" in second["page_result"]
    assert (body["queries"], body["degraded"]) == (["when was the light lit?"], [])
    assert {request["user-agent"] for request in site.asked} == {"Ours/1 (us@example.org)"}
    assert engine.requests[0].headers["user-agent"] == "Ours/1 (us@example.org)"
    assert 'cragmesh_stage_seconds_count{part="elapsed",service="searcher",stage="fetch"} 1.0' in metrics
    assert (ready["ready"], ready["model"]) == (True, "searxng")


async def test_what_a_page_lacks_is_named_and_its_summary_stays(site: Site, engine: Engine) -> None:
    site.pages |= {
        "/good": reply(BODY),
        "/inside": moved(site.url("/good", "inside.test")),
        "/slow": lambda writer: for_ever(writer, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x", 0.05),
        "/long": reply(b"<p>" + b"x" * 40_000),
        "/robots.txt": reply(b"User-agent: *\nDisallow: /closed"),
    }
    engine.hits = listed(site, "/missing", "/inside", "/slow", "/long", "/closed", "/good")
    async with searching(site, engine, search_page_cap_s=2.0, search_page_kib=16) as client:
        body = await search(client, top_n=6)
        metrics = (await client.get("/metrics")).text
    assert 'cragmesh_degraded_total{reason="skipped",service="searcher",stage="page"} 3.0' in metrics
    assert lacking(body) == {
        "page:0": "failed",
        "page:1": "skipped",
        "page:2": "timeout",
        "page:3": "skipped",
        "page:4": "skipped",
    }
    results = body["search_results"]
    assert [item["page_snippet"] for item in results] == [hit["content"] for hit in engine.hits]
    assert [len(item["page_result"]) for item in results] == [0, 0, 0, 16_384, 0, len(BODY)]


async def test_a_fault_of_our_own_costs_its_page(site: Site, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("services.searcher.search.decoded", broken)
    site.pages |= {"/a": reply(BODY)}
    engine.hits = listed(site, "/a")
    async with searching(site, engine) as client:
        body = await search(client)
    assert lacking(body) == {"page:0": "failed"}
    assert "secret" not in str(body)


async def test_hits_that_may_not_be_asked_make_room(site: Site, engine: Engine) -> None:
    site.pages |= {"/a": reply(BODY)}
    tricks = ["http://169.254.169.254/", "file:///etc/passwd", "http://user@site.test/", "javascript:alert(1)", ""]
    engine.hits = [{"url": url} for url in tricks] + listed(site, "/x", host="bad.test") + listed(site, "/a")
    async with searching(site, engine, search_deny_domains="bad.test,worse.test") as client:
        body = await search(client, top_n=1)
    assert [item["page_url"] for item in body["search_results"]] == [site.url("/a")]


async def test_the_deadline_holds_with_pages_that_never_come(site: Site, engine: Engine) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await writer.wait_closed()

    site.pages |= {"/a": reply(BODY), "/b": silent}
    engine.hits = listed(site, "/a", "/b")
    began = time.monotonic()
    async with searching(site, engine) as client:
        body = await search(client, 1.0)
        assert time.monotonic() - began < 10
        assert lacking(body) == {"page:1": "timeout"}
        assert body["search_results"][0]["page_result"].encode() == BODY


@pytest.mark.parametrize(
    ("status", "seconds", "reason"),
    [(500, 0, "error"), (403, 0, "error"), (429, 0, "overloaded"), (503, 0, "unavailable"), (200, 99, "timeout")],
)
async def test_an_engine_that_fails_is_named(
    site: Site, engine: Engine, status: int, seconds: float, reason: str
) -> None:
    engine.status, engine.seconds = status, seconds
    async with searching(site, engine, search_engine_cap_s=0.3, breaker_threshold=1) as client:
        body = await search(client)
        ready = await client.get("/readyz")
    assert (lacking(body), body["search_results"]) == ({"search_engine": reason}, [])
    assert ready.status_code == (503 if reason == "unavailable" else 200), "it has to answer, whatever it answers"
    assert ready.json()["ready"] or ready.json()["detail"] == "the search engine does not answer"


async def test_the_cache_answers_the_second_time(site: Site, engine: Engine, tmp_path: Any) -> None:
    site.pages |= {"/a": reply(BODY)}
    engine.hits = listed(site, "/a")
    for cached in (0, 1):
        async with searching(site, engine, search_cache_file=str(tmp_path / "pages.sqlite")) as client:
            body = await search(client)
        assert body["cached_pages"] == cached
        assert body["search_results"][0]["page_result"].encode() == BODY
    assert (len(engine.requests), site.paths) == (1, ["/a"])


async def test_two_queries_take_turns(site: Site, engine: Engine) -> None:
    site.pages |= {f"/{name}": reply(BODY) for name in "abcd"}
    engine.hits = listed(site, "/a", "/b")
    async with searching(site, engine, search_queries=2) as client:
        body = await search(client)
    assert body["queries"] == ["when was the light lit?", "light lit"]
    assert len(engine.requests) == 2
    assert len(body["search_results"]) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"search_user_agent": "two\r\nlines"}, {"search_user_agent": ""}, {"search_allow_domains": "not a domain"},
        {"search_allow_networks": "10.0.0.0/99"}, {"search_ports": "80,70000"}, {"search_engine": "another"},
    ],
)  # fmt: skip
def test_settings_are_checked(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        SearcherSettings.model_validate(settings)


def test_the_environment_names_lists_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_SEARCH_ALLOW_DOMAINS", "Example.org, debian.org")
    monkeypatch.setenv("CRAGMESH_SEARCH_PORTS", "443")
    monkeypatch.setenv("CRAGMESH_SEARCH_PROXY", "")
    settings = SearcherSettings()
    assert (settings.search_allow_domains, settings.search_ports) == (("example.org", "debian.org"), (443,))
    assert settings.search_proxy is None
