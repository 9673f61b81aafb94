"""Qdrant embedded in this process, beside postings of words; one thread has both."""

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models

from proto.collections import BM25, SearchRequest
from services.kit.batcher import Batcher
from services.kit.errors import Unavailable
from services.kit.telemetry import log
from services.retriever.collections.errors import NoSuchCollection
from services.retriever.collections.postings import Postings
from services.retriever.collections.schema import Schema
from services.retriever.collections.search import ListQuery, fuse, list_requests, payload_keys
from services.retriever.collections.store import Payload, Store
from services.retriever.turns import turns

Operation = Callable[[QdrantClient], Any]

# Operations that may wait for the embedded store; the caller's deadline drops them from the queue by itself.
MAX_QUEUED_OPERATIONS = 256
# Points read at a time, to build postings.
SCROLL_LIMIT = 10_000
# The ValueError of qdrant-client's local mode for a missing collection.
_NO_COLLECTION = re.compile("Collection (.+) not found")


class LocalStore(Store):
    """qdrant-client's local mode: brute force over arrays in memory, kept in SQLite files below a folder.

    Words are searched by postings of our own.

    One thread does it all, since neither the arrays nor the files allow more. A folder with collections is read before
    the store is ready: 24,000 points took the first question six seconds. Any other is opened on first use: only one
    process may hold it, and another retriever must still be able to serve pages.

    Args:
        folder: of the files; whoever can write there can run code here, since qdrant-client keeps pickles.
    """

    backend = "local"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._client: QdrantClient | None = None
        self._tuned: dict[str, sqlite3.Connection] = {}
        # By name of the collections that were searched by words.
        self._postings: dict[str, Postings] = {}
        self._turns: Batcher[Callable[[], Any], Any] = turns(MAX_QUEUED_OPERATIONS)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["LocalStore"]:
        async with self._turns.running():
            await self._warm_up()
            try:
                yield self
            finally:
                if self._client is not None:
                    await self.call("close")
                    self._client = None

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self._submit(lambda client: getattr(client, method)(**arguments))

    async def write(self, name: str, points: Sequence[models.PointStruct]) -> None:
        def write(client: QdrantClient) -> None:
            with self._updating(name) as postings:
                if points:
                    client.upsert(name, list(points), wait=True)
                if postings is not None:
                    for point in points:
                        postings.put(str(point.id), _words(point))

        await self._submit(write)

    async def remove(self, name: str, ids: Sequence[str]) -> None:
        def remove(client: QdrantClient) -> None:
            with self._updating(name) as postings:
                if ids:
                    client.delete(name, models.PointIdsList(points=list(ids)), wait=True)
                if postings is not None:
                    for point in ids:
                        postings.drop(point)

        await self._submit(remove)

    async def delete(self, name: str) -> bool:
        def delete(client: QdrantClient) -> bool:
            self._postings.pop(name, None)
            return client.collection_exists(name) and bool(client.delete_collection(name))

        return bool(await self._submit(delete))

    async def lists(
        self, name: str, request: SearchRequest, queries: Sequence[ListQuery]
    ) -> list[list[models.ScoredPoint]]:
        lists: list[list[models.ScoredPoint]] = await self._submit(
            lambda client: self._lists(client, name, request, queries, payload_keys(request))
        )
        return lists

    async def fused(self, name: str, request: SearchRequest, queries: Sequence[ListQuery]) -> list[models.ScoredPoint]:
        def fused(client: QdrantClient) -> list[models.ScoredPoint]:
            best = fuse(self._lists(client, name, request, queries, []))[: request.top_n]
            payloads = _payloads(client, name, [str(point.id) for point in best], payload_keys(request))
            return [point.model_copy(update={"payload": payloads[str(point.id)]}) for point in best]

        return list(await self._submit(fused))

    async def _warm_up(self) -> None:
        def index_all(client: QdrantClient) -> None:
            for collection in client.get_collections().collections:
                self._postings[collection.name] = _index(client, collection.name)

        if not await asyncio.to_thread((self._folder / "meta.json").is_file):
            return
        try:
            await self._submit(index_all)
        except Exception as error:
            # Another process holds it, or it is damaged: pages are served all the same, and calls of collections fail.
            log.error("collections not opened", error=str(error) or type(error).__name__)

    async def _submit(self, operation: Operation) -> Any:
        return (await self._turns.submit(partial(self._run, operation))).result

    async def index_payload(self, name: str, schema: Schema) -> None:
        """Does nothing: local mode scans every payload, and would warn of an index."""

    # Below: in the store's thread

    def _run(self, operation: Operation) -> Any:
        if self._client is None:
            self._client = self._open()
        try:
            self._tune_sqlite()
            result = operation(self._client)
        except OSError as error:
            raise Unavailable(f"the collections' folder cannot be written: {error.strerror}") from error
        except sqlite3.Error as error:
            raise Unavailable(f"the disk took no more: {error}") from error
        except ValueError as error:
            if (missing := _NO_COLLECTION.fullmatch(str(error))) is None:
                raise
            raise NoSuchCollection(missing[1]) from error
        return result

    @contextlib.contextmanager
    def _updating(self, name: str) -> Iterator[Postings | None]:
        """The postings of a collection, if it has any; a failed write drops them, to be built anew.

        Else they would miss a part for good, since the batch sent again skips the points that are written.
        """
        postings = self._postings.pop(name, None)
        yield postings
        if postings is not None:
            self._postings[name] = postings

    def _lists(
        self, client: QdrantClient, name: str, request: SearchRequest, queries: Sequence[ListQuery], keys: Sequence[str]
    ) -> list[list[models.ScoredPoint]]:
        # Postings hold no fields: a filtered list comes from Qdrant, which scans every point anyway.
        by_words = [] if request.filters else [item for item in queries if isinstance(item.vector, models.SparseVector)]
        others = [item for item in queries if item not in by_words]
        requests = [item.model_copy(update={"with_payload": list(keys)}) for item in list_requests(request, others)]
        responses = iter(client.query_batch_points(name, requests) if requests else [])
        return [
            self._by_words(client, name, item, request.candidates, keys)
            if item in by_words
            else list(next(responses).points)
            for item in queries
        ]

    def _by_words(
        self, client: QdrantClient, name: str, query: ListQuery, limit: int, keys: Sequence[str]
    ) -> list[models.ScoredPoint]:
        postings = self._postings.get(name)
        if postings is None or postings.dead > len(postings):
            postings = self._postings[name] = _index(client, name)
        assert isinstance(query.vector, models.SparseVector)  # noqa: S101 - narrows the vector's type for mypy
        hits = postings.search(query.vector, limit)
        payloads = _payloads(client, name, [point for point, _ in hits] if keys else [], keys)
        return [
            models.ScoredPoint(id=point, version=0, score=score, payload=payloads.get(point)) for point, score in hits
        ]

    def _open(self) -> QdrantClient:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            client = QdrantClient(path=str(self._folder))
        except RuntimeError as error:
            # The only cause of it: the lock file is held.
            raise Unavailable(
                "another process holds the collections' folder, and local mode allows one; stop it, give this one a "
                "folder of its own (CRAGMESH_QDRANT_PATH), or run a Qdrant server (CRAGMESH_QDRANT_URL)"
            ) from error
        except OSError as error:
            raise Unavailable(f"the collections' folder cannot be opened: {error.strerror}") from error
        log.info("collections opened", collections=len(client.get_collections().collections))
        return client

    def _tune_sqlite(self) -> None:
        """Have SQLite write ahead, without a flush to disk a point: 1,300 points a second instead of 80.

        The writes of a killed process stay; a power cut can cost the last seconds, in the order of writing, which is an
        interruption to ingestion. qdrant-client has no setting for it.
        """
        for name, collection in getattr(getattr(self._client, "_client", None), "collections", {}).items():
            connection = getattr(collection.storage, "storage", None)
            if connection is not None and self._tuned.get(name) is not connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                self._tuned[name] = connection


def _index(client: QdrantClient, name: str) -> Postings:
    postings = Postings()
    offset = None
    while True:
        points, offset = client.scroll(name, limit=SCROLL_LIMIT, offset=offset, with_payload=False, with_vectors=[BM25])
        for point in points:
            postings.put(str(point.id), _words(point))
        if offset is None:
            return postings


def _words(point: models.PointStruct | models.Record) -> models.SparseVector:
    vectors = point.vector
    words = vectors.get(BM25) if isinstance(vectors, dict) else None
    return words if isinstance(words, models.SparseVector) else models.SparseVector(indices=[], values=[])


def _payloads(client: QdrantClient, name: str, ids: Sequence[str], keys: Sequence[str]) -> dict[str, Payload]:
    if not ids:
        return {}
    points = client.retrieve(name, list(ids), with_payload=list(keys), with_vectors=False)
    return {str(point.id): point.payload or {} for point in points}
