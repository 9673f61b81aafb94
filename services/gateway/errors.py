"""Problems in the form of the door that they go out by: OpenAI's below `/v1/`, JSON-RPC's at `/mcp`.

Pure ASGI and around everything else, so that what the deadline, the admission and the keys refuse is said so as well.
"""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proto.base import Problem
from services.gateway.mcp import door as mcp
from services.gateway.openai import errors as openai

PROBLEM = "application/problem+json"
FORMS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    openai.PREFIX: openai.error_of,
    f"{mcp.PATH}/": mcp.error_of,
}


class OwnForms:
    """Turns the problem documents of doors that have another form into it; everything else goes by untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # With a slash, as the prefixes end: `/mcpx` is not below `/mcp`.
        path = f"{scope['path']}/" if scope["type"] == "http" else ""
        form = next((form for prefix, form in FORMS.items() if path.startswith(prefix)), None)
        if form is None:
            await self.app(scope, receive, send)
            return
        held: Message | None = None
        body = bytearray()

        async def translated(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_foreign(message):
                held = message
            elif held is None:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    pause = Headers(raw=held["headers"]).get("retry-after")
                    content = json.dumps(form({**_problem(held, body), "retry_after": pause})).encode()
                    await send({**held, "headers": _headers(held, len(content))})
                    await send({"type": "http.response.body", "body": content})

        await self.app(scope, receive, translated)


def _is_foreign(message: Message) -> bool:
    """Whether it is a refusal in no form that a door has: a problem document, or text of a library's."""
    said = Headers(raw=message["headers"]).get("content-type", "")
    return said.startswith(PROBLEM) or (message["status"] >= 400 and not said.startswith("application/json"))


def _problem(start: Message, body: bytearray) -> dict[str, Any]:
    if Headers(raw=start["headers"]).get("content-type", "").startswith(PROBLEM):
        return dict(json.loads(body))
    status = HTTPStatus(start["status"])
    return Problem(title=status.phrase, status=status, detail=body.decode(errors="replace")).model_dump(mode="json")


def _headers(start: Message, length: int) -> list[tuple[bytes, bytes]]:
    kept = [(key, value) for key, value in start["headers"] if key.lower() not in (b"content-type", b"content-length")]
    return [*kept, (b"content-type", b"application/json"), (b"content-length", str(length).encode())]
