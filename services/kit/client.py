"""The one HTTP client between services: deadline and trace headers, one retry inside the budget, a breaker a target."""

import asyncio
from functools import lru_cache
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from proto.base import Contract
from services.kit.breaker import Breaker
from services.kit.budget import DEADLINE_HEADER, Budget
from services.kit.errors import (
    BadReply,
    ServiceFailure,
    ServiceOverloaded,
    ServiceRejected,
    ServiceTimeout,
    ServiceUnavailable,
)
from services.kit.telemetry import current_trace, log

Reply = TypeVar("Reply", bound=Contract)

RETRY_PAUSE_S = 0.05
JSON = "application/json"
MAX_REPLY_BYTES = 32 * 1024 * 1024
# What httpx would unpack.
PACKED = ("br", "deflate", "gzip", "zstd")
# A time-out under a shorter allowance than this says more about the caller's hurry than about the service.
MIN_COUNTED_TIMEOUT_S = 1.0
# httpx resolves them, so that `/a/documents/..` would reach `/a`.
_DOTS = frozenset({".", ".."})
# Paths of OpenAI's API and vLLM's that even a stuck engine answers, so that their success proves nothing.
LIGHT_PATHS = frozenset({"/v1/models", "/tokenize", "/detokenize"})


class _NoCookies(httpx.Cookies):
    """Services set no cookies, and looking for them took a tenth of a call."""

    def extract_cookies(self, response: httpx.Response) -> None:
        pass


class _Client(httpx.AsyncClient):
    cookies: Any = _NoCookies()


_url = lru_cache(maxsize=256)(httpx.URL)


def leads_elsewhere(path: str) -> bool:
    """Whether a client would resolve a path's parts to another path."""
    return not _DOTS.isdisjoint(path.partition("?")[0].split("/"))


def http_client(transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """A pooled client without time-outs: the allowance of each call bounds it."""
    return _Client(
        transport=transport,
        # asyncio.timeout bounds every call as a whole, which httpx's phases do not.
        timeout=None,
        limits=httpx.Limits(max_connections=256, max_keepalive_connections=32, keepalive_expiry=4.0),
        follow_redirects=False,
        trust_env=False,
    )


class ServiceClient:
    """Calls to one service, whose name appears in `degraded`, by a client from `http_client` that all targets share."""

    def __init__(
        self,
        name: str,
        base_url: str,
        http: httpx.AsyncClient,
        *,
        breaker: Breaker | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.base_url = base_url.rstrip("/")
        self.breaker = breaker or Breaker()
        self._http = http
        self.headers = headers or {}

    async def call(
        self, path: str, message: Contract | None, reply: type[Reply], *, allow_s: float, method: str = "POST"
    ) -> Reply:
        """Send a contract, or a path alone, and read the reply.

        Raises:
            ServiceFailure: see `services.kit.errors`; never anything else but cancellation.
        """
        body = None if message is None else message.model_dump_json().encode()
        return self.parse(await self.request(method, path, body, allow_s=allow_s), reply)

    def parse(self, content: bytes, reply: type[Reply]) -> Reply:
        """A reply's content as its contract.

        Raises:
            BadReply: it is not.
        """
        try:
            return reply.model_validate_json(content)
        except ValidationError as error:
            raise BadReply(self.name, f"{error.error_count()} errors in the reply") from error

    async def request(
        self, method: str, path: str, body: bytes | None = None, *, allow_s: float, media_type: str = JSON
    ) -> bytes:
        """The body of a 2xx reply to these bytes, within `allow_s` for everything, the retry included.

        Raises:
            ServiceFailure: see `services.kit.errors`; never anything else but cancellation.
        """
        if leads_elsewhere(path):
            raise ServiceRejected(self.name, "no such path", status=httpx.codes.NOT_FOUND)
        if allow_s <= 0:
            raise ServiceTimeout(self.name, "no time left")
        if not self.breaker.admit():
            raise ServiceUnavailable(self.name, "circuit breaker is open")
        budget = Budget(allow_s)
        try:
            async with asyncio.timeout(allow_s):
                reply = await self._with_retry(method, path, body, budget, media_type)
        except TimeoutError:
            if allow_s >= MIN_COUNTED_TIMEOUT_S:
                self.breaker.failed()
            else:
                self.breaker.abandoned()
            raise ServiceTimeout(self.name, f"no answer within {allow_s:.2f} s") from None
        except ServiceUnavailable:
            self.breaker.failed()
            raise
        except ServiceFailure:
            # The service answered, so that opening the breaker would not help.
            self._count_answer(path)
            raise
        except BaseException:
            self.breaker.abandoned()
            raise
        self._count_answer(path)
        return reply

    def _count_answer(self, path: str) -> None:
        if path in LIGHT_PATHS:
            self.breaker.abandoned()
        else:
            self.breaker.succeeded()

    async def _with_retry(self, method: str, path: str, body: bytes | None, budget: Budget, media_type: str) -> bytes:
        try:
            return await self._once(method, path, body, budget, media_type)
        except ServiceUnavailable as error:
            log.debug("retry", target=self.name, method=method, cause=error.detail)
            await asyncio.sleep(RETRY_PAUSE_S)
            try:
                return await self._once(method, path, body, budget, media_type)
            except ServiceRejected as rejection:
                # The first attempt did the work, and its reply was lost.
                if method == "DELETE" and error.lost and rejection.status == httpx.codes.NOT_FOUND:
                    return b""
                raise

    async def _once(self, method: str, path: str, body: bytes | None, budget: Budget, media_type: str) -> bytes:
        trace = current_trace.get()
        headers = {
            # A reply may unpack to a thousand times its size, at once.
            "accept-encoding": "identity",
            **self.headers,
            **(trace.outgoing() if trace else {}),
            DEADLINE_HEADER: str(max(1, int(budget.left() * 1000))),
        }
        if body is not None:
            headers["content-type"] = media_type
        try:
            async with self._http.stream(method, _url(self.base_url + path), content=body, headers=headers) as response:
                content = await self._read(response)
        except (httpx.ConnectError, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            # Every call of the mesh may be sent twice, so a lost connection is retried as well: answers are pure
            # functions of their bodies, and writing or moving a document twice leaves the same document.
            if isinstance(error, httpx.RemoteProtocolError) and "disconnected" not in str(error):
                raise BadReply(self.name, "not HTTP") from error
            lost = not isinstance(error, httpx.ConnectError)
            raise ServiceUnavailable(self.name, type(error).__name__, lost=lost) from error
        except httpx.HTTPError as error:
            raise BadReply(self.name, type(error).__name__) from error
        status = response.status_code
        if status == httpx.codes.SERVICE_UNAVAILABLE:
            raise ServiceUnavailable(self.name, "HTTP 503")
        if status == httpx.codes.GATEWAY_TIMEOUT:
            raise ServiceTimeout(self.name, "HTTP 504")
        if status == httpx.codes.TOO_MANY_REQUESTS:
            raise ServiceOverloaded(self.name, "HTTP 429")
        if not 200 <= status < 300:
            raise ServiceRejected(self.name, f"HTTP {status}", status=status, body=content)
        return content

    async def _read(self, response: httpx.Response) -> bytes:
        packed = response.headers.get("content-encoding", "").lower()
        if any(coding in packed for coding in PACKED):
            if response.is_success:
                raise BadReply(self.name, f"content-encoding {packed!r}, which was not asked for")
            # The status says what is wrong.
            return b""
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                raise BadReply(self.name, f"reply is larger than {MAX_REPLY_BYTES} bytes")
            chunks.append(chunk)
        return b"".join(chunks)
