"""The deadline middleware over real sockets' semantics: expiry, hang-up, bodies, admission, probes."""

import asyncio
import contextlib
import socket
import tracemalloc
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from lab.goldens import virtual
from services.kit import deadline
from services.kit.admission import UPLOADS_A_PLACE, Admission
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import beside
from services.kit.deadline import READING, DeadlineMiddleware
from services.kit.errors import Unauthorized
from services.kit.telemetry import Metrics, current_trace
from tests.unit.kit.serving import serving, until

pytestmark = pytest.mark.anyio


class App:
    """Waits `seconds` unless cancelled, then answers with the body's length."""

    def __init__(self, seconds: float = 0.0, *, fail: bool = False) -> None:
        self.seconds = seconds
        self.fail = fail
        self.began = 0
        self.cancelled = asyncio.Event()
        self.budget: Budget | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began += 1
        message = await receive()
        self.budget = current_budget.get()
        if self.fail:
            raise RuntimeError("secret detail")
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        await Response(str(len(message["body"])))(scope, receive, send)


def guarded(
    app: Any, *, max_s: float = 5, min_s: float = 0, max_body: int = 1_000, admission: Admission | None = None
) -> Any:
    return DeadlineMiddleware(
        app, metrics=Metrics("test"), max_s=max_s, min_s=min_s, max_body=max_body, admission=admission
    )


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def post(app: Any, content: Any = b"", deadline_ms: str | None = None, **bounds: Any) -> httpx.Response:
    """The reply to one request under these bounds."""
    headers = {} if deadline_ms is None else {"x-deadline-ms": deadline_ms}
    async with client(guarded(app, **bounds)) as http:
        return await http.post("/", content=content, headers=headers)


async def test_a_request_in_time_passes_with_its_budget_and_id() -> None:
    app = App()
    async with client(guarded(app)) as http:
        reply = await http.post("/", content=b"12345", headers={"x-deadline-ms": "4000", "x-request-id": "abc"})
    assert (reply.status_code, reply.text, reply.headers["x-request-id"]) == (200, "5", "abc")
    assert app.budget is not None
    assert app.budget.total_s == 4
    assert (current_budget.get(), current_trace.get()) == (None, None), "nothing leaks into the caller's context"


async def test_at_the_deadline_the_handler_is_cancelled_and_504_is_a_problem() -> None:
    app = App(5)
    reply = await post(app, deadline_ms="50")
    assert reply.status_code == 504
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["title"] == "Deadline exceeded"
    assert app.cancelled.is_set()


@pytest.mark.parametrize("value", ["0", "-5", "soon", "1e9", "9999999999", ""])
async def test_a_malformed_deadline_is_refused(value: str) -> None:
    reply = await post(App(), deadline_ms=value, min_s=4)
    assert reply.status_code == 400
    assert "x-deadline-ms" in reply.json()["detail"]


@pytest.mark.parametrize(("header", "total_s"), [("1", 4), ("4500", 4.5), ("60000", 5)])
async def test_a_deadline_lies_between_the_services_least_and_most(header: str, total_s: float) -> None:
    app = App()
    assert (await post(app, deadline_ms=header, min_s=4, max_s=5)).status_code == 200
    assert app.budget is not None
    assert app.budget.total_s == total_s


async def test_every_response_tells_browsers_to_keep_nothing_guess_nothing_and_run_nothing() -> None:
    own = Response(headers={"Cache-Control": "max-age=60", "content-security-policy": "default-src 'self'"})

    async with client(guarded(App())) as http, client(guarded(own)) as page:
        for reply in (await http.get("/"), await http.post("/", headers={"x-deadline-ms": "0"})):
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        reply = await page.get("/")
    assert reply.headers.get_list("cache-control") == ["max-age=60"], "a response's own headers stay"
    assert reply.headers.get_list("content-security-policy") == ["default-src 'self'"]
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_the_guard_is_asked_about_all_but_probes_and_is_open_while_a_request_is_served() -> None:
    inside: list[str] = []

    @asynccontextmanager
    async def doorman(method: str, path: str, headers: Mapping[str, str]) -> AsyncIterator[str]:
        if "authorization" not in headers:
            raise Unauthorized("nobody")
        inside.append(f"{method} {path}")
        yield "somebody"
        inside.clear()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert inside == [f"{scope['method']} {scope['path']}"] or scope["path"] == "/readyz"
        await App()(scope, receive, send)

    async with client(DeadlineMiddleware(app, metrics=Metrics("test"), max_s=5, max_body=10, guard=doorman)) as http:
        for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
            assert (await http.request(method, "/a")).status_code == 401, method
            assert (await http.request(method, "/a", headers={"authorization": "x"})).status_code == 200, method
        assert inside == []
        assert (await http.get("/readyz")).status_code == 200


