"""A client of the gateway: one answer at a time, and an error for each way of getting none."""

import asyncio
import json

import httpx
from pydantic import JsonValue, ValidationError

from lab.evaluator.errors import BadRun, Unreachable
from proto.answer import AnswerResponse, Strategies, StrategyInfo
from proto.base import Problem
from proto.options import Options
from services.kit.client import http_client

# The gateway answers within the budget; beyond it is the upload of the pages.
GRACE_S = 15.0
READY_S = 10.0
# A gateway that is too busy says when to come again; nobody comes more often than this for one question.
MAX_BUSY = 20
MAX_RETRY_AFTER_S = 30.0
# Lost connections: a restart of the gateway is waited for so long.
RECONNECT_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
MAX_REPLY_BYTES = 32 * 1024 * 1024
# These refuse every question.
REFUSED_ALL = frozenset({401, 403, 404, 405})


class NoAnswer(Exception):
    """Why this question got no answer; others may get one."""

    def __init__(self, message: str, *, attempts: int) -> None:
        super().__init__(message)
        self.attempts = attempts


class MeshClient:
    """Asks a gateway.

    Args:
        url: its root.
        api_key: sent as a bearer token, if any.
        transport: how it is reached; the network when None.
    """

    def __init__(self, url: str, *, api_key: str = "", transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._http = http_client(transport)
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}

    async def __aenter__(self) -> "MeshClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def describe(self, strategy: str) -> dict[str, JsonValue]:
        """The mesh's description of itself, with the strategy's real name when it is the default.

        Raises:
            Unreachable: no gateway answers there.
            BadRun: it has no strategy of that name, or refuses to answer at all.
        """
        info, ready = await self._strategy(strategy)
        return {"strategy": info.name, "ready": ready, "answers_by": await self.generator()}

    async def parts(self, strategy: str) -> tuple[str, dict[str, Options]]:
        """The strategy's real name, and its parts: to the options that leave each out. Raises as `describe`."""
        info, _ = await self._strategy(strategy)
        return info.name, info.parts

    async def _strategy(self, name: str) -> tuple[StrategyInfo, JsonValue]:
        try:
            ready, listing = await self._get("/readyz"), await self._get("/strategies")
        except (httpx.HTTPError, TimeoutError) as error:
            raise Unreachable(
                f"the gateway at {self.url} is not up ({type(error).__name__}): start it, then run this command again"
            ) from error
        if listing.status_code in REFUSED_ALL:
            raise BadRun(f"{self.url}/strategies: HTTP {listing.status_code}; is CRAGMESH_API_KEY set?")
        try:
            strategies = Strategies.model_validate_json(listing.content).strategies
        except ValidationError as error:
            raise BadRun(f"{self.url}: what answers there is no Cragmesh gateway of this version") from error
        for item in strategies:
            if item.name == name or (not name and item.default):
                return item, _json(ready.content)
        names = ", ".join(sorted(item.name for item in strategies))
        raise BadRun(f"the mesh has no strategy {name!r}: there are {names}")

    async def confidence(self) -> dict[str, JsonValue]:
        """The gateway's description of the confidence that weighs its answers; empty where it has none."""
        try:
            content = _json((await self._get("/services")).content)
        except (httpx.HTTPError, TimeoutError):
            return {}
        confidence = content.get("confidence") if isinstance(content, dict) else None
        return confidence if isinstance(confidence, dict) else {}

    async def generator(self) -> str:
        """The generator: MODEL, or MODEL+ADAPTER; empty where the gateway does not know."""
        name = (await self.confidence()).get("generator")
        return name if isinstance(name, str) else ""

    async def alive(self) -> bool:
        """Whether anything answers at the gateway's address."""
        try:
            await self._get("/healthz")
        except (httpx.HTTPError, TimeoutError):
            return False
        return True

    async def _get(self, path: str) -> httpx.Response:
        async with asyncio.timeout(READY_S):
            return await self._http.get(f"{self.url}{path}", headers=self._headers)

    async def ask(self, body: bytes, *, budget_s: float) -> tuple[AnswerResponse, int]:
        """Post a question; returns the answer, and the attempts that it took.

        Raises:
            NoAnswer: this question was refused, or failed.
            Unreachable: there is no gateway any more.
            BadRun: the gateway refuses every question.
        """
        busy = lost = 0
        while True:
            attempts = busy + lost + 1
            try:
                async with asyncio.timeout(budget_s + GRACE_S):
                    status, headers, content = await self._post(body)
            except TimeoutError:
                raise NoAnswer(f"no answer within {budget_s + GRACE_S:.0f} s", attempts=attempts) from None
            except httpx.HTTPError as error:
                if lost < len(RECONNECT_PAUSES_S):
                    await asyncio.sleep(RECONNECT_PAUSES_S[lost])
                    lost += 1
                    continue
                if await self.alive():
                    raise NoAnswer(f"connection lost ({type(error).__name__})", attempts=attempts) from error
                raise Unreachable(
                    f"the gateway at {self.url} is gone ({type(error).__name__}); what it answered is kept: run this "
                    "command again when it is back"
                ) from error
            if status in (429, 503) and busy < MAX_BUSY:
                await asyncio.sleep(_retry_after(headers))
                busy += 1
                continue
            return self._read(status, content, attempts), attempts

    async def _post(self, body: bytes) -> tuple[int, httpx.Headers, bytes]:
        headers = self._headers | {"content-type": "application/json", "accept": "application/json"}
        async with self._http.stream("POST", f"{self.url}/answer", content=body, headers=headers) as reply:
            content = b""
            async for chunk in reply.aiter_bytes():
                content += chunk
                if len(content) > MAX_REPLY_BYTES:
                    raise httpx.DecodingError("the reply is too long", request=reply.request)
            return reply.status_code, reply.headers, content

    def _read(self, status: int, content: bytes, attempts: int) -> AnswerResponse:
        if status in REFUSED_ALL:
            raise BadRun(f"{self.url}/answer: HTTP {status} {_problem(content)}")
        if status != httpx.codes.OK:
            raise NoAnswer(f"HTTP {status} {_problem(content)}".strip(), attempts=attempts)
        try:
            return AnswerResponse.model_validate_json(content)
        except ValidationError as error:
            raise NoAnswer(f"a reply with {error.error_count()} errors", attempts=attempts) from error


def _json(content: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(content)
    except ValueError:
        return None
    return value


def _problem(content: bytes) -> str:
    try:
        problem = Problem.model_validate_json(content)
    except ValidationError:
        return ""
    fields = "; ".join(f"{error.field}: {error.message}" for error in problem.errors[:3])
    return " - ".join(part for part in (problem.title, problem.detail, fields) if part)[:500]


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds, as the gateway writes them; a date, which it never writes, counts as one second."""
    text = headers.get("retry-after", "")
    return min(float(text), MAX_RETRY_AFTER_S) if text.isdigit() else 1.0
