"""`/mcp`: streamable HTTP without sessions, so that any gateway of several may serve any request."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from services.gateway.asking import State
from services.kit.admission import BodyTooLarge
from services.kit.concurrency import beside
from services.kit.deadline import announced

PATH = "/mcp"
MAX_BODY = 1024 * 1024
INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603


def error_of(problem: dict[str, Any]) -> dict[str, Any]:
    """A problem document as JSON-RPC's error; agents read its message alone."""
    pause = f"; come again in {problem['retry_after']} s" if problem["retry_after"] else ""
    code = INVALID_REQUEST if problem["status"] < 500 else INTERNAL_ERROR
    error = {"code": code, "message": f"{problem['title']}: {problem['detail']}{pause}", "data": problem}
    return {"jsonrpc": "2.0", "id": None, "error": error}


class McpDoor:
    """An ASGI endpoint whose server is built by the first request; `open` must be entered around all of them."""

    path = PATH

    def __init__(self) -> None:
        self._first_request = asyncio.Event()
        self._app: asyncio.Future[Starlette] | None = None

    @contextlib.asynccontextmanager
    async def open(self, state: State) -> AsyncIterator[None]:
        """Serve while the context is open."""
        self._app = asyncio.get_running_loop().create_future()
        async with beside(self._serve(state, self._app)):
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Metrics take a request's route from here, and Starlette's own routes leave it out.
        scope["route"] = self
        self._first_request.set()
        if self._app is None:
            raise RuntimeError("the door is not open")
        if announced(Headers(scope=scope)) > MAX_BODY:
            # The SDK's own refusal names no limit.
            raise BodyTooLarge(f"the body is larger than {MAX_BODY} bytes")
        app = await asyncio.shield(self._app)
        await app({**scope, "path": scope.get("root_path", "") + PATH}, receive, send)

    async def _serve(self, state: State, ready: "asyncio.Future[Starlette]") -> None:
        """Run the server in a task of its own: its task group outlives the first request."""
        await self._first_request.wait()
        try:
            app = await asyncio.to_thread(_build, state)
            async with app.router.lifespan_context(app):
                ready.set_result(app)
                await asyncio.Event().wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
            raise


def _build(state: State) -> Starlette:
    from services.gateway.mcp.tools import build

    # The gateway's keys and middleware decide who may call, for every route alike; a browser's page of another origin
    # cannot post JSON here.
    return build(state).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, max_request_body_size=MAX_BODY, host=""
    )