async def test_an_unhandled_error_is_a_500_problem_without_its_message() -> None:
    reply = await post(App(fail=True))
    assert reply.status_code == 500
    assert "secret" not in reply.text


async def test_a_body_over_the_limit_is_413_whether_announced_or_not() -> None:
    async def chunks() -> Any:
        for _ in range(20):
            yield b"x" * 100

    for content in (b"x" * 2_000, chunks()):
        reply = await post(App(), content)
        assert reply.status_code == 413
        assert "1000 bytes" in reply.json()["detail"]


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

    async def run(self, app: Any, method: str = "POST", headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        scope = {"type": "http", "method": method, "path": "/", "headers": headers}
        await app(scope, self.receive, self.send)


async def status(app: Any, *messages: Message, method: str = "POST") -> int:
    """The status that a client gets for these messages."""
    wire = Wire(*messages)
    await wire.run(app, method)
    return int(wire.sent[0]["status"])


WHOLE = {"type": "http.request", "body": b"{}", "more_body": False}
GONE = {"type": "http.disconnect"}


@pytest.mark.parametrize("hang_up", [True, False], ids=["a hang-up", "the server's end"])
async def test_what_ends_a_request_cancels_the_handler_at_once(hang_up: bool) -> None:
    app = App(3_600)
    wire = Wire(WHOLE)
    task = asyncio.create_task(wire.run(guarded(app, max_s=3_600)))
    await until(lambda: app.began)
    if hang_up:
        wire.inbox.put_nowait(GONE)
    else:
        task.cancel()
    done, _ = await asyncio.wait({task}, timeout=240)
    assert done
    assert app.cancelled.is_set()
    assert wire.sent == []


class Held(App):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began += 1
        await self.go.wait()
        await App()(scope, receive, send)


async def test_admission_refuses_with_retry_after_and_recovers() -> None:
    admission = Admission(1)
    app = Held()
    async with client(guarded(app, admission=admission)) as http:
        first = asyncio.create_task(http.post("/"))
        await until(lambda: app.began)
        refused = await http.post("/", content=b"x" * 500)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        app.go.set()
        assert (await first).status_code == 200
        assert (await http.post("/")).status_code == 200
    assert admission.in_flight == 0


async def test_those_who_wait_for_a_place_get_it_in_turn_and_no_more_wait_than_there_are_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadline, "PLACE_S", 30.0)
    admission = Admission(2)
    app = Held()
    mesh = guarded(app, admission=admission, max_s=60)
    served = []

    async def ask(number: int) -> None:
        served.append((number, await status(mesh, WHOLE)))

    tasks = []
    for number in range(4):
        tasks.append(asyncio.create_task(ask(number)))
        # Past the look for hang-ups, so that the next one comes behind it.
        await asyncio.sleep(0.01)
    assert await status(mesh, WHOLE) == 429
    assert (app.began, admission.in_flight) == (2, 2)
    app.go.set()
    await asyncio.gather(*tasks)
    assert served == [(number, 200) for number in range(4)]
    assert admission.in_flight == 0


async def test_one_who_leaves_the_queue_for_a_place_leaves_it_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "PLACE_S", 30.0)
    admission = Admission(2)
    app = Held()
    mesh = guarded(app, admission=admission, max_s=60)
    working = [asyncio.create_task(Wire(WHOLE).run(mesh)) for _ in range(2)]
    await until(lambda: app.began == 2)
    leaving, staying = Wire(WHOLE), Wire(WHOLE)
    waiting = [asyncio.create_task(wire.run(mesh)) for wire in (leaving, staying)]
    await asyncio.sleep(0.01)
    leaving.inbox.put_nowait(GONE)
    await waiting[0]
    assert leaving.sent == []
    app.go.set()
    await asyncio.gather(*working, waiting[1])
    assert staying.sent[0]["status"] == 200
    assert (app.began, admission.in_flight) == (3, 0)


async def test_a_place_given_up_as_it_comes_is_passed_on() -> None:
    admission = Admission(1)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        async with admission.place(30, gone):
            pass

    async with admission.place(30, gone):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert admission.in_flight == 0


