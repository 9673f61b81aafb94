"""`POST /papers` over the real retriever and reranker: documents come in, the right one comes out first."""

import pytest

from lab.papers.collect import index
from lab.papers.data import Text
from services.gateway.mesh import Mesh
from services.gateway.settings import GatewaySettings
from services.kit.client import http_client
from tests.mesh.conftest import HOSTS, Router, Services

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


async def test_the_document_that_answers_is_first(services: Services) -> None:
    async with http_client(Router(services.faults)) as http:
        mesh = Mesh.connect(GatewaySettings.model_validate(HOSTS), http)
        counted: list[int] = []
        info = await index(mesh, "papers", DOCUMENTS, counted.append)
        assert (info.documents, sum(counted)) == (5, 5)
        # The same again changes nothing.
        assert await index(mesh, "papers", DOCUMENTS, counted.append) == info
    services.generator.reply = lambda body: (
        "lunar gravity, tidal bulge" if "structured_outputs" in body else "The moon raises two bulges of water."
    )
    async with services.usual() as gateway:
        found = (await gateway.post("/papers", json=QUESTION | {"collection": "papers", "top_n": 3})).json()
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
