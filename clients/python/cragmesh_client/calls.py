"""Requests and replies without the network, for both clients."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from cragmesh_client.contracts.answer import AnswerRequest, AnswerResponse, StageEvent, Strategies
from cragmesh_client.contracts.base import Contract, Problem
from cragmesh_client.contracts.collections import (
    CollectionInfo,
    Collections,
    DocumentInfo,
    Documents,
    FileDescription,
    Filter,
    Listing,
    Move,
    MoveRequest,
    MoveResponse,
    SearchRequest,
    SearchResponse,
)
from cragmesh_client.contracts.feedback import FeedbackRequest, FeedbackResponse, Verdict
from cragmesh_client.contracts.papers import PapersRequest, PapersResponse
from cragmesh_client.errors import BadReply, ProblemError, problem_error

# Of a call beyond the budget of its question: for connecting and both transfers.
MARGIN_S = 5.0
USUAL_S = 30.0
# For a large file on a slow line.
UPLOAD_S = 300.0
# Statuses that are tried again where `Retry-After` says when.
AGAIN = (429, 503)
# States of a document that is not written yet.
UNDER_WAY = ("waiting", "writing")
# A 503 may come from a proxy that does not say when.
PAUSE_S = 1.0

Reply = TypeVar("Reply")
Event = StageEvent | AnswerResponse
EVENTS: dict[str, type[Contract]] = {"stage": StageEvent, "answer": AnswerResponse, "problem": Problem}


@dataclass(frozen=True)
class Call(Generic[Reply]):
    """A request, the type of its reply, and the seconds that all of it may take.

    Attributes:
        body: a contract, or a file's content, which is of `media_type`.
        repeatable: sent again when the connection is lost, since twice does what once does.
    """

    method: str
    path: str
    reply: type[Reply]
    body: Contract | bytes | None = None
    params: tuple[tuple[str, str], ...] = ()
    seconds: float = USUAL_S + MARGIN_S
    media_type: str = "application/json"
    repeatable: bool = False

    def request(self) -> dict[str, Any]:
        """The arguments of httpx."""
        # Without defaults, so that an older gateway gets no field that it does not know.
        content = self.body.model_dump_json(exclude_defaults=True) if isinstance(self.body, Contract) else self.body
        headers = {} if content is None else {"content-type": self.media_type}
        return {
            "method": self.method,
            "url": self.path,
            "content": content,
            "params": list(self.params),
            "headers": headers,
        }

    def read(self, response: httpx.Response, *, done: bool = False) -> Reply:
        """The reply; None where an earlier attempt had done the call.

        Raises:
            ProblemError: it is a problem document.
            BadReply: it is neither that nor of the call's type.
        """
        if not (response.is_success or done):
            raise refusal(response)
        try:
            return TypeAdapter(self.reply).validate_json(b"null" if done else response.content or b"null")
        except ValidationError as error:
            raise BadReply(f"{self.path}: {error.error_count()} errors in the reply") from error


def refusal(response: httpx.Response) -> ProblemError | BadReply:
    """The exception of a reply that is no success; its body must have been read."""
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        if response.status_code not in AGAIN:
            return BadReply(f"HTTP {response.status_code}, and no problem document")
        problem = Problem(title=response.reason_phrase or "Overloaded", status=response.status_code)
    return problem_error(problem, retry_after_s(response))


def retry_after_s(response: httpx.Response) -> float | None:
    """Seconds until the call may be sent again; None where that is of no use."""
    if response.status_code not in AGAIN:
        return None
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else PAUSE_S


class Events:
    """Reads server-sent events, as their bytes come.

    Attributes:
        answered: whether the answer was among them.
    """

    def __init__(self) -> None:
        self._name = ""
        self._rest = b""
        self.answered = False

    def read(self, chunk: bytes) -> Iterator[Event]:
        """The events that a chunk completes.

        A line ends at CR or LF alone: JSON may hold U+2028, which other readers of lines take for an end.

        Raises:
            ProblemError: the gateway failed on the way.
            BadReply: it is no event of a gateway.
        """
        *lines, self._rest = re.split(rb"\r\n|\n|\r(?!\n|\Z)", self._rest + chunk)
        for line in lines:
            yield from self._line(line.decode(errors="replace"))

    def _line(self, line: str) -> Iterator[Event]:
        field, _, value = line.partition(": ")
        if field == "event":
            self._name = value
        elif field == "data" and (kind := EVENTS.get(self._name)) is not None:
            try:
                event = kind.model_validate_json(value)
            except ValidationError as error:
                raise BadReply(f"{error.error_count()} errors in an event {self._name}") from error
            if isinstance(event, Problem):
                raise problem_error(event)
            assert isinstance(event, Event)  # noqa: S101 - narrows the event's type
            self.answered |= self._name == "answer"
            yield event


def answer(query: str, fields: dict[str, Any]) -> Call[AnswerResponse]:
    body = AnswerRequest.model_validate({"query": query, **fields})
    return Call("POST", "/answer", AnswerResponse, body, seconds=body.budget_s + MARGIN_S)


def papers(query: str, collection: str, fields: dict[str, Any]) -> Call[PapersResponse]:
    body = PapersRequest.model_validate({"query": query, "collection": collection, **fields})
    return Call("POST", "/papers", PapersResponse, body, seconds=body.budget_s + MARGIN_S)


def search(collection: str, queries: str | Sequence[str], fields: dict[str, Any]) -> Call[SearchResponse]:
    texts = (queries,) if isinstance(queries, str) else tuple(queries)
    body = SearchRequest.model_validate({"queries": texts, **fields})
    return Call("POST", f"/collections/{collection}/search", SearchResponse, body)


def collections(filters: Sequence[Filter]) -> Call[Collections]:
    return Call("GET", "/collections", Collections, params=_params(filters))


def collection(name: str, filters: Sequence[Filter]) -> Call[CollectionInfo]:
    return Call("GET", f"/collections/{name}", CollectionInfo, params=_params(filters))


def documents(collection: str, filters: Sequence[Filter], fields: dict[str, Any]) -> Call[Documents]:
    params = (*_fields(Listing.model_validate(fields)), *_params(filters))
    return Call("GET", f"/collections/{collection}/documents", Documents, params=params)


def document(collection: str, id: str) -> Call[DocumentInfo]:
    return Call("GET", _path(collection, id), DocumentInfo, repeatable=True)


def put_document(
    collection: str, id: str, content: bytes, media_type: str, fields: dict[str, Any]
) -> Call[DocumentInfo]:
    params = _fields(FileDescription.model_validate(fields))
    path = _path(collection, id)
    return Call("PUT", path, DocumentInfo, content, params, UPLOAD_S, media_type, repeatable=True)


def delete_document(collection: str, id: str) -> Call[None]:
    return Call("DELETE", _path(collection, id), type(None), repeatable=True)


def move_documents(collection: str, moves: Sequence[Move]) -> Call[MoveResponse]:
    body = MoveRequest(moves=tuple(moves))
    return Call("POST", f"/collections/{collection}/moves", MoveResponse, body, repeatable=True)


def strategies() -> Call[Strategies]:
    return Call("GET", "/strategies", Strategies)


def feedback(answered: AnswerResponse | str, verdict: Verdict, right_answer: str) -> Call[FeedbackResponse]:
    request_id = answered if isinstance(answered, str) else answered.request_id
    body = FeedbackRequest(request_id=request_id, verdict=verdict, right_answer=right_answer)
    return Call("POST", "/feedback", FeedbackResponse, body)


def _path(collection: str, id: str) -> str:
    if id in (".", ".."):
        raise ValueError(f"{id!r} is no document's id: an address reads it as another place")
    return f"/collections/{collection}/documents/{quote(id, safe='')}"


def _fields(body: Contract) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in body.model_dump(mode="json", exclude_defaults=True).items())


def _params(filters: Sequence[Filter]) -> tuple[tuple[str, str], ...]:
    return tuple(("filter", json.dumps(item.model_dump(mode="json", exclude_defaults=True))) for item in filters)
