"""What differs between the embedded store and a server, and what happens where neither can be had."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import QdrantClient

from services.kit.errors import Unavailable
from services.retriever.collections import local
from services.retriever.collections.local import LocalStore
from services.retriever.collections.postings import Postings
from services.retriever.collections.schema import KEY
from services.retriever.collections.store import ServerStore, skew
from tests.unit.conftest import Nowhere
from tests.unit.retriever.collections.conftest import running, settings, store_of
from tests.unit.retriever.collections.qdrant_server import QdrantServer
from tests.unit.retriever.collections.test_ingest import LETTER, NAME, SCHEMA, Library

pytestmark = pytest.mark.anyio

TOKEN = "shared by all services"  # noqa: S105 - of this test alone


@pytest.fixture(scope="module")
async def served(server: QdrantServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    none = settings(tmp_path_factory.mktemp("none"), mesh_token=TOKEN)
    async with running(none, store_of(server, "secret")) as client:
        client.headers["x-mesh-token"] = TOKEN
        yield client


async def test_a_server_gets_shards_replicas_indexes_and_the_key(
    served: httpx.AsyncClient, server: QdrantServer
) -> None:
    body = {"shards": 3, "replicas": 2, "indexed_fields": {"year": "integer", "kind": "keyword"}}
    assert (await served.put("/collections/wide", json=body)).status_code == 201
    created = next(body for method, path, body in server.requests if (method, path) == ("PUT", "/collections/wide"))
    assert (created["shard_number"], created["replication_factor"]) == (3, 2)
    assert created["sparse_vectors"] == {"bm25": {"modifier": "idf"}}
    assert server.indexes("wide") == {"chunk": "integer", "fields.year": "integer", "fields.kind": "keyword"}
    assert server.headers["api-key"] == "secret"


async def test_indexes_that_a_crash_has_prevented_are_made_by_the_next_request(
    served: httpx.AsyncClient, server: QdrantServer
) -> None:
    body = {"indexed_fields": {"year": "integer"}}
    assert (await served.put("/collections/cut-short", json=body)).status_code == 201
    server.indexes("cut-short").clear()
    assert (await served.put("/collections/cut-short", json=body)).status_code == 200
    assert server.indexes("cut-short") == {"chunk": "integer", "fields.year": "integer"}


async def test_one_call_finds_and_fuses(served: httpx.AsyncClient, server: QdrantServer) -> None:
    await served.put("/collections/one-call", json={})
    await served.post("/collections/one-call/documents", json={"documents": [{"text": "On walruses."}]})
    server.requests.clear()
    reply = await served.post("/collections/one-call/search", json={"queries": ["walruses", "seals"]})
    assert len(reply.json()["hits"]) == 1
    queries = [body for _, path, body in server.requests if path.endswith("/query/batch")]
    assert len(queries) == 1
    assert len(queries[0]["searches"]) == 1
    assert len(queries[0]["searches"][0]["prefetch"]) == 4
    assert queries[0]["searches"][0]["query"] == {"rrf": {"k": 60}}


async def test_collections_of_others_are_left_alone(served: httpx.AsyncClient, server: QdrantServer) -> None:
    server.client.create_collection("theirs", vectors_config={})
    server.client.create_collection(
        "older", vectors_config={}, metadata={KEY: {"version": 0, "encoders": {}, "chunked": True}}
    )
    newer = SCHEMA.model_dump() | {"chunker": "by-meaning"}
    server.client.create_collection("newer", vectors_config={}, metadata={KEY: newer})
    listed = (await served.get("/collections")).json()["collections"]
    assert not {"theirs", "older", "newer"} & {item["name"] for item in listed}
    for method in ("GET", "PUT", "DELETE"):
        reply = await served.request(method, "/collections/theirs", json={} if method == "PUT" else None)
        assert reply.status_code == 409
        assert "not made by this service" in reply.json()["detail"]
    assert server.client.collection_exists("theirs")
    assert "index again" in (await served.get("/collections/older")).json()["detail"]
    assert "cannot read" in (await served.get("/collections/newer")).json()["detail"]
    assert (await served.delete("/collections/older")).status_code == 204


@pytest.mark.parametrize(("status", "answered"), [(500, 503), (403, 503), (429, 429)])
async def test_a_server_that_fails_is_named(
    served: httpx.AsyncClient, server: QdrantServer, status: int, answered: int
) -> None:
    server.broken = status
    try:
        reply = await served.get("/collections")
    finally:
        server.broken = 0
    assert reply.status_code == answered
    assert "Qdrant server" in reply.json()["detail"]


async def test_what_changes_collections_asks_for_the_meshs_token(served: httpx.AsyncClient) -> None:
    await served.put("/collections/guarded", json={})
    for method, path, body in (
        ("PUT", "/collections/guarded", {}),
        ("DELETE", "/collections/guarded", None),
        ("POST", "/collections/guarded/documents", {"documents": [{"text": "a text"}]}),
        ("POST", "/collections/guarded/search", {"queries": ["a query"]}),
    ):
        reply = await served.request(method, path, json=body, headers={"x-mesh-token": "guess"})
        assert reply.status_code == 401, method
    assert (await served.get("/collections/guarded")).status_code == 200


async def test_a_server_that_is_not_there_is_named() -> None:
    store = ServerStore("http://qdrant:6333", api_key="", timeout_s=10, transport=Nowhere())
    async with store.running():
        with pytest.raises(Exception, match="did not answer"):
            await store.names()


@pytest.mark.parametrize(
    ("theirs", "ours", "warns"),
    [
        ("1.19.1", "1.20.0", False), ("v1.21.0-dev", "1.20.0", False), ("1.16.3", "1.20.0", True),
        ("1.22.0", "1.20.0", True), ("2.0.0", "1.20.0", True), ("unknown", "1.20.0", False),
    ],
)  # fmt: skip
def test_a_server_may_be_one_minor_version_from_its_client(theirs: str, ours: str, warns: bool) -> None:
    assert bool(skew(theirs, ours)) is warns


async def test_a_server_of_another_time_is_named_once_it_answers(
    server: QdrantServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.retriever.collections.store.ASK_AGAIN_S", 0.01)
    monkeypatch.setattr(server, "version", "1.16.3")
    warned = asyncio.Event()
    monkeypatch.setattr("services.retriever.collections.store.log.warning", lambda *_, **__: warned.set())
    server.broken = 503
    store = store_of(server)
    async with store.running():
        await asyncio.sleep(0.03)
        assert not store.warning
        server.broken = 0
        await asyncio.wait_for(warned.wait(), 30)
    assert "the Qdrant server is 1.16.3 and its client" in store.warning


async def test_readiness_says_what_the_store_warns_of(
    served: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (await served.get("/readyz")).json()
    monkeypatch.setattr(ServerStore, "warning", "the Qdrant server is old")
    after = (await served.get("/readyz")).json()
    assert after == before | {"detail": f"{before['detail']}; the Qdrant server is old"}
    assert after["ready"]


async def test_local_mode_has_no_shards(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "made" / "when" / "needed")) as client:
        reply = await client.put("/collections/wide", json={"shards": 2})
        assert reply.status_code == 422
        assert "Qdrant server" in reply.json()["detail"]
        # Nothing is opened before it is asked for: another process may hold it.
        assert not (tmp_path / "made").exists()
        assert (await client.get("/collections")).json() == {"collections": []}


async def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    async with LocalStore(tmp_path / "file").running() as store:
        with pytest.raises(Exception, match="cannot be opened"):
            await store.names()


async def test_what_lies_there_is_read_before_anybody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with LocalStore(tmp_path).running() as store:
        await store.create(NAME, SCHEMA)
        await Library(store).put(LETTER)
    read: list[str] = []
    index = local._index

    def counted(client: QdrantClient, name: str) -> Postings:
        read.append(name)
        return index(client, name)

    monkeypatch.setattr(local, "_index", counted)
    async with LocalStore(tmp_path).running() as store:
        assert read == [NAME]
        assert len(await Library(store).matches("seals")) == 1
        assert read == [NAME]

    def damaged(*_: object) -> Postings:
        raise KeyError("bm25")

    monkeypatch.setattr(local, "_index", damaged)
    async with LocalStore(tmp_path).running() as store:
        assert await store.names() == [NAME]


# Of qdrant-client, where another has the lock.
@pytest.mark.filterwarnings(r"ignore:unclosed file .*\.lock:ResourceWarning")
async def test_one_store_holds_the_folder(tmp_path: Path) -> None:
    # The lock is an open file's, so that two stores in one process are as two processes.
    async with LocalStore(tmp_path).running() as second:
        async with LocalStore(tmp_path).running() as first:
            await first.create(NAME, SCHEMA)
            with pytest.raises(Unavailable, match="CRAGMESH_QDRANT_PATH"):
                await second.names()
            # One that finds it held starts all the same, for pages.
            async with LocalStore(tmp_path).running():
                pass
        assert await second.names() == [NAME]
    gc.collect()
