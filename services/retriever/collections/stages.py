"""Indexing as stages over Arrow tables, each an object that an engine makes once in a process and calls per batch.

Ray Data, Spark's `mapInArrow` or a loop can drive them: `Parse`, `Encode`, `Write`. A row is a document. The table
between `Encode` and `Write` may be stored as Parquet, and made or used by others: the columns of `PARSED`, and for each
encoder `vector:NAME`, a list of as many vectors as the document has passages.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np
import pyarrow as pa

from services.kit.concurrency import all_of
from services.kit.encoder import Floats
from services.retriever.chunk import Chunk
from services.retriever.collections.documents import File, Passages, Version
from services.retriever.collections.errors import CollectionConflict
from services.retriever.collections.pipeline import Parsed, Place, Unusable, Writer, is_complete, parse, search_text
from services.retriever.collections.schema import AVERAGE_LENGTH, EncoderRecord, Schema, read
from services.retriever.collections.store import ServerStore
from services.retriever.engine import encoder_pool
from services.retriever.formats import READERS
from services.retriever.settings import RetrieverSettings
from services.retriever.workers import PagePool

_TEXTS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.int32())
_DESCRIPTION = [(name, pa.string()) for name in ("id", "named", "url", "source", "format", "fields")]
# Documents as received; `problem` says why there is none.
RAW = pa.schema([("name", pa.string()), ("problem", pa.string()), *_DESCRIPTION, ("content", pa.binary())])
# `state` is `parsed`, `unchanged`, `skipped`, or `duplicate` where a later one of the batch has its id.
PARSED = pa.schema(
    [
        *((name, pa.string()) for name in ("name", "state", "problem")),
        *_DESCRIPTION,
        *((name, pa.string()) for name in ("content", "digest", "title")),
        ("pages", pa.int32()),
        ("texts", _TEXTS),
        *((name, _NUMBERS) for name in ("starts", "ends", "on_pages")),
    ]
)
WRITTEN = pa.schema([*((name, pa.string()) for name in ("name", "id", "state", "problem")), ("points", pa.int64())])
VECTOR = "vector:"
_NONE = Passages("", ())
UNREADABLE = "its vectors are not those of its passages"


@dataclass(frozen=True, slots=True)
class Target:
    """A collection of the Qdrant server that the settings name; small, to be sent to its writers."""

    name: str
    settings: RetrieverSettings

    def store(self) -> ServerStore:
        """Raises ValueError where the settings name no server."""
        if self.settings.qdrant_url is None:
            raise ValueError("the embedded store takes one writer: run a Qdrant server (CRAGMESH_QDRANT_URL)")
        return ServerStore.of(self.settings)

    async def schema(self) -> Schema:
        """The collection's build.

        Raises:
            NoSuchCollection: the server has none of that name.
            CollectionConflict: several writers would each fix another average length for whole documents.
        """
        async with self.store().running() as store:
            metadata = await store.metadata(self.name)
        if AVERAGE_LENGTH not in metadata:
            raise CollectionConflict("index a few whole documents in one process first: they fix the average length")
        return read(self.name, metadata)


class _Stage:
    """Keeps an event loop and a connection to the server from batch to batch."""

    def __init__(self, target: Target) -> None:
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()
        store = self._runner.run(self._stack.enter_async_context(target.store().running()))
        self._writer = Writer(store, target.name)

    def close(self) -> None:
        """Close the connection, in a process that lives on."""
        self._runner.run(self._stack.aclose())
        self._runner.close()


class Parse(_Stage):
    """Tables of RAW to tables of PARSED; documents that the collection holds are not parsed again."""

    def __init__(self, target: Target, chunker: str) -> None:
        super().__init__(target)
        self._settings = target.settings
        self._chunker = chunker
        # Else each of its processes would import this one's script, which is Ray's own and takes seconds.
        if (main := sys.modules["__main__"]).__spec__ is None:
            main.__spec__ = ModuleSpec("__main__", None)
        self._pages = PagePool(
            workers=1, memory_mib=self._settings.page_worker_mib, preload=("services.retriever.collections.documents",)
        )

    def __call__(self, table: pa.Table) -> pa.Table:
        return self._runner.run(self._parse(table.to_pylist()))

    async def _parse(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        files = [_file(row) for row in rows]
        versions = [Version.of(file) for file in files]
        stored = await self._writer.stored(versions)

        async def parsed(row: Mapping[str, Any], file: File, version: Version) -> dict[str, Any]:
            if row["problem"]:
                return _row(row["name"], "skipped", file, version, problem=row["problem"])
            if is_complete(version, stored):
                return _row(row["name"], "unchanged", file, version)
            try:
                document = await parse(self._pages, file, version, self._settings, chunker=self._chunker)
            except Unusable as error:
                return _row(row["name"], "skipped", file, version, problem=f"{error.reason}: {error}")
            return _row(row["name"], "parsed", file, version, document.passages)

        results = await all_of(parsed(*item) for item in zip(rows, files, versions, strict=True))
        return pa.Table.from_pylist(results, PARSED)


class Encode:
    """Tables of PARSED, with a column of vectors more for each encoder.

    Raises:
        CollectionConflict: an encoder here is not the one that the collection was built with.
        EncoderFailure: an encoder cannot be loaded.
    """

    def __init__(self, records: Mapping[str, EncoderRecord], settings: RetrieverSettings) -> None:
        pool = encoder_pool(settings)
        self._encoders = {name: pool.get(name) for name in records}
        for name, encoder in self._encoders.items():
            if not records[name].matches(here := EncoderRecord.of(encoder)):
                raise CollectionConflict(f"the collection was built with another {name}: {records[name]}, {here} here")

    def __call__(self, table: pa.Table) -> pa.Table:
        rows = table.select(["title", "texts"]).to_pylist()
        texts = [search_text(row["title"], text) for row in rows for text in row["texts"]]
        counts = [len(row["texts"]) for row in rows]
        for name, encoder in self._encoders.items():
            table = table.append_column(f"{VECTOR}{name}", _column(encoder.encode_passages(texts), counts))
        return table


class Write(_Stage):
    """Tables of PARSED with vectors into the collection; returns tables of WRITTEN."""

    def __init__(self, target: Target, records: Mapping[str, EncoderRecord]) -> None:
        super().__init__(target)
        self._records = records

    def __call__(self, table: pa.Table) -> pa.Table:
        return self._runner.run(self._write(table))

    async def _write(self, table: pa.Table) -> pa.Table:
        rows = table.select(PARSED.names).to_pylist()
        vectors = {name: _matrices(table, name, record.dimension) for name, record in self._records.items()}
        last = {row["id"]: index for index, row in enumerate(rows)}
        documents: dict[int, Parsed] = {}
        for index, row in enumerate(rows):
            if row["state"] == "parsed" and last[row["id"]] != index:
                row["state"] = "duplicate"
            elif row["state"] == "parsed" and any(len(row["texts"]) != len(of[index]) for of in vectors.values()):
                row |= {"state": "skipped", "problem": UNREADABLE}
            elif row["state"] == "parsed":
                documents[index] = _parsed(row)

        async def encode(places: Sequence[Place]) -> Mapping[str, Floats]:
            numbers = [(last[place.document.version.id], place.number) for place in places]
            return {name: np.stack([of[index][number] for index, number in numbers]) for name, of in vectors.items()}

        stored = await self._writer.stored([document.version for document in documents.values()])
        await self._writer.write(list(documents.values()), stored, encode)
        written = (
            row | {"state": "written", "points": len(row["texts"])} if index in documents else row | {"points": 0}
            for index, row in enumerate(rows)
        )
        return pa.Table.from_pylist([{name: row[name] for name in WRITTEN.names} for row in written], WRITTEN)


def raw(files: Iterable[tuple[str, File | str]]) -> pa.Table:
    """A table of RAW, of documents or of problems with them, each with its name."""
    return pa.Table.from_pylist(
        [
            {
                "name": name,
                "problem": file if isinstance(file, str) else "",
                **_description(File("") if isinstance(file, str) else file),
                "content": b"" if isinstance(file, str) else file.data,
            }
            for name, file in files
        ],
        RAW,
    )


def _description(file: File) -> dict[str, str]:
    return {
        "id": file.id,
        "named": file.title,
        "url": file.url,
        "source": file.source,
        "format": file.format,
        "fields": json.dumps(dict(file.fields)),
    }


def _file(row: Mapping[str, Any]) -> File:
    content: str | bytes = row["content"]
    if row["format"] not in READERS and isinstance(content, bytes):
        content = content.decode("utf-8", "surrogatepass")
    return File(content, row["format"], row["id"], row["named"], row["url"], row["source"], json.loads(row["fields"]))


def _row(
    name: str, state: str, file: File, version: Version, passages: Passages = _NONE, problem: str = ""
) -> dict[str, Any]:
    return {
        "name": name,
        "state": state,
        "problem": problem,
        **_description(file),
        "id": version.id,
        "content": version.content,
        "digest": version.digest,
        "title": passages.title,
        "pages": passages.pages,
        "texts": [chunk.text for chunk in passages.chunks],
        "starts": [chunk.start for chunk in passages.chunks],
        "ends": [chunk.end for chunk in passages.chunks],
        "on_pages": [chunk.page for chunk in passages.chunks],
    }


def _parsed(row: Mapping[str, Any]) -> Parsed:
    places = zip(row["texts"], row["starts"], row["ends"], row["on_pages"], strict=True)
    chunks = tuple(Chunk(text, start, end, page=page) for text, start, end, page in places)
    fields = json.loads(row["fields"])
    version = Version(row["id"], row["named"], row["url"], row["content"], row["format"], fields, row["source"])
    return Parsed(version, Passages(row["title"], chunks, pages=row["pages"]))


def _column(vectors: Floats, counts: Sequence[int]) -> pa.Array:
    """Vectors, shape (passages, d), as a list of vectors for each document."""
    width = vectors.shape[1]
    each = pa.ListArray.from_arrays(np.arange(len(vectors) + 1, dtype=np.int32) * width, vectors.ravel())
    return pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), each)


def _matrices(table: pa.Table, encoder: str, width: int) -> list[Floats]:
    """The vectors of each document, shape (passages, d); without rows where the table has none of this width."""
    if f"{VECTOR}{encoder}" not in table.column_names:
        raise CollectionConflict(f"the table has no vectors of {encoder}, which the collection was built with")
    matrices = []
    for row in table.column(f"{VECTOR}{encoder}"):
        flat = np.asarray(row.values.flatten() if row.is_valid else [], np.float32)
        matrices.append(flat.reshape(-1, width) if len(flat) % width == 0 else np.empty((0, width), np.float32))
    return matrices
