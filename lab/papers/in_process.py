"""Services inside this process behind the gateway's own clients, without ports."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from pydantic import HttpUrl
from starlette.types import Receive, Scope, Send

from services.gateway.mesh import Mesh
from services.gateway.settings import GatewaySettings
from services.kit.client import http_client


class Hosts(httpx.AsyncBaseTransport):
    """Sends requests to the applications of their hosts, and all others over the network."""

    def __init__(self, apps: Mapping[str, httpx.ASGITransport]) -> None:
        self._apps = apps
        self._network = httpx.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._apps.get(request.url.host, self._network).handle_async_request(request)

    async def aclose(self) -> None:
        await self._network.aclose()


@asynccontextmanager
async def mesh_of(
    apps: Mapping[str, FastAPI], settings: GatewaySettings
) -> AsyncIterator[tuple[Mesh, Mapping[str, Mapping[str, Any]]]]:
    """A mesh of these applications by service name, and their states; they run as long as the context lasts.

    Other services are where `settings` says.
    """
    async with AsyncExitStack() as stack:
        started = {name: await stack.enter_async_context(transport_of(app)) for name, app in apps.items()}
        transports = {name: transport for name, (transport, _) in started.items()}
        urls = {f"{name}_url": HttpUrl(f"http://{name}") for name in apps}
        http = await stack.enter_async_context(http_client(Hosts(transports)))
        states = {name: state for name, (_, state) in started.items()}
        yield Mesh.connect(settings.model_copy(update=urls), http), states


@asynccontextmanager
async def transport_of(app: FastAPI) -> AsyncIterator[tuple[httpx.ASGITransport, Mapping[str, Any]]]:
    """A transport to the application and its lifespan's state; it runs as long as the context lasts."""
    async with app.router.lifespan_context(app) as state:

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            # As servers do for applications whose lifespan yields a state.
            await app({**scope, "state": dict(state or {})}, receive, send)

        yield httpx.ASGITransport(serve), state or {}
