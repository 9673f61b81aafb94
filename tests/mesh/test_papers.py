"""`POST /papers` over the real retriever and reranker: documents come in, the right one comes out first."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgi_lifespan import LifespanManager

from lab.papers.collect import index
from lab.papers.data import Text
from lab.papers.in_process import mesh_of
from services.gateway.settings import GatewaySettings
from services.retriever.app import create_app
from services.retriever.settings import RetrieverSettings
from tests.mesh.conftest import Services
from tests.mesh.fakes import Faulty

pytestmark = pytest.mark.anyio

DOCUMENTS = {
    "tides": Text(
        "Tides in a harbour",
        "The gravity of the <b>moon</b> raises two bulges of water on opposite sides of the earth. A harbour turns "
        "through both of them each day, see https://example.org/moon, and so has two high waters.",
    ),
    "surge": Text(
        "Storm surges",
        "Wind piles up water against a coast and low pressure lifts it further; sea walls are built to the height that "
        "is reached once in a thousand years.",
    ),
    "bread": Text(
        "Sour dough",
        "Rye flour and water are left to ferment for days. The dough rises slowly, and the loaf keeps for a week.",
    ),
    "bridges": Text(
        "Suspension bridges in wind",
        "A deck sheds vortices, and where their rhythm is that of the deck it sways. Trusses and dampers prevent it.",
    ),
    "empty": Text("", "<p> </p>"),
}
# The same paper under another id, as a preprint and its print are: which comes first is a matter of rounding.
DOCUMENTS["tides-in-print"] = DOCUMENTS["tides"]
TIDES = {"tides", "tides-in-print"}
QUESTION = {"query": "Why are there <i>two</i> high waters a day?", "body": "<p>I live at the coast.</p>"}


@pytest.fixture(scope="module")
async def retriever(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    settings = RetrieverSettings(qdrant_path=tmp_path_factory.mktemp("collections"), page_workers=1, threads=1)
    app = create_app(settings)
    async with mesh_of({"retriever": app}, GatewaySettings()) as (mesh, _):
        counted: list[int] = []
        info = await index(mesh, "village", DOCUMENTS, counted.append)
        assert (info.documents, sum(counted)) == (5, 5)
        # The same again changes nothing.
        assert await index(mesh, "village", DOCUMENTS, counted.append) == info
    async with LifespanManager(create_app(settings), startup_timeout=300, shutdown_timeout=120) as manager:
        yield manager.app


@pytest.fixture
async def gateway(services: Services, retriever: Any) -> AsyncIterator[httpx.AsyncClient]:
    services.faults["retriever"] = Faulty(retriever)
    services.generator.reply = lambda body: (
        "lunar gravity, tidal bulge" if "structured_outputs" in body else "The moon raises two bulges of water."
    )
    async with services.usual() as client:
        yield client


async def asked(gateway: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    reply = await gateway.post("/papers", json=QUESTION | {"collection": "village"} | fields)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def test_the_document_that_answers_is_first(gateway: httpx.AsyncClient) -> None:
    found = await asked(gateway, top_n=3)
    assert found["degraded"] == []
    assert len(found["papers"]) == 3
    assert {paper["id"] for paper in found["papers"][:2]} == TIDES
    best = found["papers"][0]
    assert best["title"] == "Tides in a harbour"
    assert "example.org" not in best["text"]
    assert set(found["forms"]) == {"question", "keywords", "answer", "feedback"}
    lists = {(score["source"], score["form"]) for score in best["scores"]}
    encoder = "all-MiniLM-L6-v2"
    assert lists == {(source, form) for source in ("bm25", encoder) for form in found["forms"]} | {
        (f"late-interaction/{encoder}", "question")
    }
    assert all(score["rank"] <= len(DOCUMENTS) for score in best["scores"])
