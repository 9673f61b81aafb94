"""The client, once for threads and once for asyncio.

`fields` of a question are those of `AnswerRequest`, of a search those of `SearchRequest`, of papers those of
`PapersRequest`, of a list of documents those of `Listing`, of a file those of `FileDescription`. Arguments that their
limits refuse raise pydantic's ValidationError, before anything is sent.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Self

import httpx

from cragmesh_client import calls
from cragmesh_client.calls import Call, Event, Events, Reply
from cragmesh_client.contracts.answer import AnswerResponse, Strategies
from cragmesh_client.contracts.collections import (
    CollectionInfo,
    Collections,
    DocumentInfo,
    Documents,
    Filter,
    Move,
    MoveResponse,
    SearchResponse,
)
from cragmesh_client.contracts.feedback import FeedbackResponse, Verdict
from cragmesh_client.contracts.papers import PapersResponse
from cragmesh_client.errors import BadReply, Unreachable

RETRIES = 3
STREAM = {"accept": "text/event-stream"}
# Between two looks at a document that is being written.
POLL_S = 1.0
Progress = Callable[[DocumentInfo], None]


class Retries:
    """Decides on retries of a call: at most `limit`, when the gateway says so, and only inside the call's time."""

    def __init__(self, call: Call[Any], limit: int) -> None:
        self._call = call
        self._until = time.monotonic() + call.seconds
        self._left = limit
        self._lost = False

    @property
    def timeout_s(self) -> float:
        """The rest of the call's time."""
        return max(0.001, self._until - time.monotonic())

    def pause_s(self, response: httpx.Response) -> float | None:
        """Seconds until the call may be sent again; None when the response stands."""
        return self._again(calls.retry_after_s(response))

    def pause_after(self, error: httpx.HTTPError) -> float | None:
        """Seconds until a call whose connection failed may be sent again; None when it may not."""
        if not self._call.repeatable or isinstance(error, httpx.TimeoutException):
            return None
        self._lost |= not isinstance(error, httpx.ConnectError)
        return self._again(calls.PAUSE_S)

    def gone(self, response: httpx.Response) -> bool:
        """Whether an earlier attempt had deleted it, and only its reply was lost."""
        return self._lost and self._call.method == "DELETE" and response.status_code == httpx.codes.NOT_FOUND

    def _again(self, pause_s: float | None) -> float | None:
        if pause_s is None or not self._left or pause_s >= self.timeout_s:
            return None
        self._left -= 1
        return pause_s


