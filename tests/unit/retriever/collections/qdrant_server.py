"""A Qdrant server over HTTP, as far as collections ask for it: requests are read by Qdrant's own models, points are
written, searched and fused by Qdrant's own engine (Qdrant Edge), and qdrant-client knows what collections there are."""

import json
import re
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import qdrant_edge as edge
from pydantic import BaseModel
from qdrant_client import QdrantClient, models

Handler = Callable[[str, Any], Any]


class QdrantServer:
    """Serves `transport`; `requests` are those that came, `broken` answers all with that status, `version` is what
    it says of itself.

    Args:
        folder: where points are kept.
    """

    def __init__(self, folder: Path) -> None:
        self.client = QdrantClient(":memory:")
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: httpx.Headers = httpx.Headers()
        self.broken = 0
        self.version = version("qdrant-client")
        self.transport = httpx.MockTransport(self._handle)
        self._folder = folder
        self._shards: dict[str, edge.EdgeShard] = {}
        self._indexes: dict[str, dict[str, Any]] = {}
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/exists"): lambda name, _: {"exists": self.client.collection_exists(name)},
            ("GET", ""): lambda name, _: self.client.get_collection(name),
            ("PUT", ""): self._create,
            ("PATCH", ""): self._change,
            ("DELETE", ""): self._drop,
            ("PUT", "/index"): self._index,
            ("PUT", "/points"): self._upsert,
            ("POST", "/points"): self._retrieve,
            ("POST", "/points/payload"): self._set_payload,
            ("POST", "/points/delete"): self._delete,
            ("POST", "/points/count"): self._count,
            ("POST", "/points/scroll"): self._scroll,
            ("POST", "/points/query/batch"): self._query,
        }

    def indexes(self, name: str) -> dict[str, Any]:
        return self._indexes[name]

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()
        self._shards.clear()
        self.client.close()

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.headers = request.headers
        if self.broken:
            return httpx.Response(self.broken, json={"status": {"error": "broken"}}, request=request)
        body = json.loads(request.content) if request.content else None
        path = request.url.path
        self.requests.append((request.method, path, body))
        if path == "/":
            return httpx.Response(200, json={"title": "qdrant", "version": self.version}, request=request)
        if path == "/collections":
            return self._reply(request, self.client.get_collections())
        match = re.fullmatch(r"/collections/([^/]+)(.*)", path)
        assert match, path
        if match[2] != "/exists" and request.method != "PUT" and not self.client.collection_exists(match[1]):
            detail = f"Not found: Collection `{match[1]}` doesn't exist!"
            return httpx.Response(404, json={"status": {"error": detail}, "time": 0.0}, request=request)
        return self._reply(request, self._routes[request.method, match[2]](match[1], body))

    def _reply(self, request: httpx.Request, result: Any) -> httpx.Response:
        def plain(value: Any) -> Any:
            if isinstance(value, BaseModel):
                return value.model_dump(mode="json")
            return [plain(item) for item in value] if isinstance(value, list) else value

        return httpx.Response(200, json={"result": plain(result), "status": "ok", "time": 0.0}, request=request)

    def _create(self, name: str, body: Any) -> bool:
        request = models.CreateCollection.model_validate(body)
        assert isinstance(request.vectors, dict)
        self._indexes[name] = {}
        self._shards[name] = edge.EdgeShard.create(
            str(self._folder / name),
            edge.EdgeConfig(
                vectors={
                    encoder: edge.EdgeVectorParams(
                        size=params.size, distance=getattr(edge.Distance, params.distance.value)
                    )
                    for encoder, params in request.vectors.items()
                },
                sparse_vectors={
                    words: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
                    for words, params in (request.sparse_vectors or {}).items()
                    if params.modifier == models.Modifier.IDF
                },
            ),
        )
        return self.client.create_collection(
            name,
            vectors_config=request.vectors,
            sparse_vectors_config=request.sparse_vectors,
            metadata=request.metadata,
        )

    def _change(self, name: str, body: Any) -> bool:
        # The engine here builds no graph; how it is to be built is among the requests.
        return "metadata" not in body or self.client.update_collection(name, metadata=body["metadata"])

    def _drop(self, name: str, _: Any) -> bool:
        if (shard := self._shards.pop(name, None)) is not None:
            shard.close()
            shutil.rmtree(self._folder / name)
        return self.client.delete_collection(name)

    def _index(self, name: str, body: Any) -> models.UpdateResult:
        request = models.CreateFieldIndex.model_validate(body)
        self._indexes[name][request.field_name] = request.field_schema
        assert isinstance(request.field_schema, str)
        kind = getattr(edge.PayloadSchemaType, request.field_schema.capitalize())
        return self._update(name, edge.UpdateOperation.create_field_index(request.field_name, kind))

    def _upsert(self, name: str, body: Any) -> models.UpdateResult:
        points = [_point(point) for point in models.PointsList.model_validate(body).points]
        return self._update(name, edge.UpdateOperation.upsert_points(points))

    def _set_payload(self, name: str, body: Any) -> models.UpdateResult:
        request = models.SetPayload.model_validate(body)
        return self._update(name, edge.UpdateOperation.set_payload(list(request.points or []), request.payload))

    def _delete(self, name: str, body: Any) -> models.UpdateResult:
        request = models.PointIdsList.model_validate(body)
        return self._update(name, edge.UpdateOperation.delete_points(list(request.points)))

    def _update(self, name: str, operation: edge.UpdateOperation) -> models.UpdateResult:
        self._shards[name].update(operation)
        return models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)

    def _retrieve(self, name: str, body: Any) -> list[models.Record]:
        request = models.PointRequest.model_validate(body)
        with_payload, with_vector = request.with_payload or False, bool(request.with_vector)
        return [_record(point) for point in self._shards[name].retrieve(list(request.ids), with_payload, with_vector)]

    def _scroll(self, name: str, body: Any) -> dict[str, Any]:
        request = models.ScrollRequest.model_validate(body)
        points, following = self._shards[name].scroll(
            edge.ScrollRequest(
                offset=request.offset,
                limit=request.limit,
                filter=_filter(request.filter),
                with_payload=request.with_payload,
                with_vector=bool(request.with_vector),
            )
        )
        records = [_record(point).model_dump(mode="json") for point in points]
        return {"points": records, "next_page_offset": str(following) if following else None}

    def _count(self, name: str, body: Any) -> models.CountResult:
        request = models.CountRequest.model_validate(body)
        counted = edge.CountRequest(exact=bool(request.exact), filter=_filter(request.filter))
        return models.CountResult(count=self._shards[name].count(counted))

    def _query(self, name: str, body: Any) -> list[dict[str, Any]]:
        queries = [_query(search) for search in models.QueryRequestBatch.model_validate(body).searches]
        batches = self._shards[name].query_batch(edge.QueryBatchRequest(queries))
        return [{"points": [_scored(point).model_dump(mode="json") for point in points]} for points in batches]


