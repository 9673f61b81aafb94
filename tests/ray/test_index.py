"""Indexing on a real Ray cluster of two nodes, of which actors are killed: `make test-ray`.

CRAGMESH_TEST_RAY=DOCUMENTS[:ENCODERS_FILE:ENCODER]   more documents, by another encoder than MiniLM
"""

import asyncio
import json
import os
import re
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import HttpUrl

from proto.collections import CreateCollection
from services.cli.corpus import Keys, read
from services.cli.ray_index import Cluster as Layout
from services.cli.ray_index import Corpus, Outcome, index
from services.kit.encoder import Encoder
from services.kit.encoders import EncoderPool, definitions
from services.retriever.collections.documents import CHUNKER, File, Version, passages
from services.retriever.collections.schema import EncoderRecord, Schema
from services.retriever.collections.stages import Target
from services.retriever.settings import RetrieverSettings
from tests.ray.cluster import Cluster, qdrant
from tests.unit.retriever.collections.qdrant_server import QdrantServer

COUNT, _, NAMED = os.environ.get("CRAGMESH_TEST_RAY", "400").partition(":")
FILES = 5
PAGE = 10_000


def sentences() -> list[str]:
    """English that comes with Python: sentences of its modules' docstrings."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    texts = (text for path in sources for text in re.findall(r'"""(.+?)"""', path.read_text(), re.DOTALL))
    return [line for text in texts for line in re.findall(r"[A-Z][\w ,'-]{20,70}\.", " ".join(text.split()))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[QdrantServer, str]]:
    with qdrant(tmp_path_factory.mktemp("qdrant")) as served:
        yield served


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    english = sentences()
    for part in range(FILES):
        with (folder / f"part{part}.jsonl").open("w") as file:
            for number in range(part, int(COUNT), FILES):
                # One in fifty has several passages.
                first = number % (len(english) - 12)
                text = f"{number}. " + " ".join(english[first : first + (12 if number % 50 == 0 else 1)])
                file.write(json.dumps({"id": f"d{number}", "text": text, "number": number}) + "\n")
    (folder / "picture.png").write_bytes(b"\x89PNG\x00")
    return Corpus(str(folder), Keys())


async def new_target(server: str, name: str) -> Target:
    """A collection that is new, by the encoder that the tests are run with."""
    file, _, encoder = NAMED.partition(":")
    settings = RetrieverSettings(qdrant_url=HttpUrl(server), encoders_file=Path(file) if file else None, threads=1)
    pool = EncoderPool(definitions(settings.encoders_file), max_bytes=2**30)
    model: Encoder = pool.get(encoder or "all-MiniLM-L6-v2")
    target = Target(name, settings)
    schema = Schema.build(CreateCollection(), {model.name: EncoderRecord.of(model)})
    async with target.store().running() as store:
        await store.create(name, schema)
    return target


async def contents(target: Target, *, vectors: bool) -> dict[str, Any]:
    content: dict[str, Any] = {}
    async with target.store().running() as store:
        offset = None
        while True:
            points, offset = await store.call(
                "scroll", collection_name=target.name, limit=PAGE, offset=offset, with_payload=True
            )
            content |= {str(point.id): [point.payload] for point in points}
            if offset is None:
                break
        if vectors:
            for id, point in (await store.points(target.name, list(content))).items():
                content[id].append(point.vector)
    return content


def expected(corpus: Corpus) -> set[str]:
    folder = Path(corpus.uri)
    files = [File.of(item.document) for item in read(sorted(folder.glob("*.jsonl")), folder, Keys()) if item.document]
    return {
        Version.of(file).point(number)
        for file in files
        for number in range(len(passages(file.content, file.format, file.title, CHUNKER).chunks))
    }


def test_a_corpus_survives_the_death_of_its_actors(
    nodes: Cluster, server: tuple[QdrantServer, str], corpus: Corpus
) -> None:
    qdrant_server, url = server
    target = asyncio.run(new_target(url, "harbours"))
    killed: list[str] = []
    ended = threading.Event()

    def kill() -> None:
        shard = qdrant_server._shards[target.name]
        for stage, share in (("MapBatches(Encode)", 0.1), ("MapBatches(Write)", 0.3)):
            while not ended.is_set():
                points = shard.info().points_count
                if points >= share * int(COUNT) and (workers := nodes.workers(stage)):
                    workers[0].kill()
                    killed.append(stage)
                    break
                time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    began = time.monotonic()
    outcome = index(corpus, target, Layout(encoders=2))
    seconds = time.monotonic() - began
    ended.set()
    killer.join()
    assert len(killed) == 2, "all was written before an actor could be killed"
    points = asyncio.run(contents(target, vectors=False))
    assert points.keys() == expected(corpus)
    assert all(payload.get("complete", True) for (payload,) in points.values())
    assert outcome.states == {"written": int(COUNT), "skipped": 1}
    assert outcome.points == len(points)
    assert outcome.twice == 0
    assert "picture.png" in outcome.problems[0]
    # No graph while points streamed in; one afterwards.
    edges = [body["hnsw_config"]["m"] for _, _, body in qdrant_server.requests if "hnsw_config" in (body or {})]
    assert edges == [0, 16]
    print(f"{COUNT} documents, {len(points)} points, {seconds:.1f} s; killed {', '.join(killed)}")


def test_what_is_there_is_not_made_again(server: tuple[QdrantServer, str], nodes: Cluster, corpus: Corpus) -> None:
    target = Target("harbours", asyncio.run(new_target(server[1], "another")).settings)
    assert index(corpus, target, Layout()).states == {"unchanged": int(COUNT), "skipped": 1}


def test_vectors_go_through_parquet(
    server: tuple[QdrantServer, str], nodes: Cluster, corpus: Corpus, tmp_path: Path
) -> None:
    if int(COUNT) > PAGE:
        pytest.skip("compares whole collections")
    target = asyncio.run(new_target(server[1], "parquet"))
    assert index(corpus, target, Layout(), vectors_to=str(tmp_path / "vectors")) == Outcome()
    assert asyncio.run(contents(target, vectors=False)) == {}
    outcome = index(Corpus(str(tmp_path / "vectors"), Keys()), target, Layout(), vectors=True)
    assert outcome.states == {"written": int(COUNT), "skipped": 1}
    direct = asyncio.run(contents(Target("harbours", target.settings), vectors=True))
    loaded = asyncio.run(contents(target, vectors=True))
    assert loaded.keys() == direct.keys()
    for id, (payload, vectors) in loaded.items():
        assert payload == direct[id][0]
        for name, vector in vectors.items():
            other = direct[id][1][name]
            assert vector == (other if name == "bm25" else pytest.approx(other, abs=1e-3))


def test_a_bucket_is_read_as_a_folder_is(server: tuple[QdrantServer, str], nodes: Cluster, corpus: Corpus) -> None:
    target = asyncio.run(new_target(server[1], "bucket"))
    outcome = index(Corpus(f"file://{corpus.uri}", Keys()), target, Layout(), vectors_to="")
    assert outcome.states == {"written": int(COUNT), "skipped": 1}
