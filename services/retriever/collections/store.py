"""The store of collections: Qdrant, embedded in this process, or a server or cluster behind a URL."""

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
from services.retriever.collections.keys import CHUNK, FIELDS
from services.retriever.collections.schema import Schema
from services.retriever.collections.search import ListQuery, condition, fused_request, list_requests
from services.retriever.settings import RetrieverSettings

Payload = Mapping[str, Any]

NOT_FOUND, TOO_MANY_REQUESTS = 404, 429
# Seconds until a server that did not tell its version is asked again.
ASK_AGAIN_S = 30.0
# A server's words for a missing collection, since any proxy could answer 404.
_NO_COLLECTION = re.compile(b"Collection .+ doesn't exist")


class Store(ABC):
    """Operations on collections.

    All raise Unavailable when Qdrant cannot be reached or fails, DeadlineExceeded when the time runs out in a queue,
    NoSuchCollection when the collection is gone.
    """

    backend: Literal["local", "server"]
    # For its operator; empty where all is well.
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
        """A collection's metadata.

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
        """Have the server index the fields of filters."""
        kinds = {CHUNK: "integer"} | {f"{FIELDS}.{field}": kind for field, kind in schema.indexed_fields.items()}
        for field, kind in kinds.items():
            schema_type = models.PayloadSchemaType(kind)
            await self.call(
                "create_payload_index", collection_name=name, field_name=field, field_schema=schema_type, wait=True
            )

    async def note(self, name: str, metadata: dict[str, Any]) -> None:
        """Add to a collection's metadata."""
        await self.call("update_collection", collection_name=name, metadata=metadata)

    async def delete(self, name: str) -> bool:
        """Delete a collection; false when there was none."""
        if not await self.call("collection_exists", collection_name=name):
            return False
        await self.call("delete_collection", collection_name=name)
        return True

    async def payloads(self, name: str, ids: Sequence[str], keys: Sequence[str]) -> dict[str, Payload]:
        """Some keys of the payloads of the existing points among `ids`, by id."""
        if not ids:
            return {}
        points = await self.call(
            "retrieve", collection_name=name, ids=list(ids), with_payload=list(keys), with_vectors=False
        )
        return {str(point.id): point.payload or {} for point in points}

    async def points(self, name: str, ids: Sequence[str]) -> dict[str, models.Record]:
        """The existing points among `ids`, by id."""
        points = await self.call("retrieve", collection_name=name, ids=list(ids), with_payload=True, with_vectors=True)
        return {str(point.id): point for point in points}

    async def scroll(
        self, name: str, condition: models.Filter | None, keys: Sequence[str], limit: int, after: str
    ) -> tuple[list[Payload], str]:
        """Some keys of the payloads of the points that pass a filter, and the next offset, empty at the end."""
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
        """Delete points; missing ones are ignored."""
        if ids:
            selector = models.PointIdsList(points=list(ids))
            await self.call("delete", collection_name=name, points_selector=selector, wait=True)

    async def count(self, name: str, filters: Sequence[Filter] = (), chunk: int | None = None) -> int:
        """The number of points that pass the filters; of those with this chunk number when one is given."""
        numbered = [] if chunk is None else [models.FieldCondition(key=CHUNK, match=models.MatchValue(value=chunk))]
        within = condition(filters, *numbered)
        return int((await self.call("count", collection_name=name, count_filter=within, exact=True)).count)

    async def lists(
        self, name: str, request: SearchRequest, queries: Sequence[ListQuery]
    ) -> list[list[models.ScoredPoint]]:
        """The points of each list, best first."""
        return await self._query(name, list_requests(request, queries))

    async def fused(self, name: str, request: SearchRequest, queries: Sequence[ListQuery]) -> list[models.ScoredPoint]:
        """The best points of all lists, fused by reciprocal rank."""
        lists = await self._query(name, [fused_request(request, queries)] if queries else [])
        return lists[0] if lists else []

    async def _query(self, name: str, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        if not requests:
            return []
        responses = await self.call("query_batch_points", collection_name=name, requests=list(requests))
        return [list(response.points) for response in responses]


# Edges of a point in Qdrant's graph, by default.
EDGES = 16
GREEN_S = 1.0


class ServerStore(Store):
    """A Qdrant server, or any node of a cluster.

    Args:
        timeout_s: of one call, in whole seconds; the caller's deadline is usually sooner.
        options: for qdrant-client; tests put a whole server behind it.
    """

    backend = "server"

    def __init__(self, url: str, *, api_key: str, timeout_s: int, **options: Any) -> None:
        self._options: dict[str, Any] = {
            "url": url,
            # As a header, since the client would warn of a key over plain HTTP, which is fine inside a cluster.
            "headers": {"api-key": api_key} if api_key else None,
            "timeout": timeout_s,
            # It would ask the server on the event loop while the client is made; `_compare_versions` asks later.
            "check_compatibility": False,
            "trust_env": False,
            **options,
        }
        self._client: AsyncQdrantClient | None = None

    @classmethod
    def of(cls, settings: RetrieverSettings) -> "ServerStore":
        url = str(settings.qdrant_url).rstrip("/")
        return cls(url, api_key=settings.qdrant_api_key, timeout_s=int(settings.max_deadline_s))

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
        """Warn of a server that the client does not support, once it answers."""
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
        """Have the server build its graph once after the points have streamed in, and wait until it has.

        Until then, and after a killed load until the end of the next, searches scan every point.
        """
        await self.call("update_collection", collection_name=name, hnsw_config=models.HnswConfigDiff(m=0))
        try:
            yield
        finally:
            await self.call("update_collection", collection_name=name, hnsw_config=models.HnswConfigDiff(m=EDGES))
        # The server sends no notice when its optimiser is done.
        building = models.CollectionStatus.YELLOW
        while (await self.call("get_collection", collection_name=name)).status == building:  # noqa: ASYNC110
            await asyncio.sleep(GREEN_S)

    async def call(self, method: str, **arguments: Any) -> Any:
        try:
            return await getattr(self._client, method)(**arguments)
        except ResourceExhaustedResponse as error:
            detail = "the Qdrant server has more to do than it takes"
            raise Overloaded(detail, retry_after_s=max(1, int(error.retry_after_s))) from error
        except UnexpectedResponse as error:
            if error.status_code == TOO_MANY_REQUESTS:
                raise Overloaded("the Qdrant server has more to do than it takes") from error
            if error.status_code == NOT_FOUND and _NO_COLLECTION.search(error.content):
                raise NoSuchCollection(arguments["collection_name"]) from error
            content = error.content[:300].decode(errors="replace")
            log.error("qdrant", method=method, status=error.status_code, content=content)
            raise Unavailable(f"the Qdrant server answered {method} with HTTP {error.status_code}") from error
        except (ResponseHandlingException, ApiException) as error:
            log.error("qdrant", method=method, error=str(error)[:300])
            raise Unavailable("the Qdrant server did not answer, or not as Qdrant does") from error


def skew(server: str, client: str) -> str:
    """A warning that a server is more than one minor version from its client; empty where it is not, or unknown."""
    theirs, ours = ([int(number) for number in re.findall(r"\d+", text)[:2]] for text in (server, client))
    if len(theirs) < 2 or (theirs[0] == ours[0] and abs(theirs[1] - ours[1]) <= 1):
        return ""
    return f"the Qdrant server is {server} and its client {client}, and more than one minor version is not supported"
