"""What collections cost in qdrant-client's local mode: indexing by a retriever process, and search by their size.

    python -m tests.bench.index [--documents 10000] [--sizes 10000,100000] [--searches 40] [--encoder NAME]
        [--out out/bench-index]

Indexing: made-up documents of some 600 characters (words by Zipf's law, from a fixed seed) through a retriever process
of its own and its HTTP; documents a second, the peak resident memory of the process and its page workers, and the disk.

Search: the store alone, since its cost depends on how many points there are and how many words they have, not on what
they mean: random unit vectors of 384 dimensions, words as above. Milliseconds of one query by dense vectors, BM25 and
both fused; memory and the time to open the folder again.

The figures of a Qdrant server are a projection by Qdrant's own rule for capacity and were not measured.
"""

import asyncio
import pathlib
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from qdrant_client import models

from lab.evaluator.report import markdown
from lab.evaluator.report.tables import Table
from proto.collections import BM25, CreateCollection, Document, SearchRequest
from services.cli.collections import CollectionClient
from services.cli.progress import counted
from services.retriever.collections.documents import point_id
from services.retriever.collections.local import LocalStore
from services.retriever.collections.schema import EncoderRecord, Schema
from services.retriever.collections.search import ListQuery
from services.retriever.collections.sparse import CHUNK_LENGTH, passage_vector, query_vector
from tests.bench import common
from tests.unit.retriever.collections.process import Retriever

NAME = "bench"
ENCODER = "random"
DIMENSION = 384
WORDS = 80
VOCABULARY = 60_000
BATCH = 32
WRITE = 1_000
# Qdrant's rule for vectors in memory with their graph: 1.5 times 4 bytes a dimension.
SERVER_FACTOR = 1.5 * 4


