"""Calls from the command line to one service: its reply, its refusal, or its absence."""

from typing import Self, TypeVar

import httpx
from pydantic import ValidationError

from proto.base import Contract, Problem
from services.kit.client import leads_elsewhere
from services.kit.deadline import MESH_TOKEN_HEADER

Reply = TypeVar("Reply", bound=Contract)

UNPROCESSABLE, GATEWAY_TIMEOUT = 422, 504


class Unreachable(Exception):
    """No reply of the service: it is not up, or the connection broke."""


class Refused(Exception):
    """The service answered with a problem document."""

    def __init__(self, problem: Problem) -> None:
        details = "; ".join(f"{error.field}: {error.message}" for error in problem.errors)
        super().__init__(details or problem.detail or problem.title)
        self.problem = problem


def bearer(key: str) -> dict[str, str]:
    """The header that carries a gateway's key; empty without one."""
    return {"authorization": f"Bearer {key}"} if key else {}


class Caller:
    """Calls to the service at `url`; all raise Unreachable when nobody answers, and Refused when it refuses.

    Args:
        token: the mesh's, where it has one.
        key: of the gateway, where `url` is one and asks for it.
    """

    def __init__(
        self,
        service: str,
        url: str,
        call_s: float,
        *,
        token: str = "",
        key: str = "",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {MESH_TOKEN_HEADER: token} if token else bearer(key)
        self._http = httpx.Client(base_url=url, timeout=call_s, transport=transport, headers=headers, trust_env=False)
        self._service = service
        self._call_s = call_s
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, reply: type[Reply], message: Contract | None = None) -> Reply:
        """The service's reply to a contract, or to a path alone."""
        return self.read(self.send(method, path, message.model_dump_json().encode() if message else None), reply)

    def read(self, content: bytes, reply: type[Reply]) -> Reply:
        """A reply's content as its contract."""
        try:
            return reply.model_validate_json(content)
        except ValidationError as error:
            raise Unreachable(f"what answers at {self.url} is no {self._service} of this version") from error

    def send(self, method: str, path: str, content: bytes | None = None, kind: str = "application/json") -> bytes:
        """A reply's content; `kind` is the media type of what is sent."""
        if leads_elsewhere(path):
            detail = f"{path}: `.` and `..` name no collection and no document"
            raise Refused(Problem(title="Invalid request", status=UNPROCESSABLE, detail=detail))
        headers = {"content-type": kind} if content is not None else None
        try:
            reply = self._http.request(method, path, content=content, headers=headers)
        except httpx.ReadTimeout as error:
            detail = f"the {self._service} at {self.url} did not answer within {self._call_s:.0f} s"
            raise Refused(Problem(title="Timeout", status=GATEWAY_TIMEOUT, detail=detail)) from error
        except httpx.HTTPError as error:
            why = f"is not up ({type(error).__name__}): start the mesh with `cragmesh up`"
            raise Unreachable(f"the {self._service} at {self.url} {why}") from error
        if reply.is_success:
            return reply.content
        try:
            problem = Problem.model_validate_json(reply.content)
        except ValidationError:
            raise Unreachable(f"{self.url} answered {reply.status_code} and no problem document") from None
        raise Refused(problem)
