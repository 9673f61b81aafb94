"""What unit tests of several services share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from asgi_lifespan import LifespanManager

from services.kit.encoder import Encoder
from services.kit.precision import Precision

FP32 = Precision("cpu", "fp32", "exact, for tests", threads=1)


class Clock:
    """A clock that a test puts forward."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Nowhere(httpx.AsyncBaseTransport):
    """No service is reachable."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)


@asynccontextmanager
async def asking(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that runs in this process."""
    async with LifespanManager(app, startup_timeout=300, shutdown_timeout=120) as manager:
        transport = httpx.ASGITransport(manager.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://service", timeout=60) as client:
            yield client


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The MiniLM that ships in a package, loaded once."""
    encoder = Encoder(precision=FP32)
    encoder.load()
    return encoder
