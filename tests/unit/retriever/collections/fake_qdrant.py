"""A Qdrant server over HTTP, as far as collections ask for it: requests are read by Qdrant's own models, and executed
by qdrant-client in memory."""

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
from pydantic import BaseModel
from qdrant_client import QdrantClient, models

Handler = Callable[[str, Any], Any]


class FakeQdrant:
    """Serves `transport`; `requests` are those that came, `broken` answers all with that status."""

    def __init__(self) -> None:
        self.client = QdrantClient(":memory:")
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: httpx.Headers = httpx.Headers()
        self.broken = 0
        self.transport = httpx.MockTransport(self._handle)
        self._indexes: dict[str, dict[str, Any]] = {}
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/exists"): lambda name, _: {"exists": self.client.collection_exists(name)},
            ("GET", ""): lambda name, _: self.client.get_collection(name),
            ("PUT", ""): self._create,
            ("PATCH", ""): lambda name, body: self.client.update_collection(name, metadata=body["metadata"]),
            ("DELETE", ""): lambda name, _: self.client.delete_collection(name),
            ("PUT", "/index"): self._index,
            ("PUT", "/points"): self._upsert,
            ("POST", "/points"): self._retrieve,
            ("POST", "/points/payload"): self._set_payload,
            ("POST", "/points/delete"): self._delete,
            ("POST", "/points/count"): self._count,
            ("POST", "/points/query/batch"): self._query,
        }

    def indexes(self, name: str) -> dict[str, Any]:
        return self._indexes[name]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.headers = request.headers
        if self.broken:
            return httpx.Response(self.broken, json={"status": {"error": "broken"}}, request=request)
        body = json.loads(request.content) if request.content else None
        path = request.url.path
        self.requests.append((request.method, path, body))
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
        self._indexes[name] = {}
        return self.client.create_collection(
            name,
            vectors_config=wanted.vectors,
            sparse_vectors_config=wanted.sparse_vectors,
            metadata=wanted.metadata,
        )

    def _index(self, name: str, body: Any) -> Any:
        wanted = models.CreateFieldIndex.model_validate(body)
        self._indexes[name][wanted.field_name] = wanted.field_schema
        return _done()

    def _upsert(self, name: str, body: Any) -> Any:
        return self.client.upsert(name, models.PointsList.model_validate(body).points)

    def _retrieve(self, name: str, body: Any) -> Any:
        wanted = models.PointRequest.model_validate(body)
        return self.client.retrieve(name, wanted.ids, with_payload=wanted.with_payload or False)

    def _set_payload(self, name: str, body: Any) -> Any:
        wanted = models.SetPayload.model_validate(body)
        return self.client.set_payload(name, wanted.payload, points=list(wanted.points or []))

    def _delete(self, name: str, body: Any) -> Any:
        return self.client.delete(name, models.PointIdsList.model_validate(body))

    def _count(self, name: str, body: Any) -> Any:
        wanted = models.CountRequest.model_validate(body)
        return self.client.count(name, count_filter=wanted.filter)

    def _query(self, name: str, body: Any) -> Any:
        wanted = models.QueryRequestBatch.model_validate(body)
        return self.client.query_batch_points(name, wanted.searches)


def _done() -> models.UpdateResult:
    return models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)
