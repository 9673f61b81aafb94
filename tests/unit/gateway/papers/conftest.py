"""What tests of `/papers` share: a small collection behind a scripted retriever, reranker and generator."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings
from tests.mesh.conftest import HOSTS, Router
from tests.mesh.fakes import FakeGenerator, Faulty
from tests.unit.conftest import asking

DOCUMENTS = {
    "tide": "Tides: the moon raises two bulges of water, and a harbour passes through both each day.",
    "neap": "Neap tides: when sun and moon pull at right angles the range of the tide is least.",
    "surge": "Storm surge: wind piles up water against a coast, and low pressure lifts it further.",
    "bread": "Rye bread: a sour dough rises slowly and keeps for a week.",
}
KEYWORDS, ANSWER = "lunar gravity, tidal range", "The moon pulls the water into bulges."


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


class FakeRetriever:
    """Ranks the documents by words in common: `bm25` counts all of them, the encoder `letters` each once."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.reply: dict[str, Any] | None = None
        self.fails_on: set[int] = set()
        # Seconds that the first search, the second ... take.
        self.seconds: Sequence[float] = ()
        self.app = Starlette(routes=[Route("/collections/{name}/search", self._search, methods=["POST"])])

    async def _search(self, request: Request) -> Response:
        if request.path_params["name"] != "harbour":
            return JSONResponse({"title": "Not found", "status": 404}, status_code=404)
        body = await request.json()
        self.requests.append(body)
        turn = len(self.requests) - 1
        await asyncio.sleep(self.seconds[turn] if turn < len(self.seconds) else 0)
        if turn in self.fails_on:
            return JSONResponse({"title": "broken", "status": 500}, status_code=500)
        return JSONResponse(self.reply or self._ranked(body))

    def _ranked(self, body: dict[str, Any]) -> dict[str, Any]:
        names = list(DOCUMENTS)
        hits = [{"id": name, "title": name.title(), "text": DOCUMENTS[name], "score": 0.0} for name in names]
        lists = []
        for index, query in enumerate(body["queries"]):
            for encoder in ("bm25", "letters"):
                asked = words(query) if encoder == "bm25" else sorted(set(words(query)))
                scores = [sum(asked.count(word) for word in set(words(DOCUMENTS[name]))) for name in names]
                order = sorted(range(len(names)), key=lambda i: -scores[i])[: body["candidates"]]
                lists.append({"encoder": encoder, "query": index, "hits": order, "scores": [scores[i] for i in order]})
        return {"hits": hits, "fused": len(hits), "lists": lists}


class FakeReranker:
    """Scores each document by the share of the query's words that it has."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] | None = None
        self.app = Starlette(routes=[Route("/rerank", self._rerank, methods=["POST"])])

    async def _rerank(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        asked = set(words(body["query"]))
        scores = [len(asked & set(words(text))) / max(1, len(asked)) for text in body["documents"]]
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        results = self.results or [{"index": index, "relevance_score": scores[index]} for index in order]
        return JSONResponse({"model": "fake/words", "results": results})


def script(body: dict[str, Any]) -> str:
    """What the generator writes, by which prompt it was given."""
    return KEYWORDS if "keywords" in json.dumps(body).lower() and "structured_outputs" in body else ANSWER


@dataclass
class Corner:
    """The three services that `/papers` calls."""

    retriever: FakeRetriever = field(default_factory=FakeRetriever)
    reranker: FakeReranker = field(default_factory=FakeReranker)
    generator: FakeGenerator = field(default_factory=lambda: FakeGenerator(script))
    faults: dict[str, Faulty] = field(init=False)

    def __post_init__(self) -> None:
        apps = {"retriever": self.retriever.app, "reranker": self.reranker.app, "generator": self.generator.app}
        self.faults = {name: Faulty(app) for name, app in apps.items()}

    def gateway(self, **settings: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return asking(create_app(GatewaySettings(**(HOSTS | settings)), transport=Router(self.faults)))


@pytest.fixture
def corner() -> Corner:
    return Corner()


@pytest.fixture
async def gateway(corner: Corner) -> AsyncIterator[httpx.AsyncClient]:
    async with corner.gateway() as client:
        yield client
