"""The middleware that makes 30 seconds a law: pure ASGI, outermost, in every service.

FastAPI neither stops a handler at a deadline nor when its client hangs up; this does both, by cancelling it. Pure ASGI
because a `BaseHTTPMiddleware` around it would hide the hang-up.
"""

import asyncio
import contextlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proto.base import Problem
from services.kit.budget import DEADLINE_HEADER, Budget, current_budget
from services.kit.errors import DeadlineExceeded, MeshError, Overloaded, Unauthorized
from services.kit.telemetry import REQUEST_ID_HEADER, Metrics, TraceContext, current_trace, log
from services.kit.tracing import request_span

# Asked by orchestrators while the service is busy: they are answered by the loop alone, and need no budget.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
# Lets a request in by its headers, before its body is read: the caller's name, or an Unauthorized or RateLimited.
Guard = Callable[[Mapping[str, str]], Awaitable[str]]
# A refused upload is read to its end, within these, so that the client sees the refusal and not a reset connection.
DRAIN_BYTES = 128 * 1024 * 1024
DRAIN_S = 5.0
# What a cancelled handler gets to close its connections.
CANCEL_GRACE_S = 2.0
# No status was sent: what nginx writes when its client has gone.
HUNG_UP = 499
MESH_TOKEN_HEADER = "x-mesh-token"  # noqa: S105 - a name, no secret
# Reading changes nothing and asks no model: a caller's guard leaves it open, the mesh's own does not.
READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Said of every response that does not say otherwise itself, as the page does. Answers are the caller's alone, and no
# browser has any business with JSON but to hand it to a script of the same origin.
SECURITY_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}


def route_of(scope: Scope) -> str:
    """The route's template, which is one of few, and never the path, which anybody can make up."""
    return str(getattr(scope.get("route"), "path", "unmatched"))


def mesh_guard(token: str) -> Guard | None:
    """Let in who knows the mesh's token; all when there is none."""
    if not token:
        return None

    async def guard(headers: Mapping[str, str]) -> str:
        if not hmac.compare_digest(headers.get(MESH_TOKEN_HEADER, "").encode(), token.encode()):
            raise Unauthorized("only services of this mesh may call it")
        return ""

    return guard


