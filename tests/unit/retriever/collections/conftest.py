"""Real retrievers, asked through their HTTP: over a folder of their own, and over a Qdrant server."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.retriever.app import create_app
from services.retriever.collections.store import ServerStore, Store
from services.retriever.settings import RetrieverSettings
from tests.unit.conftest import asking
from tests.unit.retriever.collections.qdrant_server import QdrantServer

MINILM = "all-MiniLM-L6-v2"


def settings(folder: Path, **options: Any) -> RetrieverSettings:
    return RetrieverSettings(qdrant_path=folder, precision="fp32", threads=1, page_workers=1, **options)


def running(settings: RetrieverSettings, store: Store | None = None) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return asking(create_app(settings, store=store))


def store_of(server: QdrantServer, api_key: str = "") -> ServerStore:
    return ServerStore("http://qdrant:6333", api_key=api_key, timeout_s=10, transport=server.transport)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Session-wide here, since loading the model once is most of what these tests cost."""
    return "asyncio"


@pytest.fixture(scope="session")
def qdrant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    with contextlib.closing(QdrantServer(tmp_path_factory.mktemp("qdrant"))) as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    """One of a module's own."""
    with contextlib.closing(QdrantServer(tmp_path_factory.mktemp("qdrant"))) as server:
        yield server


@pytest.fixture(scope="session", params=["local", "server"])
async def retriever(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, qdrant: QdrantServer
) -> AsyncIterator[httpx.AsyncClient]:
    store = store_of(qdrant, "secret") if request.param == "server" else None
    async with running(settings(tmp_path_factory.mktemp("collections")), store) as client:
        yield client
