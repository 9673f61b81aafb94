"""Keys and rates at the gateway, the mesh's token inside: over the real applications."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from services.classifier.app import create_app as create_classifier
from services.classifier.settings import ClassifierSettings
from services.gateway.access import operations
from services.kg.app import create_app as create_kg
from services.kg.settings import KgSettings
from services.kit.deadline import MESH_TOKEN_HEADER, PROBES
from services.reranker.app import create_app as create_reranker
from services.reranker.settings import RerankerSettings
from services.retriever.app import create_app as create_retriever
from services.retriever.settings import RetrieverSettings
from services.searcher.app import create_app as create_searcher
from services.searcher.settings import SearcherSettings
from tests.keys import write_keys
from tests.mesh.conftest import LIGHTHOUSE, Services
from tests.mesh.fakes import Faulty

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

QUESTION = {"query": "When was the harbour lighthouse built?", "search_results": [LIGHTHOUSE]}


async def test_keys_are_asked_for_before_the_body_is_looked_at(
    services: Services, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with services.gateway(api_keys_file=write_keys(tmp_path / "keys", ("alice", "bob"), bob=6)) as gateway:

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
        for method in ("PUT", "DELETE", "PATCH"):
            assert (await gateway.request(method, "/answer")).status_code == 401, method
        metrics = (await gateway.get("/metrics")).text
    written = caplog.text + capsys.readouterr().out + metrics
    assert "cm_" not in written
    assert 'cragmesh_requests_cut_short_total{cause="unauthorized",service="gateway"} 6.0' in metrics
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


TOKEN = "t0ken"  # noqa: S105 - a test's
INSIDE: dict[str, Callable[[], FastAPI]] = {
    "retriever": lambda: create_retriever(RetrieverSettings(mesh_token=TOKEN, threads=1)),
    "reranker": lambda: create_reranker(RerankerSettings(mesh_token=TOKEN, threads=1)),
    "classifier": lambda: create_classifier(ClassifierSettings(mesh_token=TOKEN, threads=1)),
    "kg": lambda: create_kg(KgSettings(mesh_token=TOKEN, threads=1)),
    "searcher": lambda: create_searcher(SearcherSettings(mesh_token=TOKEN)),
}


def routes(app: FastAPI) -> set[tuple[str, str]]:
    """(method, path) of all that an application answers, with something in place of parameters."""
    return {(method, re.sub(r"{[^}]*}", "any", path)) for method, path in operations(app.routes)}


@pytest.mark.parametrize("name", INSIDE)
async def test_every_route_but_the_probes_asks_for_the_meshs_token(name: str) -> None:
    # Refused before the application is reached, so that nothing need be loaded.
    app = INSIDE[name]()
    known = routes(app)
    assert {path for _, path in known} >= PROBES
    assert any(method == "POST" for method, _ in known)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{name}") as client:
        for method, path in known | {(method, "/no/such/route") for method in ("GET", "HEAD", "POST", "DELETE", "PUT")}:
            for headers in ({}, {MESH_TOKEN_HEADER: "no"}, {MESH_TOKEN_HEADER: ""}):
                status = (await client.request(method, path, headers=headers)).status_code
                assert (status == 401) is (path not in PROBES), f"{method} {path}: {status}"
        known_by_token = await client.get("/no/such/route", headers={MESH_TOKEN_HEADER: TOKEN})
        assert known_by_token.status_code == 404


async def test_a_mesh_with_a_token_answers(services: Services, running: dict[str, FastAPI]) -> None:
    """Every client of a service sends it, and the generator, who may be somebody else, never gets it."""
    sent: dict[str, set[str | None]] = {}

    def listen(name: str, app: ASGIApp) -> ASGIApp:
        async def listening(scope: Scope, receive: Receive, send: Send) -> None:
            headers = {key.decode(): value.decode() for key, value in scope["headers"]}
            sent.setdefault(name, set()).add(headers.get(MESH_TOKEN_HEADER))
            await app(scope, receive, send)

        return listening

    # A searcher that finds nothing is asked all the same.
    services.faults["searcher"] = Faulty(Starlette())
    for name, fault in services.faults.items():
        fault.app = listen(name, fault.app)
    async with services.gateway(mesh_token=TOKEN, threads=1, searcher_url="http://searcher") as gateway:
        # The gateway itself asks its callers for keys, and not for this.
        answered = await gateway.post("/answer", json=QUESTION | {"strategy": "db3", "search": True})
    assert answered.status_code == 200
    assert sent == {name: {TOKEN} for name in INSIDE} | {"generator": {None}}
