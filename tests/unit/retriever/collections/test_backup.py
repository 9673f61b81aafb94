"""Backups of both stores, each restored to the other, where the same questions find the same passages."""

import gzip
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.kit.errors import InvalidRequest, MeshError
from services.retriever.collections.backup import backup, restore
from services.retriever.collections.errors import CollectionConflict
from services.retriever.collections.local import LocalStore
from services.retriever.collections.store import Store
from tests.unit.retriever.collections.conftest import MINILM, running, settings, store_of
from tests.unit.retriever.collections.qdrant_server import QdrantServer

pytestmark = pytest.mark.anyio

TEXTS = [f"Keeper {index} lit the lamp of the harbour in {1800 + index}." for index in range(3)]
CHAPTERS = [f"Keeper {index} lit it. {'Oil burnt. ' * 40}" for index in range(4)]
BOOK = {"documents": [{"id": "book", "text": "\n\n".join(CHAPTERS)}]}


@pytest.fixture
async def stores(server: QdrantServer, tmp_path: Path) -> AsyncIterator[dict[str, Store]]:
    remote = store_of(server)
    async with remote.running(), LocalStore(tmp_path / "store").running() as local:
        yield {"server": remote, "local": local}


@pytest.fixture(scope="module")
async def filled(server: QdrantServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a collection that a retriever has made."""
    folder = tmp_path_factory.mktemp("filled")
    store = store_of(server)
    async with running(settings(folder), store) as client:
        await client.put("/collections/lamps", json={"indexed_fields": {"year": "integer"}})
        documents = [{"text": text, "fields": {"year": 1800 + index}} for index, text in enumerate(TEXTS)]
        assert (await client.post("/collections/lamps/documents", json={"documents": documents})).json()["added"] == 3
        file = folder / "lamps.jsonl.gz"
        await backup(store, "lamps", file)
    return file


async def points_of(store: Store, name: str) -> dict[str, Any]:
    points, _ = await store.call("scroll", collection_name=name, limit=100, with_payload=True, with_vectors=True)
    return {str(point.id): point for point in points}


@pytest.mark.parametrize(("source", "target"), [("server", "local"), ("local", "server")])
async def test_a_restored_collection_is_the_one_that_was(
    filled: Path, stores: dict[str, Store], tmp_path: Path, source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.retriever.collections.backup.BATCH", 2)
    assert await restore(stores[source], filled, f"from-{source}") == (f"from-{source}", 3)
    file = tmp_path / "again.jsonl.gz"
    assert await backup(stores[source], f"from-{source}", file) == 3
    name = f"to-{target}"
    assert await restore(stores[target], file, name) == (name, 3)
    metadata = await stores[target].metadata(name)
    assert metadata == await stores[source].metadata(f"from-{source}")
    assert metadata["average_length"]
    there, here = await points_of(stores[source], f"from-{source}"), await points_of(stores[target], name)
    assert there.keys() == here.keys()
    assert {point.payload["fields"]["year"] for point in here.values()} == {1800, 1801, 1802}
    for id, point in here.items():
        assert point.payload == there[id].payload
        assert point.vector["bm25"] == there[id].vector["bm25"]
        assert point.vector[MINILM] == pytest.approx(there[id].vector[MINILM], abs=1e-6)


async def test_a_restored_collection_answers_and_grows(filled: Path, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    async with running(settings(tmp_path), store) as client:
        await restore(store, filled)
        reply = await client.post("/collections/lamps/search", json={"queries": ["who lit the lamp in 1801?"]})
        assert reply.json()["hits"][0]["text"] == TEXTS[1]
        again = await client.post("/collections/lamps/documents", json={"documents": [{"text": "A new keeper."}]})
        assert again.json()["added"] == 1
        assert (await client.get("/collections/lamps")).json()["documents"] == 4


@pytest.fixture(scope="module")
async def book(server: QdrantServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a collection of one document with several passages."""
    folder = tmp_path_factory.mktemp("book")
    store = store_of(server)
    async with running(settings(folder), store) as client:
        await client.put("/collections/book", json={})
        await client.post("/collections/book/documents", json=BOOK)
        await backup(store, "book", folder / "book.jsonl.gz")
    return folder / "book.jsonl.gz"


async def test_an_interrupted_restore_leaves_no_document_complete(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.retriever.collections.backup.BATCH", 1)
    for writes in range(1, len(lines_of(book)) - 2):
        store = LocalStore(tmp_path / str(writes))
        async with running(settings(tmp_path), store) as client:
            with monkeypatch.context() as patch:
                patch.setattr(store, "write", failing_after(writes, store.write))
                with pytest.raises(ConnectionError):
                    await restore(store, book)
            (document,) = (await client.get("/collections/book/documents")).json()["documents"]
            assert document["state"] != "complete"
            await client.post("/collections/book/documents", json=BOOK)
            (document,) = (await client.get("/collections/book/documents")).json()["documents"]
            info = (await client.get("/collections/book")).json()
            assert (document["state"], document["passages"]) == ("complete", info["points"])


async def test_a_document_that_a_backup_has_in_part_is_incomplete(book: Path, tmp_path: Path) -> None:
    header, *points, _ = lines_of(book)
    points.remove(next(line for line in points if json.loads(line)["payload"]["chunk"]))
    lines = [header, *points, b'{"points":%d}' % len(points)]
    file = damage(book, lambda _: gzip.compress(b"".join(lines)), tmp_path / "part.jsonl.gz")
    store = LocalStore(tmp_path / "store")
    async with running(settings(tmp_path), store) as client:
        assert await restore(store, file) == ("book", len(points))
        assert (await client.get("/collections/book/documents")).json()["documents"][0]["state"] != "complete"
        await restore(store, book, replace=True)
        assert (await client.get("/collections/book/documents")).json()["documents"][0]["state"] == "complete"


def lines_of(file: Path) -> list[bytes]:
    return gzip.decompress(file.read_bytes()).splitlines(keepends=True)


def failing_after(writes: int, write: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    left = iter(range(writes))

    async def failing(name: str, points: Sequence[Any]) -> None:
        if next(left, None) is None:
            raise ConnectionError
        await write(name, points)

    return failing


async def test_what_is_there_is_replaced_only_when_asked(filled: Path, stores: dict[str, Store]) -> None:
    await restore(stores["local"], filled, "twice")
    with pytest.raises(CollectionConflict, match="'twice' exists"):
        await restore(stores["local"], filled, "twice")
    await stores["local"].remove("twice", list(await points_of(stores["local"], "twice"))[:1])
    assert await restore(stores["local"], filled, "twice", replace=True) == ("twice", 3)


def without_a_line(packed: bytes) -> bytes:
    first, _, *others = gzip.decompress(packed).splitlines(keepends=True)
    return gzip.compress(b"".join([first, *others]))


def damage(file: Path, harm: Callable[[bytes], bytes], to: Path) -> Path:
    to.write_bytes(harm(file.read_bytes()))
    return to


@pytest.mark.parametrize(
    "harm",
    [
        lambda whole: whole[:-20],
        lambda whole: whole[:200] + bytes([whole[200] ^ 255]) + whole[201:],
        without_a_line,
        lambda _: b"",
        lambda _: b"a text",
    ],
    ids=["cut", "flipped", "short", "empty", "text"],
)
async def test_a_file_that_is_not_whole_changes_nothing(
    filled: Path, stores: dict[str, Store], tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    damaged = damage(filled, harm, tmp_path / "damaged.jsonl.gz")
    await restore(stores["local"], filled, "kept")
    with pytest.raises(InvalidRequest, match="no backup of a collection, or not all of one"):
        await restore(stores["local"], damaged, "kept", replace=True)
    assert await stores["local"].count("kept") == 3


async def test_a_backup_that_fails_leaves_the_last_one(filled: Path, stores: dict[str, Store], tmp_path: Path) -> None:
    file = tmp_path / "lamps.jsonl.gz"
    file.write_bytes(b"the last one")
    with pytest.raises(MeshError):
        await backup(stores["local"], "missing", file)
    assert sorted(os.listdir(tmp_path)) == ["lamps.jsonl.gz", "store"]
    assert file.read_bytes() == b"the last one"


@pytest.fixture
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the embedded store that the commands open, which is not there yet."""
    for name in [name for name in os.environ if name.startswith("CRAGMESH_QDRANT")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CRAGMESH_QDRANT_PATH", str(tmp_path / "store"))
    return tmp_path / "store"


def test_the_commands_over_a_folder(filled: Path, embedded: Path, tmp_path: Path) -> None:
    invoke = CliRunner().invoke
    assert "lamps: 3 points" in invoke(app, ["collections", "restore", str(filled)]).output
    again = invoke(app, ["collections", "restore", str(filled)])
    assert again.exit_code == 1
    assert "restore it under another name, or replace it" in " ".join(again.output.split())
    assert invoke(app, ["collections", "backup", str(tmp_path / "files")]).exit_code == 0
    lines = gzip.decompress((tmp_path / "files/lamps.jsonl.gz").read_bytes()).splitlines()
    assert len(lines) == 5
    # A folder that cannot be made, and a collection that is not there.
    (tmp_path / "file").touch()
    result = invoke(app, ["collections", "backup", str(tmp_path / "file" / "folder")])
    assert (result.exit_code, "Not a directory" in result.output) == (1, True)
    result = invoke(app, ["collections", "backup", str(tmp_path / "none"), "-c", "lamps", "-c", "missing"])
    assert (result.exit_code, "missing" in result.output) == (1, True)
    assert not (tmp_path / "none").exists()


def test_a_relative_folder_of_collections_is_the_checkouts(
    filled: Path, embedded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr("services.cli.backup.project_root", lambda: tmp_path)
    monkeypatch.setenv("CRAGMESH_QDRANT_PATH", "store")
    assert CliRunner().invoke(app, ["collections", "restore", str(filled)]).exit_code == 0
    assert embedded.is_dir()
    assert CliRunner().invoke(app, ["collections", "backup", "files"]).exit_code == 0
    # What is written is of the folder that the command runs in.
    assert os.listdir() == ["files"]


@pytest.mark.parametrize("is_made", [False, True])
def test_a_backup_of_nothing_is_none(embedded: Path, tmp_path: Path, is_made: bool) -> None:
    if is_made:
        embedded.mkdir()
    result = CliRunner().invoke(app, ["collections", "backup", str(tmp_path / "files")])
    assert (result.exit_code, "there are no collections" in result.output) == (1, True)
    assert not (tmp_path / "files").exists()
    assert embedded.exists() is is_made