class Admission:
    """A bounded number of requests in flight; the rest are refused at once, before their bodies are kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_flight = 0

    def enter(self) -> None:
        """Take a place.

        Raises:
            Overloaded: all places are taken.
        """
        if self.in_flight >= self.limit:
            raise Overloaded(f"{self.limit} requests are in flight, which is all this service takes at a time")
        self.in_flight += 1

    def leave(self) -> None:
        self.in_flight -= 1


class _BodyTooLarge(MeshError):
    status = 413
    title = "Request too large"


class _BodyTimeout(MeshError):
    status = 408
    title = "Request timeout"


class _BadDeadline(MeshError):
    status = 400
    title = "Invalid request"


class _ClientGone(Exception):
    """The client hung up."""


class DeadlineMiddleware:
    """Run a request under a deadline and end it early when its client leaves.

    Args:
        app: the application.
        metrics: where to count.
        max_s: seconds a request may take; `x-deadline-ms` can lower it.
        max_body: bytes of a request's body.
        admission: places for requests in flight; None takes all.
        guard: asked about every request that is not one of `unguarded`; None lets all in.
        unguarded: methods that the guard is not asked about. Probes are always open.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        max_s: float,
        max_body: int,
        admission: Admission | None = None,
        guard: Guard | None = None,
        unguarded: frozenset[str] = READING,
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.max_s = max_s
        self.max_body = max_body
        self.admission = admission
        self.guard = guard
        self.unguarded = unguarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        trace = TraceContext.from_headers(headers)
        response = _Response(send, trace.request_id)
        with request_span(trace, f"{self.metrics.service} {scope['method']}") as (trace, span):
            token = current_trace.set(trace)
            try:
                with structlog.contextvars.bound_contextvars(request_id=trace.request_id, trace_id=trace.trace_id):
                    await self._observed(scope, headers, receive, response)
            finally:
                current_trace.reset(token)
                span.set_attribute("http.route", route_of(scope))
                span.set_attribute("http.response.status_code", response.status or HUNG_UP)

    async def _observed(self, scope: Scope, headers: dict[str, str], receive: Receive, response: "_Response") -> None:
        began = time.monotonic()
        try:
            await self._serve(scope, headers, receive, response)
        except MeshError as error:
            self.metrics.cut_short.labels(self.metrics.service, error.title.lower()).inc()
            await response.problem(error.problem(response.request_id), error.headers)
        except _ClientGone:
            self.metrics.cut_short.labels(self.metrics.service, "hang-up").inc()
        finally:
            route = route_of(scope)
            seconds = time.monotonic() - began
            self.metrics.requests.labels(self.metrics.service, route, str(response.status or HUNG_UP)).inc()
            self.metrics.latency.labels(self.metrics.service, route).observe(seconds)
            log.info(
                "request", method=scope["method"], route=route, status=response.status, ms=round(seconds * 1000, 1)
            )

    async def _serve(self, scope: Scope, headers: dict[str, str], receive: Receive, response: "_Response") -> None:
        budget = Budget(_deadline_s(headers, self.max_s))
        token = current_budget.set(budget)
        admitted = self.admission if scope["method"] == "POST" else None
        guard = self.guard if scope["method"] not in self.unguarded else None
        entered = False
        try:
            try:
                caller = await guard(headers) if guard else ""
                if admitted:
                    admitted.enter()
                    entered = True
            except MeshError:
                await _drain(receive)
                raise
            named = {"caller": caller} if caller else {}
            in_flight = self.metrics.in_flight.labels(self.metrics.service)
            with structlog.contextvars.bound_contextvars(**named), in_flight.track_inprogress():
                body = await self._body(headers, receive, budget)
                await self._run(scope, body, receive, response, budget)
        finally:
            current_budget.reset(token)
            if admitted and entered:
                admitted.leave()

    async def _body(self, headers: dict[str, str], receive: Receive, budget: Budget) -> bytes:
        """Read the whole body first: every route needs all of it, and after it `receive` speaks of hang-ups alone."""
        announced = headers.get("content-length", "")
        chunks: list[bytes] = []
        size = int(announced) if announced.isdecimal() else 0
        try:
            async with asyncio.timeout(budget.left()):
                received = 0
                more = size <= self.max_body
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientGone
                    chunk = message.get("body", b"")
                    received += len(chunk)
                    if received > self.max_body:
                        size = received
                        break
                    chunks.append(chunk)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _BodyTimeout("the body did not arrive before the deadline") from None
        if size > self.max_body:
            await _drain(receive)
            raise _BodyTooLarge(f"the body is larger than {self.max_body} bytes")
        return b"".join(chunks)

    async def _run(self, scope: Scope, body: bytes, receive: Receive, response: "_Response", budget: Budget) -> None:
        gone = asyncio.Event()
        handler = asyncio.ensure_future(self.app(scope, _replay(body, gone), response.send))
        watcher = asyncio.ensure_future(_wait_for_hang_up(receive, gone))
        try:
            await asyncio.wait({handler, watcher}, timeout=budget.left(), return_when=asyncio.FIRST_COMPLETED)
            if response.complete and not handler.done():
                # The server reports the end of a response as a disconnect too.
                await asyncio.wait({handler}, timeout=budget.left())
            if handler.done():
                self._result(handler, response)
            elif watcher.done():
                raise _ClientGone
            elif response.status is None:
                raise DeadlineExceeded(f"not done within {budget.total_s:.1f} s")
            else:
                self.metrics.cut_short.labels(self.metrics.service, "deadline in stream").inc()
        finally:
            await _cancel(handler, watcher)

    def _result(self, handler: "asyncio.Future[None]", response: "_Response") -> None:
        error = handler.exception() if not handler.cancelled() else None
        if error is None:
            return
        log.error("unhandled", error=type(error).__name__, exc_info=error)
        if response.status is None:
            raise MeshError("the service failed; its log has the details under this request id") from error


def _deadline_s(headers: dict[str, str], max_s: float) -> float:
    value = headers.get(DEADLINE_HEADER)
    if value is None:
        return max_s
    if not value.isdecimal() or len(value) > 9 or int(value) == 0:
        raise _BadDeadline(f"{DEADLINE_HEADER} must be a positive whole number of milliseconds")
    return min(max_s, int(value) / 1000)


def _replay(body: bytes, gone: asyncio.Event) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    return receive


async def _wait_for_hang_up(receive: Receive, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def _drain(receive: Receive) -> None:
    drained = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            while drained <= DRAIN_BYTES:
                message = await receive()
                drained += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return


async def _cancel(*tasks: "asyncio.Future[None]") -> None:
    for task in tasks:
        task.cancel()
    _, stuck = await asyncio.wait(tasks, timeout=CANCEL_GRACE_S)
    if stuck:
        log.error("handler ignores cancellation", tasks=len(stuck))


class _Response:
    """The send side: remembers what was sent, and adds the request id and what browsers must know."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status: int | None = None
        self.complete = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", []))
            said = {key.lower() for key, _ in headers}
            headers += [(key, value) for key, value in SECURITY_HEADERS.items() if key not in said]
            headers.append((REQUEST_ID_HEADER.encode(), self.request_id.encode()))
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True
        await self._send(message)

    async def problem(self, problem: Problem, headers: dict[str, str]) -> None:
        if self.status is not None:
            return
        body = problem_body(problem)
        start = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
        start += [(key.encode(), value.encode()) for key, value in headers.items()]
        await self.send({"type": "http.response.start", "status": problem.status, "headers": start})
        await self.send({"type": "http.response.body", "body": body})


def problem_body(problem: Problem) -> bytes:
    return json.dumps(problem.model_dump(mode="json")).encode()
