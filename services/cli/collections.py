"""The retriever's collections from the command line."""

import re
import time
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote, urlencode

import httpx
from pydantic import TypeAdapter, ValidationError

from proto.collections import (
    DOCUMENT_ID,
    CollectionInfo,
    CollectionName,
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
from services.cli.questions import BadInput

Result = TypeVar("Result")

_NAME: TypeAdapter[str] = TypeAdapter(CollectionName)

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
    """The collections of the retriever, or of a gateway; what it is too busy for is asked again a few times."""

    def __init__(
        self, url: str, *, token: str = "", key: str = "", transport: httpx.BaseTransport | None = None
    ) -> None:
        super().__init__("retriever", url, CALL_S, token=token, key=key, transport=transport)

    def create(self, name: str, request: CreateCollection) -> CollectionInfo:
        """Make a collection, unless it is there; a key that may only write finds it as it is."""
        try:
            return self.call("PUT", _collection(name), CollectionInfo, request)
        except Refused as error:
            if error.problem.status != FORBIDDEN:
                raise
            try:
                return self.call("GET", _collection(name), CollectionInfo)
            except Refused:
                raise error from None

    def all(self) -> tuple[CollectionInfo, ...]:
        return self.call("GET", "/collections", Collections).collections

    def delete(self, name: str) -> None:
        self.send("DELETE", _collection(name))

    def ingest(self, name: str, documents: Sequence[Document]) -> IngestResponse:
        """Write a batch, in smaller ones where it takes the retriever too long."""
        request, can_split = IngestRequest(documents=documents), len(documents) > 1
        try:
            return self._again(
                lambda: self.call("POST", f"{_collection(name)}/documents", IngestResponse, request),
                PASSING - {GATEWAY_TIMEOUT} if can_split else PASSING,
            )
        except Refused as error:
            if error.problem.status != GATEWAY_TIMEOUT or not can_split:
                raise
        middle = len(documents) // 2
        first, second = self.ingest(name, documents[:middle]), self.ingest(name, documents[middle:])
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

    def put(self, name: str, upload: Upload) -> DocumentInfo:
        """Write a file, and wait until it is complete or has failed."""
        description = FileDescription(url=upload.url, source=upload.source, wait_s=PUT_WAIT_S)
        path = f"{_document(name, upload.id)}?{urlencode(description.model_dump())}"
        content = upload.path.read_bytes()
        info = self._again(lambda: self.read(self.send("PUT", path, content, upload.media_type), DocumentInfo))
        while info.state in ("waiting", "writing"):
            time.sleep(POLL_S)
            info = self.document(name, upload.id)
        return info

    def document(self, name: str, id: str) -> DocumentInfo:
        """A document, or a file on its way or unreadable."""
        return self._again(lambda: self.call("GET", _document(name, id), DocumentInfo))

    def find(self, name: str, id: str) -> DocumentInfo | None:
        """The same; None where there is none."""
        try:
            return self.document(name, id)
        except Refused as error:
            if error.problem.status != NOT_FOUND:
                raise
            return None

    def documents(self, name: str, listing: Listing) -> Documents:
        return self.call("GET", f"{_collection(name)}/documents?{urlencode(listing.model_dump())}", Documents)

    def delete_document(self, name: str, id: str) -> None:
        if not re.fullmatch(DOCUMENT_ID, id):
            # Older versions took ids that no address can have.
            renamed = f"removed:{id.encode().hex()}"[:MAX_ID]
            self.move(name, [Move(id=id, to=renamed)])
            id = renamed
        self.send("DELETE", _document(name, id))

    def move(self, name: str, moves: Sequence[Move]) -> MoveResponse:
        return self.call("POST", f"{_collection(name)}/moves", MoveResponse, MoveRequest(moves=tuple(moves)))

    def search(self, name: str, request: SearchRequest) -> SearchResponse:
        return self.call("POST", f"{_collection(name)}/search", SearchResponse, request)

    def _again(self, call: Callable[[], Result], passing: frozenset[int] = PASSING) -> Result:
        """The result of a call that is repeated a few times while it is refused by a passing status."""
        for retry in range(RETRIES):
            try:
                return call()
            except Refused as error:
                if error.problem.status not in passing:
                    raise
                time.sleep(PAUSE_S * 2**retry)
        return call()


def _collection(name: str) -> str:
    """The address of a collection.

    Raises:
        BadInput: it is no name of one; in an address it would be that of another, or of a document.
    """
    try:
        return f"/collections/{_NAME.validate_python(name)}"
    except ValidationError:
        raise BadInput(f"{name!r} is no name of a collection: small letters, digits, _ and -, at most 63") from None


def _document(name: str, id: str) -> str:
    return f"{_collection(name)}/documents/{quote(id, safe='')}"