class Words:
    """Made-up words with the frequencies of real ones."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        shares = 1 / np.arange(1, VOCABULARY + 1)
        self._shares = shares / shares.sum()
        letters = np.asarray(list("abcdefghijklmnoprstuvw"))
        self._words = ["".join(self._rng.choice(letters, size)) for size in self._rng.integers(3, 10, VOCABULARY)]

    def draw(self, count: int, size: int) -> list[list[str]]:
        indices = self._rng.choice(VOCABULARY, (count, size), p=self._shares)
        return [[self._words[index] for index in row] for row in indices]

    def vectors(self, count: int) -> np.ndarray:
        vectors = self._rng.normal(size=(count, DIMENSION)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def indexing(count: int, folder: pathlib.Path, words: Words, encoders: tuple[str, ...] = ()) -> dict[str, float]:
    """Documents a second, memory and disk of a retriever that indexes so many."""
    settings = {"QDRANT_PATH": str(folder), "MAX_DEADLINE_S": "120"}
    with Retriever(**settings) as retriever, CollectionClient(retriever.url) as client:
        client.create(NAME, CreateCollection(encoders=encoders))
        idle_mib = retriever.peak_mib()
        began = time.perf_counter()
        with counted("indexing", count) as advance:
            for first in range(0, count, BATCH):
                rows = words.draw(min(BATCH, count - first), WORDS)
                batch = [Document(id=f"d{first + i}", text=" ".join(row) + ".") for i, row in enumerate(rows)]
                client.ingest(NAME, batch)
                advance(len(batch))
        seconds = time.perf_counter() - began
        return {
            "documents": count,
            "points": client.all()[0].points,
            "documents_per_s": count / seconds,
            "idle_mib": idle_mib,
            "peak_mib": retriever.peak_mib(),
            "disk_mib": _size(folder),
        }


async def searching(size: int, searches: int, folder: pathlib.Path, words: Words) -> dict[str, Any]:
    """Milliseconds of searches over so many points, the memory they take, and how long opening them takes."""
    record = EncoderRecord(dimension=DIMENSION, fingerprint="none", precision="fp32")
    schema = Schema(encoders={ENCODER: record}, chunked=True)
    before = _resident()
    async with LocalStore(folder).running() as store:
        await store.create(NAME, schema)
        with counted(f"writing {size:,} points", size) as advance:
            for first in range(0, size, WRITE):
                await store.write(NAME, _points(first, min(WRITE, size - first), words))
                advance(min(WRITE, size - first))
        figures: dict[str, Any] = {"points": size, "resident_mib": _resident() - before, "disk_mib": _size(folder)}
        queries = words.draw(searches, 8)
        vectors = words.vectors(searches)
        makers: dict[str, Callable[[int], list[ListQuery]]] = {
            "dense": lambda i: [ListQuery(ENCODER, 0, vectors[i].tolist())],
            "bm25": lambda i: [ListQuery(BM25, 0, query_vector(tuple(queries[i])))],
        }
        makers["hybrid"] = lambda i: [*makers["dense"](i), *makers["bm25"](i)]
        for name, make in makers.items():
            request = SearchRequest(queries=("q",), candidates=150, top_n=20)
            times = []
            for i in range(searches):
                list_queries = make(i)
                began = time.perf_counter()
                await store.fused(NAME, request, list_queries)
                times.append((time.perf_counter() - began) * 1000)
            figures[name] = {"p50_ms": float(np.percentile(times, 50)), "p95_ms": float(np.percentile(times, 95))}
    began = time.perf_counter()
    async with LocalStore(folder).running() as store:
        await store.count(NAME)
        figures["open_s"] = time.perf_counter() - began
    figures["server_projected_mib"] = size * DIMENSION * SERVER_FACTOR / 2**20
    return figures


def _points(first: int, count: int, words: Words) -> list[models.PointStruct]:
    vectors = words.vectors(count)
    return [
        models.PointStruct(
            id=point_id(f"d{first + i}", "", 0),
            vector={ENCODER: vectors[i].tolist(), BM25: passage_vector(tuple(row), CHUNK_LENGTH)},
            payload={"document": f"d{first + i}", "chunk": 0, "title": "", "text": " ".join(row), "fields": {}},
        )
        for i, row in enumerate(words.draw(count, int(CHUNK_LENGTH)))
    ]


def report(figures: dict[str, Any]) -> str:
    tables = []
    if index := figures.get("indexing"):
        counted = ("documents", "points", "documents/s", "peak memory", "idle before", "on disk")
        counts = (f"{index['documents']:,}", f"{index['points']:,}", f"{index['documents_per_s']:.1f}")
        sizes = (f"{index[name]:,.0f} MiB" for name in ("peak_mib", "idle_mib", "disk_mib"))
        tables.append(Table("Indexing", counted, ((*counts, *sizes),)))
    kinds = ("dense", "bm25", "hybrid")
    head = ("points", *(f"{kind} p50 / p95" for kind in kinds), "memory", "opening", "server, projected")
    rows = tuple(
        (
            f"{row['points']:,}",
            *(f"{row[kind]['p50_ms']:,.0f} / {row[kind]['p95_ms']:,.0f} ms" for kind in kinds),
            f"{row['resident_mib']:,.0f} MiB",
            f"{row['open_s']:.1f} s",
            f"{row['server_projected_mib']:,.0f} MiB",
        )
        for row in figures["searching"]
    )
    note = (
        "A server's memory is 1.5 x 4 bytes x 384 dimensions a point, by Qdrant's rule of capacity; it was not "
        "measured, and vectors on disk, as collections are made here, need less."
    )
    return markdown.write("Collections in local mode", [], [*tables, Table("Searching", head, rows, note)], [])


def _size(folder: pathlib.Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def _resident() -> float:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--documents", type=int, default=10_000, help="to index; 0 leaves indexing out")
    parser.add_argument("--sizes", default="10000,100000", help="points to search")
    parser.add_argument("--searches", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--encoder", help="of `encoders.yaml`; the retriever's own when not given")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/bench-index"))
    args = parser.parse_args()
    words = Words(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {"searching": []}
    folder = pathlib.Path(tempfile.mkdtemp(dir=args.out))
    try:
        if args.documents:
            encoders = (args.encoder,) if args.encoder else ()
            figures["indexing"] = indexing(args.documents, folder / "indexing", words, encoders)
        for size in map(int, args.sizes.split(",")):
            figures["searching"].append(asyncio.run(searching(size, args.searches, folder / str(size), words)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    common.write_json(args.out / "summary.json", figures)
    (args.out / "report.md").write_text(text := report(figures))
    print(text)


if __name__ == "__main__":
    main()
