"""The client, once for threads and once for asyncio.

`fields` of a question are those of `AnswerRequest`, of a search those of `SearchRequest`, of papers those of
`PapersRequest`. Arguments that their limits refuse raise pydantic's ValidationError, before anything is sent.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Self

import httpx

from cragmesh_client import calls
from cragmesh_client.calls import Call, Event, Events, Reply
from cragmesh_client.contracts.answer import AnswerResponse, Strategies
from cragmesh_client.contracts.collections import CollectionInfo, Collections, Filter, SearchResponse
from cragmesh_client.contracts.feedback import FeedbackResponse, Verdict
from cragmesh_client.contracts.papers import PapersResponse
from cragmesh_client.errors import Unreachable

RETRIES = 3
STREAM = {"accept": "text/event-stream"}


class Patience:
    """When to try again: as often as `retries`, when the gateway says so, and only inside the call's time."""

    def __init__(self, call: Call[Any], retries: int) -> None:
        self._until = time.monotonic() + call.seconds
        self._left = retries

    @property
    def timeout_s(self) -> float:
        """What is left of the call's time."""
        return max(0.001, self._until - time.monotonic())

    def pause_s(self, response: httpx.Response) -> float | None:
        """Seconds until the same may be asked again; None when the response stands."""
        pause_s = calls.retry_after_s(response)
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
        retries: how often a call is tried again that the gateway asks to come later.
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
        patience, events = Patience(call, self._retries), Events()
        request = call.request()
        try:
            while True:
                headers = request["headers"] | STREAM
                with self._http.stream(**request | {"headers": headers}, timeout=patience.timeout_s) as response:
                    if response.is_success:
                        for line in response.iter_lines():
                            yield from events.read(line)
                        return
                    response.read()
                if (pause_s := patience.pause_s(response)) is None:
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
        patience = Patience(call, self._retries)
        while True:
            try:
                response = self._http.request(**call.request(), timeout=patience.timeout_s)
            except httpx.HTTPError as error:
                raise Unreachable(f"{self._http.base_url}: {type(error).__name__}") from error
            if (pause_s := patience.pause_s(response)) is None:
                return call.read(response)
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
        patience, events = Patience(call, self._retries), Events()
        request = call.request()
        try:
            while True:
                headers = request["headers"] | STREAM
                async with self._http.stream(**request | {"headers": headers}, timeout=patience.timeout_s) as response:
                    if response.is_success:
                        async for line in response.aiter_lines():
                            for event in events.read(line):
                                yield event
                        return
                    await response.aread()
                if (pause_s := patience.pause_s(response)) is None:
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

    async def strategies(self) -> Strategies:
        return await self.send(calls.strategies())

    async def feedback(
        self, answered: AnswerResponse | str, verdict: Verdict, right_answer: str = ""
    ) -> FeedbackResponse:
        return await self.send(calls.feedback(answered, verdict, right_answer))

    async def send(self, call: Call[Reply]) -> Reply:
        patience = Patience(call, self._retries)
        while True:
            try:
                response = await self._http.request(**call.request(), timeout=patience.timeout_s)
            except httpx.HTTPError as error:
                raise Unreachable(f"{self._http.base_url}: {type(error).__name__}") from error
            if (pause_s := patience.pause_s(response)) is None:
                return call.read(response)
            await asyncio.sleep(pause_s)