async def test_a_client_that_is_gone_already_takes_no_place_and_begins_no_work() -> None:
    app = App(5)
    admission = Admission(1)
    mesh = guarded(app, admission=admission)
    for _ in range(3):
        wire = Wire(WHOLE, GONE)
        await wire.run(mesh)
        assert wire.sent == []
    assert (app.began, admission.in_flight) == (0, 0)


@pytest.mark.parametrize("size", [3, 100_000])
async def test_a_newcomer_is_not_refused_for_those_who_hung_up_before_they_were_heard(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    # However busy the machine.
    monkeypatch.setattr(deadline, "PLACE_S", 30.0)
    for_nobody = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal for_nobody
        headers = dict(scope["headers"])
        if headers[b"content-length"] == str(size).encode():
            for_nobody += 1
            await asyncio.sleep(3600)
        await App()(scope, receive, send)

    admission = Admission(10)
    request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size
    mesh = guarded(app, max_s=60, max_body=size, admission=admission)
    async with serving(mesh, grace_s=1) as (_, address):
        for _ in range(5):
            for _ in range(10):
                with socket.create_connection(address) as leaving:
                    leaving.sendall(request)
            async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
                reply = await http.post("http://{}:{}/".format(*address), content=b"{}")
            assert reply.status_code == 200
    assert admission.in_flight == 0
    # None, unless a busy kernel is late with the word of a hang-up.
    assert for_nobody < 25


async def test_those_who_send_nothing_but_headers_take_no_place() -> None:
    admission = Admission(1)
    mesh = guarded(App(), admission=admission)
    idle = [asyncio.create_task(Wire().run(mesh)) for _ in range(UPLOADS_A_PLACE - 1)]
    await asyncio.sleep(0.01)
    assert await status(mesh, WHOLE) == 200
    idle.append(asyncio.create_task(Wire().run(mesh)))
    await asyncio.sleep(0.01)
    assert await status(mesh, WHOLE) == 429, "more are on their way than are ever wanted"
    for task in idle:
        task.cancel()
    await asyncio.wait(idle)
    assert await status(mesh, WHOLE) == 200


@pytest.mark.parametrize(("upload_s", "max_s"), [(0.02, 600), (600, 0.05)])
async def test_a_body_gets_no_more_time_than_an_upload_or_its_request_and_then_the_connection_ends(
    monkeypatch: pytest.MonkeyPatch, upload_s: float, max_s: float
) -> None:
    monkeypatch.setattr(deadline, "UPLOAD_S", upload_s)
    wire = Wire({"type": "http.request", "body": b"{", "more_body": True})
    await wire.run(guarded(App(), max_s=max_s))
    assert wire.sent[0]["status"] == 408
    assert (b"connection", b"close") in wire.sent[0]["headers"]


@pytest.mark.parametrize(
    ("piece", "headers", "expected"),
    [(2**19, [], 200), (2**16, [], 408), (2**19, [(b"x-deadline-ms", b"30000")], 408)],
    ids=["steady", "a drip", "a deadline of the caller's own"],
)
def test_a_body_that_keeps_coming_gets_more_time_and_its_request_all_of_its_own(
    piece: int, headers: list[tuple[bytes, bytes]], expected: int
) -> None:
    app = App(20)

    async def main() -> int:
        wire = Wire()

        async def send_slowly() -> None:
            for number in range(20):
                await asyncio.sleep(1)
                wire.inbox.put_nowait({"type": "http.request", "body": b"x" * piece, "more_body": number < 19})

        async with beside(send_slowly()):
            await wire.run(guarded(app, max_s=30, max_body=2**26), headers=headers)
        return int(wire.sent[0]["status"])

    assert virtual.run(main()) == expected


def test_a_burst_buys_no_silence() -> None:
    async def main() -> float:
        wire = Wire({"type": "http.request", "body": b"x" * 2**25, "more_body": True})
        began = asyncio.get_running_loop().time()
        await wire.run(guarded(App(), max_s=30, max_body=2**26))
        assert wire.sent[0]["status"] == 408
        return asyncio.get_running_loop().time() - began

    assert virtual.run(main()) < 2 * deadline.UPLOAD_S


@pytest.mark.parametrize(("files", "piece_s", "whole"), [(True, 20, True), (True, 40, False), (False, 20, False)])
def test_a_file_goes_out_as_long_as_it_is_read(files: bool, piece_s: float, whole: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = SimpleNamespace(path="/file")

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(5):
                yield b"x"

        await StreamingResponse(pieces())(scope, receive, send)

    class Slow(Wire):
        async def send(self, message: Message) -> None:
            await asyncio.sleep(piece_s)
            await super().send(message)

    routes = frozenset({"/file"} if files else ())
    mesh = DeadlineMiddleware(app, metrics=Metrics("test"), max_s=30, max_body=10, files=routes)
    wire = Slow()
    virtual.run(wire.run(mesh, "GET"))
    assert (len(wire.sent) == 7) is whole


async def test_a_refused_body_is_drained_without_a_place_and_not_beyond_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.kit.admission.DRAIN_S", 90.0)
    admission = Admission(1)
    mesh = guarded(App(), admission=admission, max_body=10)
    # Unannounced, and over the limit with its last piece: nothing comes after it.
    async with asyncio.timeout(240):
        assert await status(mesh, {"type": "http.request", "body": b"x" * 11, "more_body": False}) == 413
    slow = Wire({"type": "http.request", "body": b"x" * 11, "more_body": True})
    draining = asyncio.create_task(slow.run(mesh))
    await asyncio.sleep(0.01)
    assert (draining.done(), admission.in_flight) == (False, 0)
    for _ in range(UPLOADS_A_PLACE + 1):
        assert await status(mesh, WHOLE) == 200
    slow.inbox.put_nowait({"type": "http.request", "body": b"x", "more_body": False})
    await draining
    assert slow.sent[0]["status"] == 413


@pytest.mark.parametrize("method", sorted(READING))
async def test_the_body_of_a_request_that_only_reads_is_neither_waited_for_nor_kept(method: str) -> None:
    app = App()
    # It never ends, and is larger than any body may be.
    wire = Wire(*[{"type": "http.request", "body": b"x" * 600, "more_body": True}] * 4)
    await wire.run(guarded(app, admission=Admission(0)), method)
    assert wire.sent[0]["status"] == 200
    assert wire.sent[1]["body"] == b"0"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "PROPFIND"])
