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

_DISTANCES = {models.Distance.COSINE: edge.Distance.Cosine, models.Distance.DOT: edge.Distance.Dot}
_KINDS = {
    "keyword": edge.PayloadSchemaType.Keyword,
    "integer": edge.PayloadSchemaType.Integer,
    "float": edge.PayloadSchemaType.Float,
    "bool": edge.PayloadSchemaType.Bool,
}


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
        wanted = models.CreateCollection.model_validate(body)
        assert isinstance(wanted.vectors, dict)
        self._indexes[name] = {}
        self._shards[name] = edge.EdgeShard.create(
            str(self._folder / name),
            edge.EdgeConfig(
                vectors={
                    encoder: edge.EdgeVectorParams(size=params.size, distance=_DISTANCES[params.distance])
                    for encoder, params in wanted.vectors.items()
                },
                sparse_vectors={
                    words: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
                    for words, params in (wanted.sparse_vectors or {}).items()
                    if params.modifier == models.Modifier.IDF
                },
            ),
        )
        return self.client.create_collection(
            name,
            vectors_config=wanted.vectors,
            sparse_vectors_config=wanted.sparse_vectors,
            metadata=wanted.metadata,
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
        wanted = models.CreateFieldIndex.model_validate(body)
        self._indexes[name][wanted.field_name] = wanted.field_schema
        assert isinstance(wanted.field_schema, str)
        return self._update(
            name, edge.UpdateOperation.create_field_index(wanted.field_name, _KINDS[wanted.field_schema])
        )

    def _upsert(self, name: str, body: Any) -> models.UpdateResult:
        points = [_point(point) for point in models.PointsList.model_validate(body).points]
        return self._update(name, edge.UpdateOperation.upsert_points(points))

    def _set_payload(self, name: str, body: Any) -> models.UpdateResult:
        wanted = models.SetPayload.model_validate(body)
        return self._update(name, edge.UpdateOperation.set_payload(list(wanted.points or []), wanted.payload))

    def _delete(self, name: str, body: Any) -> models.UpdateResult:
        wanted = models.PointIdsList.model_validate(body)
        return self._update(name, edge.UpdateOperation.delete_points(list(wanted.points)))

    def _update(self, name: str, operation: edge.UpdateOperation) -> models.UpdateResult:
        self._shards[name].update(operation)
        return models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)

    def _retrieve(self, name: str, body: Any) -> list[models.Record]:
        wanted = models.PointRequest.model_validate(body)
        found = self._shards[name].retrieve(list(wanted.ids), wanted.with_payload or False, bool(wanted.with_vector))
        return [_record(point) for point in found]

    def _scroll(self, name: str, body: Any) -> dict[str, Any]:
        wanted = models.ScrollRequest.model_validate(body)
        points, following = self._shards[name].scroll(
            edge.ScrollRequest(
                offset=wanted.offset,
                limit=wanted.limit,
                filter=_filter(wanted.filter),
                with_payload=wanted.with_payload,
                with_vector=bool(wanted.with_vector),
            )
        )
        records = [_record(point).model_dump(mode="json") for point in points]
        return {"points": records, "next_page_offset": str(following) if following else None}

    def _count(self, name: str, body: Any) -> models.CountResult:
        wanted = models.CountRequest.model_validate(body)
        counted = edge.CountRequest(exact=bool(wanted.exact), filter=_filter(wanted.filter))
        return models.CountResult(count=self._shards[name].count(counted))

    def _query(self, name: str, body: Any) -> list[dict[str, Any]]:
        queries = [_query(search) for search in models.QueryRequestBatch.model_validate(body).searches]
        found = self._shards[name].query_batch(edge.QueryBatchRequest(queries))
        return [{"points": [_scored(point).model_dump(mode="json") for point in points]} for points in found]


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


def _query(wanted: models.QueryRequest) -> edge.QueryRequest:
    # What is not handed on must not be asked for.
    assert not any((wanted.offset, wanted.score_threshold, wanted.params, wanted.lookup_from))
    if not wanted.prefetch:
        return edge.QueryRequest(
            limit=wanted.limit,
            query=_nearest(wanted.query, wanted.using),
            filter=_filter(wanted.filter),
            with_payload=wanted.with_payload,
        )
    assert isinstance(wanted.prefetch, list)
    assert isinstance(wanted.query, models.RrfQuery)
    return edge.QueryRequest(
        limit=wanted.limit,
        query=edge.Fusion.Rrf(k=wanted.query.rrf.k),
        prefetches=[
            edge.Prefetch(
                limit=item.limit,
                query=_nearest(item.query, item.using),
                filter=_filter(item.filter),
            )
            for item in wanted.prefetch
        ],
        with_payload=wanted.with_payload,
    )


def _nearest(query: Any, using: str | None) -> edge.Query:
    return edge.Query.Nearest(_vector(query.nearest if isinstance(query, models.NearestQuery) else query), using=using)


def _filter(wanted: models.Filter | None) -> edge.Filter | None:
    return wanted and _conditions(wanted)


def _conditions(wanted: models.Filter) -> edge.Filter:
    assert not wanted.min_should
    parts = {name: getattr(wanted, name) for name in ("must", "should", "must_not")}
    return edge.Filter(**{name: [_condition(item) for item in items] for name, items in parts.items() if items})


def _condition(wanted: Any) -> Any:
    if isinstance(wanted, models.Filter):
        return _conditions(wanted)
    if isinstance(wanted, models.HasIdCondition):
        return edge.HasIdCondition({str(one) for one in wanted.has_id})
    if isinstance(wanted, models.IsEmptyCondition):
        return edge.IsEmptyCondition(key=wanted.is_empty.key)
    assert isinstance(wanted, models.FieldCondition)
    if wanted.range is not None:
        bounds = wanted.range.model_dump(exclude_none=True)
        kind = edge.RangeFloat if isinstance(wanted.range, models.Range) else edge.RangeDateTime
        if kind is edge.RangeDateTime:
            bounds = {name: time.isoformat() for name, time in bounds.items()}
        return edge.FieldCondition(key=wanted.key, range=kind(**bounds))
    assert isinstance(wanted.match, models.MatchValue)
    # The binding takes a Python bool for an integer, NumPy's for what it is.
    value = wanted.match.value
    return edge.FieldCondition(
        key=wanted.key, match=edge.MatchValue(np.bool_(value) if isinstance(value, bool) else value)
    )


def _scored(point: edge.ScoredPoint) -> models.ScoredPoint:
    return models.ScoredPoint(id=str(point.id), version=point.version, score=point.score, payload=point.payload)
