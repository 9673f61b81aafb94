"""A gateway of which nothing else is there: what the page must do without anybody's help."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest

from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings
from tests.unit.conftest import Nowhere, asking

Gateways = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def gateways() -> Gateways:
    def gateway(**settings: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return asking(create_app(GatewaySettings(**settings), transport=Nowhere()))

    return gateway


@pytest.fixture(scope="module")
async def gateway(gateways: Gateways) -> AsyncIterator[httpx.AsyncClient]:
    """One for all tests, which only read."""
    async with gateways() as client:
        yield client
