"""The retriever's collections from the command line."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote, urlencode

import httpx
from pydantic import ValidationError

from proto.base import Contract, Problem
from proto.collections import (
    CollectionInfo,
    Collections,
    CreateCollection,
    Document,
    DocumentInfo,
    Documents,
    FileDescription,
    IngestRequest,
    IngestResponse,
    Listing,
    Move,
    MoveRequest,
    MoveResponse,
    SearchRequest,
    SearchResponse,
)
from services.cli.corpus import Upload
from services.kit.deadline import MESH_TOKEN_HEADER

Reply = TypeVar("Reply", bound=Contract)

# The retriever's own limit, and the transfer.
CALL_S = 60.0
# Overloaded, not ready, out of time: the same request may do better a little later.
GATEWAY_TIMEOUT = 504
PASSING = frozenset({429, 503, GATEWAY_TIMEOUT})
RETRIES = 5
PAUSE_S = 1.0
# What a file gets to be written while its sender waits, and how often one is asked for that takes longer.
PUT_WAIT_S = 20.0
POLL_S = 1.0


class RetrieverUnreachable(Exception):
    """The retriever is not up, or the connection broke."""


class RetrieverProblem(Exception):
    """The retriever refused the request."""

    def __init__(self, problem: Problem) -> None:
        details = "; ".join(f"{error.field}: {error.message}" for error in problem.errors)
        super().__init__(details or problem.detail or problem.title)
        self.problem = problem


class CollectionClient:
    """The collections of the retriever at `url`.

    All raise RetrieverUnreachable when nobody answers, and RetrieverProblem when it refuses.

    Args:
        token: the mesh's, where it has one.
        key: of the gateway, where `url` is one and asks for it.
    """

    def __init__(
        self, url: str, *, token: str = "", key: str = "", transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=url,
            timeout=CALL_S,
            transport=transport,
            headers={MESH_TOKEN_HEADER: token} if token else {"authorization": f"Bearer {key}"} if key else None,
            trust_env=False,
        )
        self.url = url

    def create(self, name: str, request: CreateCollection) -> CollectionInfo:
        return self._send("PUT", f"/collections/{name}", CollectionInfo, request)

    def all(self) -> tuple[CollectionInfo, ...]:
        return self._send("GET", "/collections", Collections).collections

    def delete(self, name: str) -> None:
        self._reply("DELETE", f"/collections/{name}", None)

    def ingest(self, name: str, documents: Sequence[Document]) -> IngestResponse:
        return self._send("POST", f"/collections/{name}/documents", IngestResponse, IngestRequest(documents=documents))

    def put(self, name: str, upload: Upload, title: str = "") -> DocumentInfo:
        given = FileDescription(title=title, url=upload.url, source=upload.source, wait_s=PUT_WAIT_S)
        path = f"/collections/{name}/documents/{quote(upload.id, safe='')}?{urlencode(given.model_dump())}"
        return self._read(self._sent("PUT", path, upload.path.read_bytes(), upload.media_type), DocumentInfo)

    def document(self, name: str, id: str) -> DocumentInfo:
        return self._send("GET", f"/collections/{name}/documents/{quote(id, safe='')}", DocumentInfo)

    def documents(self, name: str, listing: Listing) -> Documents:
        return self._send("GET", f"/collections/{name}/documents?{urlencode(listing.model_dump())}", Documents)

    def delete_document(self, name: str, id: str) -> None:
        self._reply("DELETE", f"/collections/{name}/documents/{quote(id, safe='')}", None)

    def move(self, name: str, moves: Sequence[Move]) -> MoveResponse:
        return self._send("POST", f"/collections/{name}/moves", MoveResponse, MoveRequest(moves=tuple(moves)))

    def search(self, name: str, request: SearchRequest) -> SearchResponse:
        return self._send("POST", f"/collections/{name}/search", SearchResponse, request)

    def close(self) -> None:
        self._http.close()

    def _send(self, method: str, path: str, reply: type[Reply], message: Contract | None = None) -> Reply:
        return self._read(self._reply(method, path, message), reply)

    def _read(self, content: bytes, reply: type[Reply]) -> Reply:
        try:
            return reply.model_validate_json(content)
        except ValidationError as error:
            raise RetrieverUnreachable(f"what answers at {self.url} is no retriever of this version") from error

    def _reply(self, method: str, path: str, message: Contract | None) -> bytes:
        return self._sent(method, path, message.model_dump_json().encode() if message is not None else None)

    def _sent(self, method: str, path: str, content: bytes | None, media_type: str = "application/json") -> bytes:
        headers = {"content-type": media_type} if content is not None else None
        try:
            reply = self._http.request(method, path, content=content, headers=headers)
        except httpx.ReadTimeout as error:
            detail = f"the retriever at {self.url} did not answer within {CALL_S:.0f} s"
            raise RetrieverProblem(Problem(title="Timeout", status=GATEWAY_TIMEOUT, detail=detail)) from error
        except httpx.HTTPError as error:
            raise RetrieverUnreachable(
                f"the retriever at {self.url} is not up ({type(error).__name__}): start the mesh with `cragmesh up`"
            ) from error
        if reply.is_success:
            return reply.content
        try:
            problem = Problem.model_validate_json(reply.content)
        except ValidationError:
            raise RetrieverUnreachable(f"{self.url} answered {reply.status_code} and no problem document") from None
        raise RetrieverProblem(problem)


def ingest_patiently(
    client: CollectionClient,
    name: str,
    documents: Sequence[Document],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> IngestResponse:
    """Write a batch, in smaller ones where it takes the retriever too long, and again where it is busy.

    Raises:
        RetrieverUnreachable: nobody answers.
        RetrieverProblem: it refuses, or stays busy.
    """
    retries = 0
    while True:
        try:
            return client.ingest(name, documents)
        except RetrieverProblem as error:
            if error.problem.status not in PASSING or retries == RETRIES:
                raise
            if error.problem.status == GATEWAY_TIMEOUT and len(documents) > 1:
                middle = len(documents) // 2
                halves = (documents[:middle], documents[middle:])
                return _joined([ingest_patiently(client, name, half, pause=pause) for half in halves], middle)
            retries += 1
            pause(PAUSE_S * 2 ** (retries - 1))


def put_patiently(
    client: CollectionClient, name: str, upload: Upload, *, pause: Callable[[float], None] = time.sleep
) -> DocumentInfo:
    """Write a file, again where the retriever is busy, and wait until it is complete or has failed.

    Raises:
        RetrieverUnreachable: nobody answers.
        RetrieverProblem: it refuses, or stays busy.
    """
    for retry in range(RETRIES + 1):
        try:
            info = client.put(name, upload)
            break
        except RetrieverProblem as error:
            if error.problem.status not in PASSING or retry == RETRIES:
                raise
            pause(PAUSE_S * 2**retry)
    while info.state in ("waiting", "writing"):
        pause(POLL_S)
        info = client.document(name, upload.id)
    return info


def _joined(responses: Sequence[IngestResponse], middle: int) -> IngestResponse:
    first, second = responses
    moved = [
        item.model_copy(update={"stage": f"document:{int(item.stage.partition(':')[2]) + middle}"})
        for item in second.skipped
    ]
    return IngestResponse(
        added=first.added + second.added,
        unchanged=first.unchanged + second.unchanged,
        replaced=first.replaced + second.replaced,
        points=first.points + second.points,
        skipped=(*first.skipped, *moved),
    )
