"""The middleware that makes 30 seconds a law: pure ASGI, outermost, in every service.

FastAPI neither stops a handler at a deadline nor when its client hangs up; this does both, by cancelling it. Pure ASGI
because a `BaseHTTPMiddleware` around it would hide the hang-up.
"""

import asyncio
import contextlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import KW_ONLY, dataclass

import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proto.base import Problem
from services.kit.admission import Admission, Body, ClientGone
from services.kit.budget import DEADLINE_HEADER, Budget, current_budget
from services.kit.concurrency import beside
from services.kit.errors import DeadlineExceeded, MeshError, Unauthorized
from services.kit.telemetry import REQUEST_ID_HEADER, Metrics, TraceContext, current_trace, log
from services.kit.tracing import request_span

PROBLEM_TYPE = "application/problem+json"
# Orchestrators ask these while the service is busy: the event loop answers them alone, and they need no budget.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
# A context around a request, entered with method, path and headers before the body is read: yields the caller's name,
# or raises Unauthorized, Forbidden or RateLimited.
Guard = Callable[[str, str, Mapping[str, str]], contextlib.AbstractAsyncContextManager[str]]
# Time for a body to arrive, however much its request has: some clients only hold a socket open.
UPLOAD_S = 10.0
# Bytes a second for which a body gets more time: 48 MiB come over a slow line, and nobody drips.
UPLOAD_RATE = 256 * 1024
# Wait for a place: within it those of clients that have just left are free.
PLACE_S = 0.25
# Passes of the event loop until a hang-up in the socket's buffer is noticed: measured, 3 behind a small body and 6
# behind a large one.
HANG_UP_PASSES = 8
# Time for a cancelled handler to close its connections.
CANCEL_GRACE_S = 2.0
# Counted where no status was sent; nginx's code for a client that left.
HUNG_UP = 499
MESH_TOKEN_HEADER = "x-mesh-token"  # noqa: S105 - a name, no secret
# Methods that change nothing and run no model.
READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Defaults of every response; the page sets its own. Answers are the caller's alone, and a browser only hands JSON to a
# script of the same origin.
SECURITY_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}


def route_of(scope: Scope) -> str:
    """The route's template: one of few, where paths are without number."""
    return str(getattr(scope.get("route"), "path", "unmatched"))


def mesh_guard(token: str) -> Guard | None:
    """A guard that asks for the mesh's token; None when there is no token."""
    if not token:
        return None

    @contextlib.asynccontextmanager
    async def guard(_method: str, _path: str, headers: Mapping[str, str]) -> AsyncIterator[str]:
        if not hmac.compare_digest(headers.get(MESH_TOKEN_HEADER, "").encode(), token.encode()):
            raise Unauthorized("only services of this mesh may call it")
        yield ""

    return guard


class _BadDeadline(MeshError):
    status = 400
    title = "Invalid request"


