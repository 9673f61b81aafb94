"""The client: every way a service can fail has a name, one retry, and headers that carry the time left."""

import asyncio
import contextlib
import json
from collections.abc import Callable

import httpx
import pytest

from proto.rerank import RerankRequest, RerankResponse
from services.kit.breaker import Breaker
from services.kit.client import LIGHT_PATHS, ServiceClient, http_client
from services.kit.errors import (
    BadReply,
    ServiceFailure,
    ServiceOverloaded,
    ServiceRejected,
    ServiceTimeout,
    ServiceUnavailable,
)
from services.kit.telemetry import TraceContext, current_trace

pytestmark = pytest.mark.anyio

MESSAGE = RerankRequest(query="q", documents=("a",))
GOOD = {"model": "m", "results": [{"index": 0, "relevance_score": 0.5}]}


class Target:
    """A service that gives each reply of a list once, then the last for ever."""

    def __init__(self, *replies: httpx.Response | Exception) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply


def reaching(target: Callable[..., object], breaker: Breaker | None = None) -> ServiceClient:
    http = http_client(httpx.MockTransport(target))  # type: ignore[arg-type]
    return ServiceClient("reranker", "http://reranker", http, breaker=breaker)


async def stuck(_: httpx.Request) -> httpx.Response:
    await asyncio.sleep(3_600)
    raise AssertionError


async def call(client: ServiceClient, allow_s: float = 30.0) -> RerankResponse:
    return await client.call("/rerank", MESSAGE, RerankResponse, allow_s=allow_s)


async def test_headers_carry_deadline_and_trace() -> None:
    target = Target(httpx.Response(200, json=GOOD))
    trace = TraceContext.from_headers({"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "x-request-id": "r1"})
    token = current_trace.set(trace)
    reply = await call(reaching(target), allow_s=20)
    current_trace.reset(token)
    headers = target.requests[0].headers
    assert reply.results[0].relevance_score == 0.5
    assert 15_000 < int(headers["x-deadline-ms"]) <= 20_000
    assert headers["traceparent"] == f"00-{'a' * 32}-{trace.span_id}-01"
    assert headers["x-request-id"] == "r1"
    assert json.loads(target.requests[0].content)["documents"] == ["a"]


@pytest.mark.parametrize("first", [httpx.Response(503), httpx.ConnectError("refused"), httpx.ReadError("reset")])
async def test_one_retry_for_a_service_that_was_not_there(first: httpx.Response | Exception) -> None:
    target = Target(first, httpx.Response(200, json=GOOD))
    await call(reaching(target))
    assert len(target.requests) == 2


@pytest.mark.parametrize(
    ("first", "done"),
    [(httpx.ReadError("reset"), True), (httpx.ConnectError("no"), False), (httpx.Response(503), False)],
)
async def test_a_deletion_whose_reply_was_lost_is_done(first: httpx.Response | Exception, done: bool) -> None:
    client = reaching(Target(first, httpx.Response(404)))
    with contextlib.nullcontext() if done else pytest.raises(ServiceRejected):
        assert await client.request("DELETE", "/collections/notes/documents/a", allow_s=1) == b""


def packed(status: int, coding: str) -> httpx.Response:
    return httpx.Response(status, stream=httpx.ByteStream(b"x"), headers=[("content-encoding", coding)])


@pytest.mark.parametrize(
    ("reply", "error", "reason", "calls"),
    [
        (httpx.Response(503), ServiceUnavailable, "unavailable", 2),
        (httpx.ConnectError("refused"), ServiceUnavailable, "unavailable", 2),
        (httpx.Response(504), ServiceTimeout, "timeout", 1),
        (httpx.Response(429), ServiceOverloaded, "overloaded", 1),
        (httpx.Response(500), ServiceRejected, "error", 1),
        (httpx.Response(422, json={}), ServiceRejected, "error", 1),
        (httpx.Response(302), ServiceRejected, "error", 1),
        (httpx.Response(200, text="<html>"), BadReply, "bad_reply", 1),
        (httpx.Response(200, json={"results": 1}), BadReply, "bad_reply", 1),
        (httpx.Response(200, content=b"\xff\x00"), BadReply, "bad_reply", 1),
        (httpx.RemoteProtocolError("illegal status line"), BadReply, "bad_reply", 1),
        (httpx.DecodingError("bad gzip"), BadReply, "bad_reply", 1),
        (packed(200, "br"), BadReply, "bad_reply", 1),
        (packed(503, "gzip"), ServiceUnavailable, "unavailable", 2),
        (packed(404, "gzip"), ServiceRejected, "error", 1),
    ],
)
async def test_each_failure_has_its_name(
    reply: httpx.Response | Exception, error: type[ServiceFailure], reason: str, calls: int
) -> None:
    target = Target(reply)
    with pytest.raises(error) as raised:
        await call(reaching(target))
    assert (raised.value.service, raised.value.reason) == ("reranker", reason)
    assert len(target.requests) == calls


@pytest.mark.parametrize("path", ["/collections/notes/documents/..", "/a/./b", "/..?x=1", "/a/.."])
async def test_a_path_that_would_become_another_is_refused_without_a_call(path: str) -> None:
    target = Target(httpx.Response(200))
    with pytest.raises(ServiceRejected) as refused:
        await reaching(target).request("DELETE", path, allow_s=1)
    assert (refused.value.status, target.requests) == (404, [])


async def test_no_time_left_is_a_timeout_without_a_call() -> None:
    target = Target(httpx.Response(200, json=GOOD))
    with pytest.raises(ServiceTimeout):
        await call(reaching(target), allow_s=0)
    assert not target.requests


async def test_a_slow_service_is_cut_off_and_opens_the_breaker_only_when_it_had_time() -> None:
    breaker = Breaker(threshold=1)
    with pytest.raises(ServiceTimeout):
        await call(reaching(stuck, breaker), allow_s=0.05)
    assert breaker.state == "closed"
    with pytest.raises(ServiceTimeout):
        await call(reaching(stuck, breaker), allow_s=1.0)
    assert breaker.state == "open"


async def test_an_open_breaker_refuses_without_a_call() -> None:
    target = Target(httpx.ConnectError("refused"))
    client = reaching(target, Breaker(threshold=1))
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            await call(client)
    assert len(target.requests) == 2


async def test_a_callers_cancellation_is_passed_on_and_counts_for_nothing() -> None:
    breaker = Breaker(threshold=1)
    task = asyncio.create_task(call(reaching(stuck, breaker)))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert breaker.state == "closed"


@pytest.mark.parametrize("light", sorted(LIGHT_PATHS))
async def test_what_a_stuck_engine_still_answers_does_not_close_the_breaker_on_its_work(light: str) -> None:
    breaker = Breaker(threshold=2, first_open_s=0)
    target = Target(httpx.Response(200))
    client = reaching(target, breaker)
    breaker.failed()
    await client.request("POST", light, b"{}", allow_s=30)
    breaker.failed()
    assert breaker.state == "half-open", "failures in a row, whatever was answered between them"
    for reply in (httpx.Response(200), httpx.Response(404)):
        target.replies = [reply]
        with contextlib.suppress(ServiceRejected):
            await client.request("POST", light, b"{}", allow_s=30)
        assert breaker.state == "half-open"
    target.replies = [httpx.Response(200)]
    await client.request("POST", "/v1/chat/completions", b"{}", allow_s=30)
    assert breaker.state == "closed"
