"""The deadline middleware over real sockets' semantics: expiry, hang-up, bodies, admission, probes."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from services.kit.budget import current_budget
from services.kit.deadline import READING, Admission, DeadlineMiddleware
from services.kit.errors import Unauthorized
from services.kit.telemetry import Metrics, current_trace

pytestmark = pytest.mark.anyio


class App:
    """Waits `seconds` unless cancelled, then answers with the body's length."""

    def __init__(self, seconds: float = 0.0, *, fail: bool = False) -> None:
        self.seconds = seconds
        self.fail = fail
        self.cancelled = asyncio.Event()
        self.left: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        budget = current_budget.get()
        self.left = budget.left() if budget else None
        if self.fail:
            raise RuntimeError("secret detail")
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        body = str(len(message["body"])).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


def guarded(app: Any, *, max_s: float = 5, max_body: int = 1_000, admission: Admission | None = None) -> Any:
    return DeadlineMiddleware(app, metrics=Metrics("test"), max_s=max_s, max_body=max_body, admission=admission)


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def test_a_request_in_time_passes_with_its_budget_and_id() -> None:
    app = App()
    async with client(guarded(app)) as http:
        reply = await http.post("/", content=b"12345", headers={"x-deadline-ms": "2000", "x-request-id": "abc"})
    assert (reply.status_code, reply.text, reply.headers["x-request-id"]) == (200, "5", "abc")
    assert app.left is not None
    assert 1.5 < app.left <= 2


async def test_at_the_deadline_the_handler_is_cancelled_and_504_is_a_problem() -> None:
    app = App(5)
    async with client(guarded(app)) as http:
        reply = await http.post("/", headers={"x-deadline-ms": "50"})
    assert reply.status_code == 504
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["title"] == "Deadline exceeded"
    assert app.cancelled.is_set()


@pytest.mark.parametrize("value", ["0", "-5", "soon", "1e9", "9999999999", ""])
async def test_a_malformed_deadline_is_refused(value: str) -> None:
    async with client(guarded(App())) as http:
        reply = await http.post("/", headers={"x-deadline-ms": value})
    assert reply.status_code == 400
    assert "x-deadline-ms" in reply.json()["detail"]


async def test_a_caller_cannot_ask_for_more_than_the_service_gives() -> None:
    app = App()
    async with client(guarded(app, max_s=1)) as http:
        await http.post("/", headers={"x-deadline-ms": "60000"})
    assert app.left is not None
    assert app.left <= 1


async def test_every_response_tells_browsers_to_keep_nothing_guess_nothing_and_run_nothing() -> None:
    async def own(_: Scope, __: Receive, send: Send) -> None:
        headers = [(b"Cache-Control", b"max-age=60"), (b"content-security-policy", b"default-src 'self'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async with client(guarded(App())) as http, client(guarded(own)) as page:
        for reply in (await http.get("/"), await http.post("/", headers={"x-deadline-ms": "0"})):
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        reply = await page.get("/")
    assert reply.headers.get_list("cache-control") == ["max-age=60"], "what is said stands"
    assert reply.headers.get_list("content-security-policy") == ["default-src 'self'"]
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("unguarded", [READING, frozenset()])
async def test_the_guard_is_asked_about_all_that_is_not_left_open(unguarded: frozenset[str]) -> None:
    async def nobody(_: Mapping[str, str]) -> str:
        raise Unauthorized("nobody")

    app = DeadlineMiddleware(
        App(), metrics=Metrics("test"), max_s=5, max_body=10, guard=nobody, unguarded=frozenset(unguarded)
    )
    async with client(app) as http:
        for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
            reply = await http.request(method, "/")
            assert reply.status_code == (200 if method in unguarded else 401), method
        assert (await http.get("/readyz")).status_code == 200


async def test_an_unhandled_error_is_a_500_problem_without_its_message() -> None:
    async with client(guarded(App(fail=True))) as http:
        reply = await http.post("/")
    assert reply.status_code == 500
    assert "secret" not in reply.text


async def test_a_body_over_the_limit_is_413_whether_announced_or_not() -> None:
    async def chunks() -> Any:
        for _ in range(20):
            yield b"x" * 100

    async with client(guarded(App())) as http:
        announced = await http.post("/", content=b"x" * 2_000)
        streamed = await http.post("/", content=chunks())
    assert (announced.status_code, streamed.status_code) == (413, 413)
    assert "1000 bytes" in announced.json()["detail"]


class Wire:
    """A hand-driven connection: what the client sends, and what it got."""

    def __init__(self, *messages: Message) -> None:
        self.inbox: asyncio.Queue[Message] = asyncio.Queue()
        for message in messages:
            self.inbox.put_nowait(message)
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        return await self.inbox.get()

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def run(self, app: Any, method: str = "POST") -> None:
        scope = {"type": "http", "method": method, "path": "/", "headers": []}
        await app(scope, self.receive, self.send)


WHOLE = {"type": "http.request", "body": b"{}", "more_body": False}
GONE = {"type": "http.disconnect"}


async def test_a_hang_up_cancels_the_handler_at_once() -> None:
    app = App(5)
    wire = Wire(WHOLE)
    task = asyncio.create_task(wire.run(guarded(app)))
    await asyncio.sleep(0.02)
    wire.inbox.put_nowait(GONE)
    async with asyncio.timeout(0.2):
        await task
    assert app.cancelled.is_set()
    assert wire.sent == []


async def test_a_body_that_never_ends_is_408_at_the_deadline() -> None:
    wire = Wire({"type": "http.request", "body": b"{", "more_body": True})
    await wire.run(guarded(App(), max_s=0.05))
    assert wire.sent[0]["status"] == 408


async def test_cancelling_the_server_cancels_the_handler() -> None:
    app = App(5)
    task = asyncio.create_task(Wire(WHOLE).run(guarded(app)))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait({task}, timeout=1)
    assert app.cancelled.is_set()


async def test_admission_refuses_with_retry_after_and_recovers() -> None:
    admission = Admission(1)
    app = guarded(App(0.1), admission=admission)
    async with client(app) as http:
        first = asyncio.create_task(http.post("/"))
        await asyncio.sleep(0.03)
        refused = await http.post("/", content=b"x" * 500)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert (await first).status_code == 200
        assert (await http.post("/")).status_code == 200
    assert admission.in_flight == 0


async def test_nothing_leaks_into_the_callers_context() -> None:
    async with client(guarded(App())) as http:
        await http.post("/")
    assert current_budget.get() is None
    assert current_trace.get() is None


async def test_probes_need_no_budget() -> None:
    async def probe(scope: Scope, receive: Receive, send: Send) -> None:
        assert current_budget.get() is None
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(scope["path"]).encode()})

    async with client(guarded(probe, admission=Admission(0))) as http:
        assert (await http.get("/healthz")).json() == "/healthz"
