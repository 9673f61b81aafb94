"""Bounds of a service's load: requests in flight, and the bytes of their bodies."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from starlette.types import Message, Receive

from services.kit.errors import MeshError, Overloaded

# Bodies that may arrive at a time for each place, so that slow senders hold nobody up.
UPLOADS_A_PLACE = 8
# Of all bodies together; a fraction of a service's memory, since it keeps several copies of what it parses.
BODIES_BYTES = 128 * 1024 * 1024
# A refused upload is read to its end within these bounds, so that the client sees the refusal and no reset connection.
DRAIN_BYTES = 128 * 1024 * 1024
DRAIN_S = 5.0


class ClientGone(Exception):
    """The client hung up."""


class BodyTooLarge(MeshError):
    status = 413
    title = "Request too large"


class BodyTimeout(MeshError):
    status = 408
    title = "Request timeout"


class Admission:
    """Bounds the requests in flight, the bodies that arrive, and the bytes of all bodies.

    A request takes a place once its body is there, so that slow senders cannot take them all. Where none is free it
    waits a moment in a queue, which is as long as there are places. A body that is alone may be larger than the bound.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_flight = 0
        self._uploads = 0
        self._held = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        # Called when a place is taken or freed; `IdleLane` gives way then.
        self.changed: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def upload(self, announced: int) -> Iterator[None]:
        """Count a body of `announced` bytes (0: unknown) while it arrives.

        Raises:
            Overloaded: it would be refused once it is there, or too many are arriving.
        """
        if self.in_flight >= self.limit and len(self._waiting) >= self.limit:
            raise self._full()
        if self._uploads >= UPLOADS_A_PLACE * self.limit:
            raise Overloaded(f"{self._uploads} requests are on their way in, which is all this service takes at a time")
        self._check_room(announced, beside=0)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    def hold(self, size: int, *, beside: int) -> None:
        """Count bytes until `release`, `beside` others of the same body.

        Raises:
            Overloaded: other bodies leave too little room.
        """
        self._check_room(size, beside=beside)
        self._held += size

    def release(self, size: int) -> None:
        self._held -= size

    @contextlib.asynccontextmanager
    async def place(self, wait_s: float, gone: "asyncio.Future[None]", path: str = "") -> AsyncIterator[None]:
        """Take a place while the context is open; a service may bound some paths further.

        Args:
            wait_s: seconds to wait for a free one.
            gone: done when the client has left.

        Raises:
            Overloaded: no place came free, or the queue is full.
            ClientGone: the client hung up meanwhile.
        """
        if self.in_flight < self.limit:
            self.in_flight += 1
            self.changed()
        else:
            await self._wait(wait_s, gone)
        try:
            yield
        finally:
            self._leave()

    async def _wait(self, wait_s: float, gone: "asyncio.Future[None]") -> None:
        if len(self._waiting) >= self.limit:
            raise self._full()
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await asyncio.wait({place, gone}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ClientGone
            if not place.done():
                raise self._full()
        except BaseException:
            # The place may have come in the very moment in which the wait ended: the next in turn gets it then.
            if place.done():
                self._leave()
            else:
                self._waiting.remove(place)
            raise

    def _leave(self) -> None:
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self.in_flight -= 1
            self.changed()

    def _check_room(self, size: int, *, beside: int) -> None:
        if self._held > beside and self._held + size > BODIES_BYTES:
            mib = BODIES_BYTES // 2**20
            raise Overloaded(f"the bodies of requests in flight take up the {mib} MiB that this service has for them")

    def _full(self) -> Overloaded:
        return Overloaded(f"{self.limit} requests are in flight, which is all this service takes at a time")


class Body:
    """A request's body: read to its end, and handed to the application piece by piece."""

    def __init__(self, receive: Receive, admission: Admission | None) -> None:
        self._receive = receive
        self._admission = admission
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._more = True

    async def arrive(self, announced: int, max_size: int, within_s: float, rate: float | None = None) -> None:
        """Receive the whole body: every route needs it, and after it `receive` tells of hang-ups only.

        Args:
            rate: bytes a second for which it gets more time; none without.
        """
        if announced > max_size:
            raise _too_large(max_size)
        try:
            with self._admission.upload(announced) if self._admission else contextlib.nullcontext():
                clock = asyncio.get_running_loop().time
                until = clock() + within_s
                async with asyncio.timeout_at(until) as timeout:
                    while self._more:
                        chunk = await self._next()
                        self._keep(chunk, max_size)
                        if rate:
                            # Nothing buys more than the first allowance ahead: a burst is no licence to be silent.
                            until = max(until, min(until + len(chunk) / rate, clock() + within_s))
                            timeout.reschedule(until)
        except TimeoutError:
            # No time is left to drain it either.
            self._more = False
            more = f" and what {rate / 1024:.0f} KiB/s add to them" if rate else ""
            detail = f"the body did not arrive within {within_s:.1f} s{more}"
            # The rest may still come, where the next request is expected.
            raise BodyTimeout(detail, headers={"connection": "close"}) from None

    async def drain(self) -> None:
        """Read to the end and keep nothing, so that the client of a refused upload sees the refusal and no reset."""
        self.release()
        drained = 0
        with contextlib.suppress(TimeoutError, ClientGone):
            async with asyncio.timeout(DRAIN_S):
                while self._more and drained <= DRAIN_BYTES:
                    drained += len(await self._next())

    def release(self) -> None:
        """Drop the body. Its bytes count until here, since the application has them once they are handed over."""
        self._chunks.clear()
        if self._admission:
            self._admission.release(self._size)
        self._size = 0

    def replay(self, gone: asyncio.Event) -> Receive:
        """A `receive` for the application: the body, each piece dropped with its delivery, then the hang-up."""
        ended = False

        async def receive() -> Message:
            nonlocal ended
            if ended:
                await gone.wait()
                return {"type": "http.disconnect"}
            chunk = self._chunks.popleft() if self._chunks else b""
            ended = not self._chunks
            return {"type": "http.request", "body": chunk, "more_body": not ended}

        return receive

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._more = message.get("more_body", False)
        return bytes(message.get("body", b""))

    def _keep(self, chunk: bytes, max_size: int) -> None:
        if self._size + len(chunk) > max_size:
            raise _too_large(max_size)
        if self._admission:
            self._admission.hold(len(chunk), beside=self._size)
        if chunk:
            self._chunks.append(chunk)
            self._size += len(chunk)


def _too_large(max_size: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than {max_size} bytes")
