"""Keys and rates at the gateway, the mesh's token inside: over the real applications."""

import json
import logging
from pathlib import Path

import httpx
import pytest
from asgi_lifespan import LifespanManager

from services.gateway.keys import Key, digest, write
from services.kit.deadline import MESH_TOKEN_HEADER
from services.reranker.app import create_app as create_reranker
from services.reranker.settings import RerankerSettings
from tests.mesh.conftest import LIGHTHOUSE, Services

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

QUESTION = {"query": "When was the harbour lighthouse built?", "search_results": [LIGHTHOUSE]}


async def test_keys_are_asked_for_before_the_body_is_looked_at(
    services: Services, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "api_keys"
    write(file, (Key("alice", digest("cm_alice")), Key("bob", digest("cm_bob"), per_minute=6)))
    async with services.gateway(api_keys_file=file) as gateway:

        async def ask(key: str | None, content: bytes = json.dumps(QUESTION).encode()) -> httpx.Response:
            headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
            return await gateway.post("/answer", content=content, headers=headers)

        assert (await ask("cm_alice")).status_code == 200
        for key in (None, "cm_wrong", "cm_alice2"):
            refused = await ask(key, b"{" * 1_000_000)
            assert refused.status_code == 401, "and not 400: nothing was parsed"
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.headers["www-authenticate"] == "Bearer"
            assert refused.json()["title"] == "Unauthorized"
        statuses = [(await ask("cm_bob")).status_code for _ in range(10)]
        assert statuses == [200] + [429] * 9
        limited = await ask("cm_bob")
        assert limited.json()["title"] == "Rate limited"
        assert int(limited.headers["retry-after"]) >= 1
        # Others are not held to it, and what needs no key is still to be had.
        assert (await ask("cm_alice")).status_code == 200
        assert (await gateway.get("/strategies")).status_code == 200
        metrics = (await gateway.get("/metrics")).text
    written = caplog.text + capsys.readouterr().out + metrics
    assert "cm_" not in written
    assert 'cragmesh_requests_cut_short_total{cause="unauthorized",service="gateway"} 3.0' in metrics
    assert 'cragmesh_requests_cut_short_total{cause="rate limited",service="gateway"} 10.0' in metrics


async def test_an_answer_is_counted_by_what_it_was(services: Services) -> None:
    async with services.gateway() as gateway:
        answered = (await gateway.post("/answer", json=QUESTION | {"strategy": "naive-rag"})).json()
        metrics = (await gateway.get("/metrics")).text
    labels = f'kind="{answered["kind"]}",service="gateway",source="{answered["source"]}",strategy="naive-rag"'
    assert f"cragmesh_answers_total{{{labels}}} 1.0" in metrics
    prompt = float(answered["usage"]["prompt_tokens"])
    assert prompt > 0
    assert f'cragmesh_llm_tokens_total{{kind="prompt",service="gateway"}} {prompt}' in metrics
    assert 'cragmesh_budget_left_seconds_bucket{le="0.0",service="gateway",strategy="naive-rag"} 0.0' in metrics
    assert 'cragmesh_budget_left_seconds_count{service="gateway",strategy="naive-rag"} 1.0' in metrics
    assert 'cragmesh_in_flight{service="gateway"} 0.0' in metrics


async def test_a_service_takes_calls_from_who_knows_the_meshs_token() -> None:
    app = create_reranker(RerankerSettings(mesh_token="t0ken"))  # noqa: S106
    asked = {"query": "lighthouse", "documents": ["a lighthouse", "a bakery"]}
    async with LifespanManager(app, startup_timeout=60) as manager:
        transport = httpx.ASGITransport(manager.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://reranker") as client:
            assert (await client.post("/rerank", json=asked)).status_code == 401
            assert (await client.post("/rerank", json=asked, headers={MESH_TOKEN_HEADER: "no"})).status_code == 401
            assert (await client.post("/rerank", json=asked, headers={MESH_TOKEN_HEADER: "t0ken"})).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
