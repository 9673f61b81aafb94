"""The gateway's client: one question, answered as server-sent events."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
from pydantic import ValidationError

from proto.answer import AnswerResponse, StageEvent
from proto.base import Problem
from services.cli.caller import Refused, Unreachable, bearer

# The gateway answers within the budget; what it needs beyond that is the upload of the pages.
GRACE_S = 15.0
CONNECT_S = 3.0

OnStage = Callable[[StageEvent], None]


async def ask(
    http: httpx.AsyncClient, url: str, body: dict[str, Any], *, budget_s: float, on_stage: OnStage
) -> AnswerResponse:
    """The answer to a question, `body`; `on_stage` is called as each stage starts and ends.

    Raises:
        Refused: the gateway refused the question or failed.
        Unreachable: there is no gateway, or it went away.
    """
    try:
        async with (
            asyncio.timeout(budget_s + GRACE_S),
            http.stream(
                "POST",
                f"{url}/answer",
                content=json.dumps(body).encode(),
                headers={"accept": "text/event-stream", "content-type": "application/json"},
            ) as reply,
        ):
            return await _read(reply, on_stage)
    except TimeoutError:
        raise Unreachable(f"no answer within {budget_s + GRACE_S:.0f} s") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise Unreachable("") from error
    except httpx.HTTPError as error:
        raise Unreachable(f"the connection broke ({type(error).__name__})") from error
    except ValidationError as error:
        raise Unreachable(f"what answers there is no Cragmesh gateway of this version ({error.title})") from error


async def confidence_lack(url: str, api_key: str = "", transport: httpx.AsyncBaseTransport | None = None) -> str:
    """What the gateway lacks to weigh its generator's answers, in words; empty where it lacks nothing or is silent."""
    # The gateway's modules, which no other command should wait for.
    from services.gateway.health import Services

    try:
        async with asyncio.timeout(CONNECT_S), http_client(api_key, transport) as http:
            reply = await http.get(f"{url}/services")
            return Services.model_validate_json(reply.content).confidence.detail
    except (httpx.HTTPError, TimeoutError, ValidationError):
        return ""


def http_client(api_key: str = "", transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """A client without a time-out on reads: the budget bounds the whole."""
    return httpx.AsyncClient(
        transport=transport, timeout=httpx.Timeout(None, connect=CONNECT_S), headers=bearer(api_key), trust_env=False
    )


async def _read(reply: httpx.Response, on_stage: OnStage) -> AnswerResponse:
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if reply.is_success and kind == "text/event-stream":
        async for event, data in events(reply.aiter_bytes()):
            if event == "stage":
                on_stage(StageEvent.model_validate_json(data))
            elif event == "answer":
                return AnswerResponse.model_validate_json(data)
            elif event == "problem":
                raise Refused(Problem.model_validate_json(data))
        raise Unreachable("the connection ended before the answer")
    content = await reply.aread()
    if reply.is_success:
        return AnswerResponse.model_validate_json(content)
    try:
        problem = Problem.model_validate_json(content)
    except ValidationError:
        problem = Problem(title=reply.reason_phrase or "Error", status=max(400, reply.status_code))
    raise Refused(problem)


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """The name and data of each server-sent event.

    Lines end at CR, LF or both, and nowhere else: httpx's own lines also end at U+2028 and U+0085, which JSON may hold.
    """
    name, data = "message", list[str]()
    async for line in _lines(chunks):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for chunk in chunks:
        *lines, rest = re.split(rb"\r\n|\n|\r(?!\n|\Z)", rest + chunk)
        for line in lines:
            yield line.decode(errors="replace")
