"""A real SearXNG over a site that is served here: `make test-search` installs one and names it.

Everything but what it is pointed at is as in production: its process, its JSON API, our adapter, our public settings.
"""

import asyncio
import contextlib
import json
import os
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import yaml
from asgi_lifespan import LifespanManager

from services.searcher.app import create_app
from services.searcher.settings import SearcherSettings
from tests.mesh.conftest import LIGHTHOUSE
from tests.ports import free_port
from tests.site import Site, reply

PROGRAM = "CRAGMESH_TEST_SEARXNG"
ROOT = Path(__file__).resolve().parents[2]
START_S = 120

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not os.environ.get(PROGRAM), reason=f"{PROGRAM} names no SearXNG: make test-search"),
]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().served() as running:
        hits = [
            {"address": "http://169.254.169.254/latest/meta-data/", "name": "Metadata", "text": "Secrets."},
            {
                "address": running.url("/lighthouse", "127.0.0.1"),
                "name": "Harbour <b>lighthouse</b>",
                "text": "A light.",
            },
        ]
        running.pages["/find"] = reply(json.dumps({"hits": hits}).encode(), kind="application/json")
        running.pages["/lighthouse"] = reply(LIGHTHOUSE["page_result"].encode())
        yield running


@pytest.fixture
async def searxng(site: Site, tmp_path: Path) -> AsyncIterator[str]:
    """The root of one with our own settings, and one engine: the site."""
    settings = yaml.safe_load((ROOT / "deploy/searxng/settings.yml").read_text())
    engine = {
        "name": "site",
        "engine": "json_engine",
        "shortcut": "st",
        "categories": "general",
        "enable_http": True,
        "search_url": f"http://127.0.0.1:{site.port}/find?q={{query}}",
        "results_query": "hits",
        "url_query": "address",
        "title_query": "name",
        "content_query": "text",
    }
    settings["use_default_settings"] = {"engines": {"keep_only": ["site"]}}
    settings["engines"] = [engine]
    settings["server"]["secret_key"] = "of a test"  # noqa: S105
    file = tmp_path / "settings.yml"
    file.write_text(yaml.safe_dump(settings))
    port = free_port()
    argv = (os.environ[PROGRAM], "--port", str(port), "--settings", str(file))
    # SearXNG itself reads them by this name.
    environment = os.environ | {"SEARXNG_SETTINGS_PATH": str(file)}
    process = await asyncio.create_subprocess_exec(*argv, env=environment, stdout=DEVNULL, stderr=DEVNULL)
    try:
        await _started(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _started(process: Process, url: str) -> None:
    async with asyncio.timeout(START_S), httpx.AsyncClient(trust_env=False) as client:
        while process.returncode is None:
            try:
                if (await client.get(f"{url}/healthz")).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            await asyncio.sleep(0.2)
    raise RuntimeError("SearXNG did not start")


async def test_a_question_goes_through_a_real_metasearch_engine(site: Site, searxng: str) -> None:
    given = {"searxng_url": searxng, "search_allow_networks": "127.0.0.1/32", "search_ports": f"80,{site.port}"}
    async with LifespanManager(create_app(SearcherSettings.model_validate(given))) as manager:
        transport = httpx.ASGITransport(manager.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://searcher") as client:
            response = await client.post("/search", json={"query": "Who designed the harbour lighthouse?"})
    body = response.json()
    (result,) = body["search_results"]
    assert (result["page_name"], result["page_snippet"]) == ("Harbour lighthouse", "A light.")
    assert "Marta Lindqvist" in result["page_result"]
    assert body["degraded"] == []
    assert [path.partition("?")[0] for path in site.paths] == ["/find", "/lighthouse"]
