"""Problems in the form of their API: OpenAI's below `/v1/`, JSON-RPC's at `/mcp`.

Pure ASGI and around everything else, so that refusals of the deadline, the admission and the keys have it too.
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
    """Translates the problem documents of APIs that have a form of their own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # With a slash, as the prefixes end: `/mcpx` is not below `/mcp`.
        path = f"{scope['path']}/" if scope["type"] == "http" else ""
        form = next((form for prefix, form in FORMS.items() if path.startswith(prefix)), None)
        if form is None:
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = bytearray()

        async def translated(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_foreign(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    retry_after = Headers(raw=start["headers"]).get("retry-after")
                    content = json.dumps(form({**_problem(start, body), "retry_after": retry_after})).encode()
                    await send({**start, "headers": _headers(start, len(content))})
                    await send({"type": "http.response.body", "body": content})

        await self.app(scope, receive, translated)


def _is_foreign(message: Message) -> bool:
    """Whether a response has to be translated: a problem document, or a library's refusal in plain text."""
    media_type = Headers(raw=message["headers"]).get("content-type", "")
    return media_type.startswith(PROBLEM) or (
        message["status"] >= 400 and not media_type.startswith("application/json")
    )


def _problem(start: Message, body: bytearray) -> dict[str, Any]:
    if Headers(raw=start["headers"]).get("content-type", "").startswith(PROBLEM):
        return dict(json.loads(body))
    status = HTTPStatus(start["status"])
    return Problem(title=status.phrase, status=status, detail=body.decode(errors="replace")).model_dump(mode="json")


def _headers(start: Message, length: int) -> list[tuple[bytes, bytes]]:
    others = [item for item in start["headers"] if item[0].lower() not in (b"content-type", b"content-length")]
    return [*others, (b"content-type", b"application/json"), (b"content-length", str(length).encode())]
