"""Qdrant as collections need it: embedded in this process, or a server or cluster behind a URL."""

import asyncio
import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from proto.collections import BM25, Filter, SearchRequest
from services.kit.errors import Overloaded, Unavailable
from services.kit.telemetry import log
from services.retriever.collections.errors import NoSuchCollection
from services.retriever.collections.payload import CHUNK, FIELDS
from services.retriever.collections.schema import Schema
from services.retriever.collections.search import Wanted, condition, fused_request, list_requests

Payload = Mapping[str, Any]

NOT_FOUND, TOO_MANY_REQUESTS = 404, 429
# Seconds until a server that does not say its version is asked again.
ASK_AGAIN_S = 30.0
# How a server says it, beside a 404 that any proxy could answer.
_NONE_THERE = re.compile(b"Collection .+ doesn't exist")
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
    # What its operator should know, in words.
    warning: str = ""

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

    async def points(self, name: str, ids: Sequence[str]) -> dict[str, models.Record]:
        """Those points that there are, whole, by id."""
        found = await self.call("retrieve", collection_name=name, ids=list(ids), with_payload=True, with_vectors=True)
        return {str(point.id): point for point in found}

    async def scroll(
        self, name: str, condition: models.Filter | None, keys: Sequence[str], limit: int, after: str
    ) -> tuple[list[Payload], str]:
        """Some keys of the payloads of points that a filter leaves, and where the next begin; empty at the end."""
        points, following = await self.call(
            "scroll",
            collection_name=name,
            scroll_filter=condition,
            limit=limit,
            offset=after or None,
            with_payload=list(keys),
            with_vectors=False,
        )
        return [point.payload or {} for point in points], str(following or "")

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

    async def count(self, name: str, filters: Sequence[Filter] = (), chunk: int | None = None) -> int:
        """Points that the filters let through; those with this number alone when one is given."""
        numbered = [] if chunk is None else [models.FieldCondition(key=CHUNK, match=models.MatchValue(value=chunk))]
        counted = condition(filters, *numbered)
        found = await self.call("count", collection_name=name, count_filter=counted, exact=True)
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


# Edges of a point in Qdrant's graph, by default.
EDGES = 16
GREEN_S = 1.0


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
            # Asks the server while the client is made, on the event loop; `_compare_versions` does not.
            "check_compatibility": False,
            "trust_env": False,
            **options,
        }
        self._client: AsyncQdrantClient | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["ServerStore"]:
        self._client = AsyncQdrantClient(**self._options)
        comparison = asyncio.create_task(self._compare_versions())
        try:
            yield self
        finally:
            comparison.cancel()
            await asyncio.wait([comparison])
            await self._client.close()

    async def _compare_versions(self) -> None:
        """Warn of a server that the client does not support, once it can be asked."""
        while True:
            with contextlib.suppress(Unavailable, Overloaded):
                server = (await self.call("info")).version
                break
            await asyncio.sleep(ASK_AGAIN_S)
        if warning := skew(server, version("qdrant-client")):
            self.warning = warning
            log.warning("qdrant", detail=warning)

    @contextlib.asynccontextmanager
    async def loading(self, name: str) -> AsyncIterator[None]:
        """Have the server build no graph while points stream in, and build it once in the end; waits until it has.

        Searches meanwhile look at every point; so they do after a load that was killed, until the next has ended.
        """
        await self.call("update_collection", collection_name=name, hnsw_config=models.HnswConfigDiff(m=0))
        try:
            yield
        finally:
            await self.call("update_collection", collection_name=name, hnsw_config=models.HnswConfigDiff(m=EDGES))
        # Nobody is told when the optimiser is done.
        while not await self._is_built(name):  # noqa: ASYNC110
            await asyncio.sleep(GREEN_S)

    async def _is_built(self, name: str) -> bool:
        found = await self.call("get_collection", collection_name=name)
        return bool(found.status != models.CollectionStatus.YELLOW)

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


def skew(server: str, client: str) -> str:
    """In words, that a server is more than one minor version from its client; empty where it is not, or not known."""
    theirs, ours = ([int(number) for number in re.findall(r"\d+", text)[:2]] for text in (server, client))
    if len(theirs) < 2 or (theirs[0] == ours[0] and abs(theirs[1] - ours[1]) <= 1):
        return ""
    return f"the Qdrant server is {server} and its client {client}, and more than one minor version is not supported"


def _cut(content: bytes) -> str:
    return content[:300].decode(errors="replace")