def _point(point: models.PointStruct) -> edge.Point:
    assert isinstance(point.vector, dict)
    return edge.Point(str(point.id), {name: _vector(vector) for name, vector in point.vector.items()}, point.payload)


def _record(point: Any) -> models.Record:
    vectors = point.vector and {name: _plain(vector) for name, vector in point.vector.items()}
    return models.Record(id=str(point.id), payload=point.payload, vector=vectors or None)


def _plain(vector: Any) -> Any:
    if isinstance(vector, edge.SparseVector):
        return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return list(vector)


def _vector(vector: Any) -> Any:
    if not isinstance(vector, models.SparseVector):
        return vector
    return edge.SparseVector(indices=vector.indices, values=vector.values)


def _query(request: models.QueryRequest) -> edge.QueryRequest:
    # What is not handed on must not be asked for.
    assert not any((request.offset, request.score_threshold, request.params, request.lookup_from))
    if not request.prefetch:
        return edge.QueryRequest(
            limit=request.limit,
            query=_nearest(request.query, request.using),
            filter=_filter(request.filter),
            with_payload=request.with_payload,
        )
    assert isinstance(request.prefetch, list)
    assert isinstance(request.query, models.RrfQuery)
    return edge.QueryRequest(
        limit=request.limit,
        query=edge.Fusion.Rrf(k=request.query.rrf.k),
        prefetches=[
            edge.Prefetch(limit=item.limit, query=_nearest(item.query, item.using), filter=_filter(item.filter))
            for item in request.prefetch
        ],
        with_payload=request.with_payload,
    )


def _nearest(query: Any, using: str | None) -> edge.Query:
    return edge.Query.Nearest(_vector(query.nearest if isinstance(query, models.NearestQuery) else query), using=using)


def _filter(condition: models.Filter | None) -> edge.Filter | None:
    if condition is None:
        return None
    assert not condition.min_should
    parts = {name: getattr(condition, name) for name in ("must", "should", "must_not")}
    return edge.Filter(**{name: [_condition(item) for item in items] for name, items in parts.items() if items})


def _condition(condition: Any) -> Any:
    if isinstance(condition, models.Filter):
        return _filter(condition)
    if isinstance(condition, models.HasIdCondition):
        return edge.HasIdCondition({str(one) for one in condition.has_id})
    if isinstance(condition, models.IsEmptyCondition):
        return edge.IsEmptyCondition(key=condition.is_empty.key)
    assert isinstance(condition, models.FieldCondition)
    if condition.range is not None:
        bounds = condition.range.model_dump(exclude_none=True)
        kind = edge.RangeFloat if isinstance(condition.range, models.Range) else edge.RangeDateTime
        if kind is edge.RangeDateTime:
            bounds = {name: time.isoformat() for name, time in bounds.items()}
        return edge.FieldCondition(key=condition.key, range=kind(**bounds))
    assert isinstance(condition.match, models.MatchValue)
    # The binding takes a Python bool for an integer, NumPy's for what it is.
    value = condition.match.value
    return edge.FieldCondition(
        key=condition.key, match=edge.MatchValue(np.bool_(value) if isinstance(value, bool) else value)
    )


def _scored(point: edge.ScoredPoint) -> models.ScoredPoint:
    return models.ScoredPoint(id=str(point.id), version=point.version, score=point.score, payload=point.payload)
