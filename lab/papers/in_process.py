"""The retriever and the reranker inside this process, behind the gateway's own clients: no ports, no mesh to start."""

from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from pydantic import HttpUrl
from starlette.types import Receive, Send

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
    """A mesh of these applications by service name, each started and, when the context closes, stopped.

    Services that are not among them are where `settings` says. With the states that the applications yield, by name.
    """
    async with AsyncExitStack() as stack:
        states: dict[str, Mapping[str, Any]] = {}
        for name, app in apps.items():
            state = await stack.enter_async_context(app.router.lifespan_context(app))
            states[name] = state or {}
        transports = {name: httpx.ASGITransport(_with_state(app, states[name])) for name, app in apps.items()}
        urls = {f"{name}_url": HttpUrl(f"http://{name}") for name in apps}
        http = await stack.enter_async_context(http_client(Hosts(transports)))
        yield Mesh.connect(settings.model_copy(update=urls), http), states


def _with_state(app: FastAPI, state: Mapping[str, Any]) -> Any:
    async def served(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        # What a server does for applications whose lifespan yields a state.
        scope["state"] = dict(state)
        await app(scope, receive, send)

    return served