def _options(base_url: str, api_key: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    return {"base_url": base_url, "headers": headers, "follow_redirects": False}


class Client:
    """Asks a gateway; close it, or use it as a context manager.

    Args:
        base_url: the gateway's root.
        api_key: sent as a bearer token, if any.
        retries: further attempts of a call for which the gateway asks to come later.
        transport: how the gateway is reached; the network when None.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        *,
        api_key: str = "",
        retries: int = RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._retries = retries
        self._http = httpx.Client(transport=transport, **_options(base_url, api_key))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def answer(self, query: str, **fields: Any) -> AnswerResponse:
        """Answer a question."""
        return self.send(calls.answer(query, fields))

    def stream(self, query: str, **fields: Any) -> Iterator[Event]:
        """A question's stages as they start and end, then its answer."""
        call = calls.answer(query, fields)
        retries, events = Retries(call, self._retries), Events()
        request = call.request()
        request["headers"] |= STREAM
        try:
            while True:
                with self._http.stream(**request, timeout=retries.timeout_s) as response:
                    if response.is_success:
                        for chunk in response.iter_bytes():
                            yield from events.read(chunk)
                        if not events.answered:
                            raise BadReply("the stream ended without an answer")
                        return
                    response.read()
                if (pause_s := retries.pause_s(response)) is None:
                    raise calls.refusal(response)
                time.sleep(pause_s)
        except httpx.HTTPError as error:
            raise Unreachable(f"{self._http.base_url}: {type(error).__name__}") from error

    def papers(self, query: str, collection: str, **fields: Any) -> PapersResponse:
        """The documents of a collection that answer a question."""
        return self.send(calls.papers(query, collection, fields))

    def search(self, collection: str, queries: str | Sequence[str], **fields: Any) -> SearchResponse:
        """The best passages of a collection."""
        return self.send(calls.search(collection, queries, fields))

    def collections(self, filters: Sequence[Filter] = ()) -> Collections:
        """The collections that the key may read."""
        return self.send(calls.collections(filters))

    def collection(self, name: str, filters: Sequence[Filter] = ()) -> CollectionInfo:
        """One of them."""
        return self.send(calls.collection(name, filters))

    def documents(self, collection: str, filters: Sequence[Filter] = (), **fields: Any) -> Documents:
        """A page of a collection's documents; `after=page.next` gives the page behind it."""
        return self.send(calls.documents(collection, filters, fields))

    def document(self, collection: str, id: str) -> DocumentInfo:
        """One of them, and how far it is."""
        return self.send(calls.document(collection, id))

    def put_document(
        self,
        collection: str,
        id: str,
        content: bytes,
        media_type: str,
        *,
        progress: Progress = lambda _: None,
        **fields: Any,
    ) -> DocumentInfo:
        """Write a file as a document, and wait until it is complete or has failed, as its state says.

        Args:
            media_type: the file's format, as `application/pdf`.
            progress: told how far it is, until it is written.
        """
        info = self.send(calls.put_document(collection, id, content, media_type, fields))
        while info.state in calls.UNDER_WAY:
            progress(info)
            time.sleep(POLL_S)
            info = self.document(collection, id)
        return info

    def delete_document(self, collection: str, id: str) -> None:
        """Delete a document."""
        self.send(calls.delete_document(collection, id))

    def move_documents(self, collection: str, moves: Sequence[Move]) -> MoveResponse:
        """Give documents other ids; nothing is read or encoded again."""
        return self.send(calls.move_documents(collection, moves))

    def strategies(self) -> Strategies:
        """The strategies that a question may name."""
        return self.send(calls.strategies())

    def feedback(self, answered: AnswerResponse | str, verdict: Verdict, right_answer: str = "") -> FeedbackResponse:
        """Say whether an answer, or the one of this request id, was right."""
        return self.send(calls.feedback(answered, verdict, right_answer))

    def send(self, call: Call[Reply]) -> Reply:
        """The reply to any call.

        Raises:
            MeshError: see `cragmesh_client.errors`.
        """
        retries = Retries(call, self._retries)
        while True:
            try:
                response = self._http.request(**call.request(), timeout=retries.timeout_s)
            except httpx.HTTPError as error:
                if (pause_s := retries.pause_after(error)) is None:
                    raise Unreachable(f"{self._http.base_url}: {type(error).__name__}") from error
            else:
                if (pause_s := retries.pause_s(response)) is None:
                    return call.read(response, done=retries.gone(response))
            time.sleep(pause_s)


class AsyncClient:
    """Asks a gateway under asyncio: `Client`, awaited."""

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        *,
        api_key: str = "",
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._retries = retries
        self._http = httpx.AsyncClient(transport=transport, **_options(base_url, api_key))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def answer(self, query: str, **fields: Any) -> AnswerResponse:
        return await self.send(calls.answer(query, fields))

    async def stream(self, query: str, **fields: Any) -> AsyncIterator[Event]:
        call = calls.answer(query, fields)
        retries, events = Retries(call, self._retries), Events()
        request = call.request()
        request["headers"] |= STREAM
        try:
            while True:
                async with self._http.stream(**request, timeout=retries.timeout_s) as response:
                    if response.is_success:
                        async for chunk in response.aiter_bytes():
                            for event in events.read(chunk):
                                yield event
                        if not events.answered:
                            raise BadReply("the stream ended without an answer")
                        return
                    await response.aread()
                if (pause_s := retries.pause_s(response)) is None:
                    raise calls.refusal(response)
                await asyncio.sleep(pause_s)
        except httpx.HTTPError as error:
            raise Unreachable(f"{self._http.base_url}: {type(error).__name__}") from error

    async def papers(self, query: str, collection: str, **fields: Any) -> PapersResponse:
        return await self.send(calls.papers(query, collection, fields))

    async def search(self, collection: str, queries: str | Sequence[str], **fields: Any) -> SearchResponse:
        return await self.send(calls.search(collection, queries, fields))

    async def collections(self, filters: Sequence[Filter] = ()) -> Collections:
        return await self.send(calls.collections(filters))

    async def collection(self, name: str, filters: Sequence[Filter] = ()) -> CollectionInfo:
        return await self.send(calls.collection(name, filters))

    async def documents(self, collection: str, filters: Sequence[Filter] = (), **fields: Any) -> Documents:
        return await self.send(calls.documents(collection, filters, fields))

    async def document(self, collection: str, id: str) -> DocumentInfo:
        return await self.send(calls.document(collection, id))

    async def put_document(
        self,
        collection: str,
        id: str,
        content: bytes,
        media_type: str,
        *,
        progress: Progress = lambda _: None,
        **fields: Any,
    ) -> DocumentInfo:
        info = await self.send(calls.put_document(collection, id, content, media_type, fields))
        while info.state in calls.UNDER_WAY:
            progress(info)
            await asyncio.sleep(POLL_S)
            info = await self.document(collection, id)
        return info

    async def delete_document(self, collection: str, id: str) -> None:
        await self.send(calls.delete_document(collection, id))

    async def move_documents(self, collection: str, moves: Sequence[Move]) -> MoveResponse:
        return await self.send(calls.move_documents(collection, moves))

    async def strategies(self) -> Strategies:
        return await self.send(calls.strategies())

    async def feedback(
        self, answered: AnswerResponse | str, verdict: Verdict, right_answer: str = ""
    ) -> FeedbackResponse:
        return await self.send(calls.feedback(answered, verdict, right_answer))

    async def send(self, call: Call[Reply]) -> Reply:
        retries = Retries(call, self._retries)
        while True:
            try:
                response = await self._http.request(**call.request(), timeout=retries.timeout_s)
            except httpx.HTTPError as error:
                if (pause_s := retries.pause_after(error)) is None:
                    raise Unreachable(f"{self._http.base_url}: {type(error).__name__}") from error
            else:
                if (pause_s := retries.pause_s(response)) is None:
                    return call.read(response, done=retries.gone(response))
            await asyncio.sleep(pause_s)
