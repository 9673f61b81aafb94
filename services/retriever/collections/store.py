"""Qdrant as collections need it: embedded in this process, or a server or cluster behind a URL."""

import contextlib
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from proto.collections import BM25, SearchRequest
from services.kit.batcher import Batcher
from services.kit.errors import Overloaded, Unavailable
from services.kit.telemetry import log
from services.retriever.collections.errors import NoSuchCollection
from services.retriever.collections.payload import CHUNK, FIELDS
from services.retriever.collections.postings import Postings
from services.retriever.collections.schema import Schema
from services.retriever.collections.search import Wanted, fuse, fused_request, list_requests, payload_keys

Operation = Callable[[QdrantClient], Any]
Payload = Mapping[str, Any]

# Operations that may wait for the embedded store; the caller's deadline drops them from the queue by itself.
MAX_QUEUED_OPERATIONS = 256
NOT_FOUND, TOO_MANY_REQUESTS = 404, 429
# Points read at a time, to build postings.
SCROLLED = 10_000
# How qdrant-client says it in local mode, by a ValueError, and a server, beside a 404 that any proxy could answer.
_NONE_HERE, _NONE_THERE = re.compile("Collection (.+) not found"), re.compile(b"Collection .+ doesn't exist")
_INDEX_TYPES = {
    "keyword": models.PayloadSchemaType.KEYWORD,
    "integer": models.PayloadSchemaType.INTEGER,
    "float": models.PayloadSchemaType.FLOAT,
    "bool": models.PayloadSchemaType.BOOL,
}