@dataclass(frozen=True, slots=True)
class DeadlineMiddleware:
    """Run a request under a deadline and end it early when its client leaves.

    Attributes:
        max_s: seconds that a request may take; `x-deadline-ms` can lower it to `min_s`.
        max_body: bytes of a request's body.
        admission: bounds the requests in flight, those of `READING` excepted; None bounds none.
        guard: authorises every request but probes; None lets all in.
        files: routes whose replies are files: they may take longer, as long as their clients read.
    """

    app: ASGIApp
    _: KW_ONLY
    metrics: Metrics
    max_s: float
    min_s: float = 0.0
    max_body: int
    admission: Admission | None = None
    guard: Guard | None = None
    files: frozenset[str] = frozenset()

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
            if response.status is None:
                problem = problem_reply(error.problem(response.request_id), error.headers)
                await problem(scope, receive, response.send)
        except ClientGone:
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
        budget = Budget(_deadline_s(headers, self.min_s, self.max_s))
        token = current_budget.set(budget)
        # A reading request takes no place, and its body, which means nothing, is never kept.
        reads = scope["method"] in READING
        admission = None if reads else self.admission
        body = Body(receive, admission)
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    caller = ""
                    if self.guard:
                        context = self.guard(scope["method"], scope["path"], headers)
                        caller = await stack.enter_async_context(context)
                    if not reads:
                        # A deadline of the caller's own is the whole time that it has.
                        rate = None if DEADLINE_HEADER in headers else UPLOAD_RATE
                        upload_s = min(UPLOAD_S, budget.left())
                        await body.arrive(announced(headers), self.max_body, upload_s, rate)
                        if rate and budget.elapsed_ms() > 1000 * min(UPLOAD_S, budget.total_s / 2):
                            budget = Budget(budget.total_s)
                            current_budget.set(budget)
                except MeshError:
                    await body.drain()
                    raise
                if caller:
                    stack.enter_context(structlog.contextvars.bound_contextvars(caller=caller))
                gone = asyncio.Event()
                watcher = await stack.enter_async_context(beside(_wait_for_hang_up(receive, gone)))
                # A client that left before its request was read takes no place, and no work is begun for it.
                for _ in range(HANG_UP_PASSES):
                    await asyncio.sleep(0)
                if watcher.done():
                    raise ClientGone
                if admission:
                    place = admission.place(min(PLACE_S, budget.left()), watcher, scope["path"])
                    await stack.enter_async_context(place)
                stack.enter_context(self.metrics.in_flight.labels(self.metrics.service).track_inprogress())
                await self._handle(scope, body.replay(gone), watcher, response, budget)
        finally:
            body.release()
            current_budget.reset(token)

    async def _handle(
        self, scope: Scope, receive: Receive, watcher: "asyncio.Future[None]", response: "_Response", budget: Budget
    ) -> None:
        handler = asyncio.ensure_future(self.app(scope, receive, response.send))
        try:
            await asyncio.wait({handler, watcher}, timeout=budget.left(), return_when=asyncio.FIRST_COMPLETED)
            if response.complete and not handler.done():
                # The server reports the end of a response as a disconnect too.
                await asyncio.wait({handler}, timeout=budget.left())
            elif response.status is not None and route_of(scope) in self.files:
                await response.go_on({handler, watcher}, self.max_s)
            if handler.done():
                error = None if handler.cancelled() else handler.exception()
                if error is not None:
                    log.error("unhandled", error=type(error).__name__, exc_info=error)
                    if response.status is None:
                        raise MeshError("the service failed; its log has the details under this request id") from error
            elif watcher.done():
                raise ClientGone
            elif response.status is None:
                raise DeadlineExceeded(f"not done within {budget.total_s:.1f} s")
            else:
                self.metrics.cut_short.labels(self.metrics.service, "deadline in stream").inc()
        finally:
            handler.cancel()
            _, stuck = await asyncio.wait({handler}, timeout=CANCEL_GRACE_S)
            if stuck:
                log.error("handler ignores cancellation", tasks=1)


def announced(headers: Mapping[str, str]) -> int:
    """Bytes of a request's body by its headers; 0 where they do not say."""
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _deadline_s(headers: dict[str, str], min_s: float, max_s: float) -> float:
    value = headers.get(DEADLINE_HEADER)
    if value is None:
        return max_s
    if not value.isdecimal() or len(value) > 9 or int(value) == 0:
        raise _BadDeadline(f"{DEADLINE_HEADER} must be a positive whole number of milliseconds")
    return min(max_s, max(min_s, int(value) / 1000))


async def _wait_for_hang_up(receive: Receive, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


class _Response:
    """The send side: keeps the status, and adds the request id and `SECURITY_HEADERS`."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status: int | None = None
        self.complete = False
        self._pieces = 0

    async def go_on(self, ends: "set[asyncio.Future[None]]", piece_s: float) -> None:
        """Wait for one of `ends` while pieces go out, each within `piece_s`."""
        pieces = -1
        while pieces < self._pieces and not any(end.done() for end in ends):
            pieces = self._pieces
            await asyncio.wait(ends, timeout=piece_s, return_when=asyncio.FIRST_COMPLETED)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", []))
            own = {key.lower() for key, _ in headers}
            headers += [(key, value) for key, value in SECURITY_HEADERS.items() if key not in own]
            headers.append((REQUEST_ID_HEADER.encode(), self.request_id.encode()))
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True
        await self._send(message)
        self._pieces += 1


def problem_body(problem: Problem) -> bytes:
    return json.dumps(problem.model_dump(mode="json")).encode()


def problem_reply(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    return Response(problem_body(problem), problem.status, headers, PROBLEM_TYPE)
