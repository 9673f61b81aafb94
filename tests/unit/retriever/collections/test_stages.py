"""The stages of indexing over Arrow tables, driven by a loop that does each batch twice, as a cluster may."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import HttpUrl

pa = pytest.importorskip("pyarrow")

from pyarrow import parquet  # noqa: E402

from proto.collections import CreateCollection  # noqa: E402
from services.kit.errors import NotFound  # noqa: E402
from services.retriever.collections import stages  # noqa: E402
from services.retriever.collections.documents import CHUNKER, File, Version  # noqa: E402
from services.retriever.collections.errors import CollectionConflict  # noqa: E402
from services.retriever.collections.schema import EncoderRecord, Schema  # noqa: E402
from services.retriever.collections.store import ServerStore  # noqa: E402
from services.retriever.settings import RetrieverSettings  # noqa: E402
from tests.unit.retriever.collections.conftest import store_of  # noqa: E402
from tests.unit.retriever.collections.qdrant_server import QdrantServer  # noqa: E402
from tests.unit.retriever.collections.test_ingest import Inline  # noqa: E402

RECORDS = {"count": EncoderRecord(dimension=2, fingerprint="none", precision="fp32")}
LETTER = File("A letter about seals.", id="letter", title="Seals", fields={"year": 1864})
BOOK = File(" ".join(f"Chapter {number} tells of {number * 7} walruses." for number in range(90)), id="book")


class InlinePages(Inline):
    def __init__(self, **_: Any) -> None:
        pass


@pytest.fixture
def target(
    monkeypatch: pytest.MonkeyPatch, qdrant: QdrantServer, request: pytest.FixtureRequest
) -> Iterator[stages.Target]:
    monkeypatch.setattr(stages, "PagePool", InlinePages)
    collection = stages.Target(
        f"stages-{request.node.name[:40]}", RetrieverSettings(qdrant_url=HttpUrl("http://qdrant:6333"))
    )

    monkeypatch.setattr(stages.Target, "store", lambda _: store_of(qdrant))
    asyncio.run(_create(store_of(qdrant), collection.name, chunked=True))
    yield collection
    asyncio.run(_run(store_of(qdrant), "delete", collection.name))


async def _create(store: ServerStore, name: str, *, chunked: bool) -> None:
    await _run(store, "create", name, Schema.build(CreateCollection(chunked=chunked), RECORDS))


async def _run(store: ServerStore, method: str, *arguments: Any) -> Any:
    async with store.running():
        return await getattr(store, method)(*arguments)


def contents(target: stages.Target) -> dict[str, Any]:
    async def read() -> dict[str, Any]:
        async with target.store().running() as store:
            points, _ = await store.call("scroll", collection_name=target.name, limit=1_000, with_payload=True)
            return {f"{point.payload['document']} {point.payload['chunk']}": point.payload for point in points}

    return asyncio.run(read())


def parsed(target: stages.Target, *files: File | str) -> Any:
    with closing(stages.Parse(target, chunker=CHUNKER)) as parse:
        return parse(stages.raw((f"n{place}", file) for place, file in enumerate(files)))


def written(target: stages.Target, table: Any) -> Any:
    with closing(stages.Write(target, RECORDS)) as write:
        # The same batch again, as after a failure that nobody has seen.
        assert write(table) == write(table)
        return write(table)


def with_vectors(table: Any) -> Any:
    """As `Encode` would, by lengths."""
    texts = table["texts"].to_pylist()
    flat = [[len(text) % 2, 1 - len(text) % 2] for of in texts for text in of]
    column = stages._column(np.asarray(flat, np.float32).reshape(-1, 2), list(map(len, texts)))
    return table.append_column("vector:count", column)


def states(table: Any) -> list[str]:
    return list(table["state"].to_pylist())


def test_each_batch_done_twice_leaves_each_point_once(target: stages.Target, tmp_path: Path) -> None:
    table = with_vectors(parsed(target, LETTER, BOOK, "no text"))
    assert states(table) == ["parsed", "parsed", "skipped"]
    # By way of Parquet, as others take and make it.
    parquet.write_table(table, tmp_path / "vectors.parquet")
    table = parquet.read_table(tmp_path / "vectors.parquet")
    assert states(written(target, table)) == ["written", "written", "skipped"]
    payloads = contents(target)
    assert len(payloads) == 1 + len(table["texts"].to_pylist()[1]) > 5
    assert all(payload.get("complete", True) for payload in payloads.values())
    assert payloads["letter 0"]["digest"] == Version.of(LETTER).digest
    assert payloads["letter 0"]["fields"] == {"year": 1864}
    assert payloads["letter 0"]["title"] == "Seals"
    assert states(parsed(target, LETTER, BOOK)) == ["unchanged", "unchanged"]


def test_another_version_takes_the_place_of_one(target: stages.Target) -> None:
    written(target, with_vectors(parsed(target, BOOK)))
    later = File("The book is lost.", id="book")
    assert states(written(target, with_vectors(parsed(target, BOOK, later)))) == ["unchanged", "written"]
    assert contents(target).keys() == {"book 0"}


def test_of_one_id_the_last_of_a_batch_is_kept(target: stages.Target) -> None:
    table = with_vectors(parsed(target, File("One.", id="a"), File("Two.", id="a")))
    assert states(written(target, table)) == ["duplicate", "written"]
    assert contents(target)["a 0"]["text"] == "Two."


def test_vectors_that_are_not_the_passages_are_refused(target: stages.Target) -> None:
    table = with_vectors(parsed(target, LETTER))
    with pytest.raises(CollectionConflict, match="no vectors of count"):
        written(target, table.drop_columns(["vector:count"]))
    wrong = table.set_column(table.num_columns - 1, "vector:count", pa.array([[[0.1, 0.2, 0.3]]]))
    assert written(target, wrong)["problem"].to_pylist() == [stages.UNREADABLE]
    assert contents(target) == {}


def test_a_collection_must_be_there_and_know_its_average_length(target: stages.Target) -> None:
    assert asyncio.run(target.schema()).encoders == RECORDS
    with pytest.raises(NotFound):
        asyncio.run(stages.Target("absent", target.settings).schema())
    asyncio.run(_create(target.store(), "wholes", chunked=False))
    with pytest.raises(CollectionConflict, match="average length"):
        asyncio.run(stages.Target("wholes", target.settings).schema())
    asyncio.run(_run(target.store(), "delete", "wholes"))


def test_the_embedded_store_takes_no_other_writers() -> None:
    with pytest.raises(ValueError, match="CRAGMESH_QDRANT_URL"):
        stages.Target("a", RetrieverSettings()).store()
