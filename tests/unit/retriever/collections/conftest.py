"""Real retrievers, asked through their HTTP: over a folder of their own, and over a Qdrant server."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_lifespan import LifespanManager

from services.retriever.app import create_app
from services.retriever.collections.store import ServerStore, Store
from services.retriever.settings import RetrieverSettings
from tests.unit.retriever.collections.qdrant_server import QdrantServer

MINILM = "all-MiniLM-L6-v2"


def settings(folder: Path, **options: Any) -> RetrieverSettings:
    return RetrieverSettings(qdrant_path=folder, precision="fp32", threads=1, page_workers=1, **options)


@contextlib.asynccontextmanager
async def running(settings: RetrieverSettings, store: Store | None = None) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(settings, store=store)
    async with LifespanManager(app, startup_timeout=300, shutdown_timeout=120) as manager:
        transport = httpx.ASGITransport(manager.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://retriever", timeout=60) as client:
            yield client


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Session-wide here, since loading the model once is most of what these tests cost."""
    return "asyncio"


@pytest.fixture(scope="session")
def qdrant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    with contextlib.closing(QdrantServer(tmp_path_factory.mktemp("qdrant"))) as server:
        yield server


@pytest.fixture(scope="session", params=["local", "server"])
async def retriever(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, qdrant: QdrantServer
) -> AsyncIterator[httpx.AsyncClient]:
    store = None
    if request.param == "server":
        store = ServerStore("http://qdrant:6333", api_key="secret", timeout_s=10, transport=qdrant.transport)
    async with running(settings(tmp_path_factory.mktemp("collections")), store) as client:
        yield client