async def test_every_other_method_needs_a_place(method: str) -> None:
    assert await status(guarded(App(), admission=Admission(0)), WHOLE, method=method) == 429


async def test_bodies_in_hand_are_bounded_together_and_one_alone_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.kit.admission.BODIES_BYTES", 1_000)
    admission = Admission(5)
    app = Held()
    mesh = guarded(app, admission=admission, max_body=2_000)
    async with client(mesh) as http:
        large = asyncio.create_task(http.post("/", content=b"x" * 1_500))
        await until(lambda: app.began)
        assert (await http.post("/", content=b"x")).status_code == 429
        app.go.set()
        assert (await large).text == "1500"
        app.go.clear()
        first = asyncio.create_task(http.post("/", content=b"x" * 600))
        await until(lambda: app.began == 2)
        refused = await http.post("/", content=b"x" * 401)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        second = asyncio.create_task(http.post("/", content=b"x" * 400))
        await until(lambda: app.began == 3)
        app.go.set()
        assert [(await task).status_code for task in (first, second)] == [200, 200]
        assert (await http.post("/", content=b"x" * 2_000)).status_code == 200


async def test_bytes_of_bodies_that_never_came_whole_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.kit.admission.BODIES_BYTES", 1_000)
    admission = Admission(5)
    mesh = guarded(App(), admission=admission, max_body=2_000)
    half = {"type": "http.request", "body": b"x" * 900, "more_body": True}
    await Wire(half, GONE).run(mesh)
    cancelled = asyncio.create_task(Wire(half).run(mesh))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await cancelled
    async with client(mesh) as http:
        replies = await asyncio.gather(*(http.post("/", content=b"x" * 500) for _ in range(2)))
    assert [reply.status_code for reply in replies] == [200, 200]


async def test_a_body_is_not_kept_beside_what_the_application_makes_of_it() -> None:
    size = 8 * 2**20
    freed = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal freed
        message = await receive()
        before = tracemalloc.get_traced_memory()[0]
        del message
        freed = before - tracemalloc.get_traced_memory()[0]
        await App()(scope, receive, send)

    tracemalloc.start()
    try:
        pieces = ({"type": "http.request", "body": bytes(size), "more_body": more} for more in (True, False))
        await Wire(*pieces).run(guarded(app, max_body=2 * size, admission=Admission(1)))
    finally:
        tracemalloc.stop()
    assert freed > size // 2


async def test_probes_need_no_budget() -> None:
    async def probe(scope: Scope, receive: Receive, send: Send) -> None:
        assert current_budget.get() is None
        await JSONResponse(scope["path"])(scope, receive, send)

    async with client(guarded(probe, admission=Admission(0))) as http:
        assert (await http.get("/healthz")).json() == "/healthz"
