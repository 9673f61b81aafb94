"""A gateway of which nothing else is there: what the page must do without anybody's help."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import httpx
import pytest
from asgi_lifespan import LifespanManager

from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings


class Lonely(httpx.AsyncBaseTransport):
    """No service is reachable."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)


class Gateways(Protocol):
    def __call__(
        self, transport: httpx.AsyncBaseTransport | None = None, **settings: Any
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]: ...


@pytest.fixture
def gateways() -> Gateways:
    @asynccontextmanager
    async def gateway(
        transport: httpx.AsyncBaseTransport | None = None, **settings: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        app = create_app(GatewaySettings(**settings), transport=transport or Lonely())
        async with LifespanManager(app) as manager:
            over = httpx.ASGITransport(manager.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=over, base_url="http://gateway") as client:
                yield client

    return gateway


@pytest.fixture
async def gateway(gateways: Gateways) -> AsyncIterator[httpx.AsyncClient]:
    async with gateways() as client:
        yield client
