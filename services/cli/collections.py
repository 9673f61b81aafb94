"""The retriever's collections from the command line."""

import re
import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar
from urllib.parse import quote, urlencode

import httpx

from proto.collections import (
    DOCUMENT_ID,
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
from services.cli.caller import GATEWAY_TIMEOUT, Caller, Refused
from services.cli.corpus import MAX_ID, Upload

Result = TypeVar("Result")

# The retriever's own limit, and the transfer.
CALL_S = 60.0
# Overloaded, not ready, out of time: the same request may do better a little later.
PASSING = frozenset({429, 503, GATEWAY_TIMEOUT})
FORBIDDEN, NOT_FOUND = 403, 404
RETRIES = 5
PAUSE_S = 1.0
# How long the retriever keeps a file's sender waiting, and how often one that takes longer is asked for.
PUT_WAIT_S = 20.0
POLL_S = 1.0


class CollectionClient(Caller):
    """The collections of the retriever, or of a gateway."""

    def __init__(
        self, url: str, *, token: str = "", key: str = "", transport: httpx.BaseTransport | None = None
    ) -> None:
        super().__init__("retriever", url, CALL_S, token=token, key=key, transport=transport)

    def create(self, name: str, request: CreateCollection) -> CollectionInfo:
        """Make a collection, unless it is there; a key that may only write finds it as it is."""
        try:
            return self.call("PUT", f"/collections/{name}", CollectionInfo, request)
        except Refused as error:
            if error.problem.status != FORBIDDEN:
                raise
            try:
                return self.call("GET", f"/collections/{name}", CollectionInfo)
            except Refused:
                raise error from None

    def all(self) -> tuple[CollectionInfo, ...]:
        return self.call("GET", "/collections", Collections).collections

    def delete(self, name: str) -> None:
        self.send("DELETE", f"/collections/{name}")

    def ingest(self, name: str, documents: Sequence[Document]) -> IngestResponse:
        return self.call("POST", f"/collections/{name}/documents", IngestResponse, IngestRequest(documents=documents))

    def put(self, name: str, upload: Upload, title: str = "") -> DocumentInfo:
        description = FileDescription(title=title, url=upload.url, source=upload.source, wait_s=PUT_WAIT_S)
        path = f"/collections/{name}/documents/{quote(upload.id, safe='')}?{urlencode(description.model_dump())}"
        return self.read(self.send("PUT", path, upload.path.read_bytes(), upload.media_type), DocumentInfo)

    def document(self, name: str, id: str) -> DocumentInfo:
        return self.call("GET", f"/collections/{name}/documents/{quote(id, safe='')}", DocumentInfo)

    def documents(self, name: str, listing: Listing) -> Documents:
        return self.call("GET", f"/collections/{name}/documents?{urlencode(listing.model_dump())}", Documents)

    def delete_document(self, name: str, id: str) -> None:
        if not re.fullmatch(DOCUMENT_ID, id):
            # Older versions took ids that no address can have.
            renamed = f"removed:{id.encode().hex()}"[:MAX_ID]
            self.move(name, [Move(id=id, to=renamed)])
            id = renamed
        self.send("DELETE", f"/collections/{name}/documents/{quote(id, safe='')}")

    def move(self, name: str, moves: Sequence[Move]) -> MoveResponse:
        return self.call("POST", f"/collections/{name}/moves", MoveResponse, MoveRequest(moves=tuple(moves)))

    def search(self, name: str, request: SearchRequest) -> SearchResponse:
        return self.call("POST", f"/collections/{name}/search", SearchResponse, request)


def ingest_patiently(
    client: CollectionClient, name: str, documents: Sequence[Document], *, pause: Callable[[float], None] = time.sleep
) -> IngestResponse:
    """Write a batch, in smaller ones where it takes the retriever too long, and again where it is busy.

    Raises:
        Unreachable: nobody answers.
        Refused: it refuses, or stays busy.
    """
    can_split = len(documents) > 1
    try:
        passing = PASSING - {GATEWAY_TIMEOUT} if can_split else PASSING
        return _repeated(lambda: client.ingest(name, documents), passing, pause)
    except Refused as error:
        if error.problem.status != GATEWAY_TIMEOUT or not can_split:
            raise
    middle = len(documents) // 2
    first = ingest_patiently(client, name, documents[:middle], pause=pause)
    second = ingest_patiently(client, name, documents[middle:], pause=pause)
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


def find_patiently(
    client: CollectionClient, name: str, id: str, *, pause: Callable[[float], None] = time.sleep
) -> DocumentInfo | None:
    """A document, or a file on its way or unreadable; None where there is none.

    Raises:
        Unreachable: nobody answers.
        Refused: the retriever refuses, or stays busy.
    """
    try:
        return _repeated(lambda: client.document(name, id), PASSING, pause)
    except Refused as error:
        if error.problem.status != NOT_FOUND:
            raise
        return None


def put_patiently(
    client: CollectionClient, name: str, upload: Upload, *, pause: Callable[[float], None] = time.sleep
) -> DocumentInfo:
    """Write a file, again where the retriever is busy, and wait until it is complete or has failed.

    Raises:
        Unreachable: nobody answers.
        Refused: it refuses, or stays busy.
    """
    info = _repeated(lambda: client.put(name, upload), PASSING, pause)
    while info.state in ("waiting", "writing"):
        pause(POLL_S)
        info = _repeated(lambda: client.document(name, upload.id), PASSING, pause)
    return info


def _repeated(call: Callable[[], Result], passing: Collection[int], pause: Callable[[float], None]) -> Result:
    """The result of a call that is repeated a few times while it is refused by a passing status."""
    for retry in range(RETRIES):
        try:
            return call()
        except Refused as error:
            if error.problem.status not in passing:
                raise
            pause(PAUSE_S * 2**retry)
    return call()