class Store(ABC):
    """The operations on collections that both ways have in common.

    All raise Unavailable when Qdrant cannot be reached or fails, DeadlineExceeded when the time runs out in a queue,
    NoSuchCollection when the one that they name is gone.
    """

    backend: Literal["local", "server"]

    @abstractmethod
    async def call(self, method: str, **arguments: Any) -> Any:
        """A method of Qdrant's client, by its name."""

    @abstractmethod
    def running(self) -> contextlib.AbstractAsyncContextManager["Store"]:
        """Serve while the context is open."""

    async def names(self) -> list[str]:
        """All collections, whoever made them."""
        return sorted(item.name for item in (await self.call("get_collections")).collections)

    async def metadata(self, name: str) -> dict[str, Any]:
        """What a collection says of itself.

        Raises:
            NoSuchCollection: there is none of that name.
        """
        if not await self.call("collection_exists", collection_name=name):
            raise NoSuchCollection(name)
        return (await self.call("get_collection", collection_name=name)).config.metadata or {}

    async def create(self, name: str, schema: Schema) -> None:
        """Make an empty collection."""
        vectors = {
            encoder: models.VectorParams(
                size=record.dimension,
                distance=models.Distance.COSINE if record.normalise else models.Distance.DOT,
                on_disk=True,
            )
            for encoder, record in schema.encoders.items()
        }
        await self.call(
            "create_collection",
            collection_name=name,
            vectors_config=vectors,
            sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            shard_number=schema.shards,
            replication_factor=schema.replicas,
            on_disk_payload=True,
            metadata=schema.metadata(),
        )
        await self.index_payload(name, schema)

    async def index_payload(self, name: str, schema: Schema) -> None:
        """Have the server index the fields that filters name."""
        await self._index_field(name, CHUNK, models.PayloadSchemaType.INTEGER)
        for field, kind in schema.indexed_fields.items():
            await self._index_field(name, f"{FIELDS}.{field}", _INDEX_TYPES[kind])

    async def _index_field(self, name: str, field: str, kind: models.PayloadSchemaType) -> None:
        await self.call("create_payload_index", collection_name=name, field_name=field, field_schema=kind, wait=True)

    async def note(self, name: str, metadata: dict[str, Any]) -> None:
        """Add to what a collection says of itself."""
        await self.call("update_collection", collection_name=name, metadata=metadata)

    async def delete(self, name: str) -> bool:
        """Delete a collection; false when there was none."""
        if not await self.call("collection_exists", collection_name=name):
            return False
        await self.call("delete_collection", collection_name=name)
        return True

    async def payloads(self, name: str, ids: Sequence[str], keys: Sequence[str]) -> dict[str, Payload]:
        """Some keys of the payloads of those points that there are, by id."""
        if not ids:
            return {}
        found = await self.call(
            "retrieve", collection_name=name, ids=list(ids), with_payload=list(keys), with_vectors=False
        )
        return {str(point.id): point.payload or {} for point in found}

    async def write(self, name: str, points: Sequence[models.PointStruct]) -> None:
        """Write points, replacing those of the same ids."""
        if points:
            await self.call("upsert", collection_name=name, points=list(points), wait=True)

    async def mark(self, name: str, ids: Sequence[str], payload: dict[str, Any]) -> None:
        """Add to the payloads of points."""
        if ids:
            await self.call("set_payload", collection_name=name, payload=payload, points=list(ids), wait=True)

    async def remove(self, name: str, ids: Sequence[str]) -> None:
        """Delete points; those that are not there are none."""
        if ids:
            selector = models.PointIdsList(points=list(ids))
            await self.call("delete", collection_name=name, points_selector=selector, wait=True)

    async def count(self, name: str, chunk: int | None = None) -> int:
        """Points; those with this number alone when one is given."""
        condition = None
        if chunk is not None:
            match = models.MatchValue(value=chunk)
            condition = models.Filter(must=[models.FieldCondition(key=CHUNK, match=match)])
        found = await self.call("count", collection_name=name, count_filter=condition, exact=True)
        return int(found.count)

    async def lists(
        self, name: str, request: SearchRequest, wanted: Sequence[Wanted]
    ) -> list[list[models.ScoredPoint]]:
        """The points of each list, best first."""
        return await self._query(name, list_requests(request, wanted))

    async def fused(self, name: str, request: SearchRequest, wanted: Sequence[Wanted]) -> list[models.ScoredPoint]:
        """The best points of all lists, fused by reciprocal rank."""
        found = await self._query(name, [fused_request(request, wanted)] if wanted else [])
        return found[0] if found else []

    async def _query(self, name: str, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        if not requests:
            return []
        found = await self.call("query_batch_points", collection_name=name, requests=list(requests))
        return [list(response.points) for response in found]


class LocalStore(Store):
    """qdrant-client's local mode: brute force over arrays in memory, kept in SQLite files below a folder.

    Words are searched by postings of our own.

    One thread does it all, since neither the arrays nor the files are made for more. The folder is opened when first
    asked for: one process only may hold it, and another one's retriever must still be able to serve pages.

    Args:
        folder: where the files are; whoever can write there can run code here, since qdrant-client keeps pickles.
    """

    backend = "local"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._client: QdrantClient | None = None
        self._hurried: dict[str, sqlite3.Connection] = {}
        # Of the collections that were searched by words.
        self._postings: dict[str, Postings] = {}
        self._batcher: Batcher[Operation, Any] = Batcher(
            lambda operations: [self._run(operation) for operation in operations],
            cost=lambda _: 1,
            max_batch_cost=1,
            max_queue_cost=MAX_QUEUED_OPERATIONS,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["LocalStore"]:
        async with self._batcher.running():
            try:
                yield self
            finally:
                if self._client is not None:
                    await self.call("close")
                    self._client = None

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self._submit(lambda client: getattr(client, method)(**arguments))

    async def write(self, name: str, points: Sequence[models.PointStruct]) -> None:
        await self._submit(lambda client: self._write(client, name, points))

    async def remove(self, name: str, ids: Sequence[str]) -> None:
        await self._submit(lambda client: self._remove(client, name, ids))

    async def delete(self, name: str) -> bool:
        return bool(await self._submit(lambda client: self._delete(client, name)))

    async def lists(
        self, name: str, request: SearchRequest, wanted: Sequence[Wanted]
    ) -> list[list[models.ScoredPoint]]:
        found: list[list[models.ScoredPoint]] = await self._submit(
            lambda client: self._lists(client, name, request, wanted, payload_keys(request))
        )
        return found

    async def fused(self, name: str, request: SearchRequest, wanted: Sequence[Wanted]) -> list[models.ScoredPoint]:
        return list(await self._submit(lambda client: self._fused(client, name, request, wanted)))

    async def _submit(self, operation: Operation) -> Any:
        return (await self._batcher.submit(operation)).result

    async def index_payload(self, name: str, schema: Schema) -> None:
        """Nothing: local mode looks at every payload, and would warn of an index."""

    # Below: in the store's thread

    def _run(self, operation: Operation) -> Any:
        if self._client is None:
            self._client = self._open()
        try:
            result = operation(self._client)
            self._hurry()
        except OSError as error:
            raise Unavailable(f"the collections' folder cannot be written: {error.strerror}") from error
        except sqlite3.Error as error:
            raise Unavailable(f"the disk took no more: {error}") from error
        except ValueError as error:
            if (missing := _NONE_HERE.fullmatch(str(error))) is None:
                raise
            raise NoSuchCollection(missing[1]) from error
        return result

    def _write(self, client: QdrantClient, name: str, points: Sequence[models.PointStruct]) -> None:
        with self._rewritten(name) as postings:
            if points:
                client.upsert(name, list(points), wait=True)
            if postings is not None:
                for point in points:
                    postings.put(str(point.id), _words(point))

    def _delete(self, client: QdrantClient, name: str) -> bool:
        self._postings.pop(name, None)
        return client.collection_exists(name) and bool(client.delete_collection(name))

    def _remove(self, client: QdrantClient, name: str, ids: Sequence[str]) -> None:
        with self._rewritten(name) as postings:
            if ids:
                client.delete(name, models.PointIdsList(points=list(ids)), wait=True)
            if postings is not None:
                for point in ids:
                    postings.drop(point)

    @contextlib.contextmanager
    def _rewritten(self, name: str) -> Iterator[Postings | None]:
        """The postings of a collection, where it has any; lost with a write that fails, to be built anew.

        They would miss a part for good, since the batch sent again skips what is there.
        """
        postings = self._postings.pop(name, None)
        yield postings
        if postings is not None:
            self._postings[name] = postings

    def _lists(
        self,
        client: QdrantClient,
        name: str,
        request: SearchRequest,
        wanted: Sequence[Wanted],
        keys: Sequence[str],
    ) -> list[list[models.ScoredPoint]]:
        # Postings know nothing of fields: under a filter Qdrant's own way is taken, which looks at every point anyway.
        words = [] if request.filters else [item for item in wanted if isinstance(item.vector, models.SparseVector)]
        others = [item for item in wanted if item not in words]
        requests = [item.model_copy(update={"with_payload": list(keys)}) for item in list_requests(request, others)]
        found = iter(client.query_batch_points(name, requests) if requests else [])
        return [
            self._by_words(client, name, item, request.candidates, keys) if item in words else list(next(found).points)
            for item in wanted
        ]

    def _fused(
        self, client: QdrantClient, name: str, request: SearchRequest, wanted: Sequence[Wanted]
    ) -> list[models.ScoredPoint]:
        best = fuse(self._lists(client, name, request, wanted, []))[: request.top_n]
        payloads = _payloads(client, name, [str(point.id) for point in best], payload_keys(request))
        return [point.model_copy(update={"payload": payloads[str(point.id)]}) for point in best]

    def _by_words(
        self, client: QdrantClient, name: str, wanted: Wanted, limit: int, keys: Sequence[str]
    ) -> list[models.ScoredPoint]:
        postings = self._postings.get(name)
        if postings is None or postings.dead > len(postings):
            postings = self._postings[name] = _index(client, name)
        assert isinstance(wanted.vector, models.SparseVector)  # noqa: S101 - narrows the vector's type for mypy
        found = postings.search(wanted.vector, limit)
        payloads = _payloads(client, name, [point for point, _ in found] if keys else [], keys)
        return [
            models.ScoredPoint(id=point, version=0, score=score, payload=payloads.get(point)) for point, score in found
        ]

    def _open(self) -> QdrantClient:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            client = QdrantClient(path=str(self._folder))
        except RuntimeError as error:
            # The only one that opening raises: its lock file is held.
            raise Unavailable(
                "another process holds the collections' folder, and local mode allows one; stop it, give this one a "
                "folder of its own (CRAGMESH_QDRANT_PATH), or run a Qdrant server (CRAGMESH_QDRANT_URL)"
            ) from error
        except OSError as error:
            raise Unavailable(f"the collections' folder cannot be opened: {error.strerror}") from error
        log.info("collections opened", collections=len(client.get_collections().collections))
        return client

    def _hurry(self) -> None:
        """Have SQLite write ahead, without a flush to disk a point: 1,300 points a second instead of 80.

        What a killed process has written stays; a power cut can cost the last seconds, in the order of writing, which
        ingestion takes for an interruption. qdrant-client has no setting for it.
        """
        for name, collection in getattr(getattr(self._client, "_client", None), "collections", {}).items():
            connection = getattr(collection.storage, "storage", None)
            if connection is not None and self._hurried.get(name) is not connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                self._hurried[name] = connection


def _index(client: QdrantClient, name: str) -> Postings:
    postings = Postings()
    offset = None
    while True:
        points, offset = client.scroll(name, limit=SCROLLED, offset=offset, with_payload=False, with_vectors=[BM25])
        for point in points:
            postings.put(str(point.id), _words(point))
        if offset is None:
            return postings


def _words(point: models.PointStruct | models.Record) -> models.SparseVector:
    vectors = point.vector
    found = vectors.get(BM25) if isinstance(vectors, dict) else None
    return found if isinstance(found, models.SparseVector) else models.SparseVector(indices=[], values=[])


def _payloads(client: QdrantClient, name: str, ids: Sequence[str], keys: Sequence[str]) -> dict[str, Payload]:
    if not ids:
        return {}
    found = client.retrieve(name, list(ids), with_payload=list(keys), with_vectors=False)
    return {str(point.id): point.payload or {} for point in found}


class ServerStore(Store):
    """A Qdrant server, or any node of a cluster.

    Args:
        url: its root.
        api_key: sent with every call; none when empty.
        timeout_s: of one call, in whole seconds; the caller's deadline is usually sooner.
        options: for qdrant-client; tests put a whole server behind it.
    """

    backend = "server"

    def __init__(self, url: str, *, api_key: str, timeout_s: int, **options: Any) -> None:
        self._options: dict[str, Any] = {
            "url": url,
            # As a header, since inside a cluster's network plain HTTP is nothing to warn of.
            "headers": {"api-key": api_key} if api_key else None,
            "timeout": timeout_s,
            # Asks the server while the client is made, on the event loop.
            "check_compatibility": False,
            "trust_env": False,
            **options,
        }
        self._client: AsyncQdrantClient | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["ServerStore"]:
        self._client = AsyncQdrantClient(**self._options)
        try:
            yield self
        finally:
            await self._client.close()

    async def call(self, method: str, **arguments: Any) -> Any:
        try:
            return await getattr(self._client, method)(**arguments)
        except ResourceExhaustedResponse as error:
            detail = "the Qdrant server has more to do than it takes"
            raise Overloaded(detail, retry_after_s=max(1, int(error.retry_after_s))) from error
        except UnexpectedResponse as error:
            if error.status_code == TOO_MANY_REQUESTS:
                raise Overloaded("the Qdrant server has more to do than it takes") from error
            if error.status_code == NOT_FOUND and _NONE_THERE.search(error.content):
                raise NoSuchCollection(arguments["collection_name"]) from error
            log.error("qdrant", method=method, status=error.status_code, content=_cut(error.content))
            raise Unavailable(f"the Qdrant server answered {method} with HTTP {error.status_code}") from error
        except (ResponseHandlingException, ApiException) as error:
            log.error("qdrant", method=method, error=str(error)[:300])
            raise Unavailable("the Qdrant server did not answer, or not as Qdrant does") from error


def _cut(content: bytes) -> str:
    return content[:300].decode(errors="replace")
