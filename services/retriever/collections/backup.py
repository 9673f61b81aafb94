"""Collections to files and back: points with their vectors, so that a backup restores into either store.

A file is gzipped JSON lines: the collection's name and metadata, its points, their number.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from qdrant_client import models

from services.kit.errors import InvalidRequest
from services.kit.files import whole
from services.retriever.collections import keys
from services.retriever.collections.errors import CollectionConflict
from services.retriever.collections.pipeline import further_points, parts
from services.retriever.collections.schema import read
from services.retriever.collections.store import Store

# Points read or written at a time: some MiB of JSON.
BATCH = 256


async def backup(store: Store, name: str, file: Path) -> int:
    """Write a collection to a file, whole or not at all; returns its points.

    The file may lack concurrent writes; what it has in part is restored as incomplete.

    Raises:
        NoSuchCollection, CollectionConflict: there is none of that name, or another service made it.
        Unavailable: the store fails.
        OSError: the disk fails.
    """
    metadata = await store.metadata(name)
    read(name, metadata)
    count, after = 0, None
    with whole(file) as raw, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0) as out:
        out.write(_line({"collection": name, "metadata": metadata}))
        while True:
            points, after = await store.call(
                "scroll", collection_name=name, limit=BATCH, offset=after, with_payload=True, with_vectors=True
            )
            for point in points:
                out.write(_line(point.model_dump(mode="json", include={"id", "payload", "vector"})))
            count += len(points)
            if after is None:
                break
        out.write(_line({"points": count}))
    return count


async def restore(store: Store, file: Path, name: str = "", *, replace: bool = False) -> tuple[str, int]:
    """Make a collection of a file; returns its name and its points.

    Args:
        name: of the new collection; the old name when empty.
        replace: delete the collection of that name first, once the file is checked.

    Raises:
        InvalidRequest: the file is no backup, or not whole; nothing was changed.
        CollectionConflict: there is a collection of that name, or the file is another version's.
        Unavailable: the store fails, or holds another number of points at the end.
        OSError: the file cannot be read.
    """
    count = _check(file)
    header = json.loads(next(_lines(file)))
    name, metadata = name or str(header["collection"]), header["metadata"]
    schema = read(name, metadata)
    if name in await store.names():
        if not replace:
            raise CollectionConflict(f"the collection {name!r} exists: restore it under another name, or replace it")
        await store.delete(name)
    await store.create(name, schema)
    await store.note(name, metadata)
    # As a collection is written: first points incomplete, then the others, and what is all there is complete.
    for batch in _batches(file, count, first=True):
        await store.write(name, [_incomplete(point) for point in batch])
    for batch in _batches(file, count, first=False):
        await store.write(name, batch)
    for batch in _batches(file, count, first=True):
        await _complete(store, name, batch)
    if (written := await store.count(name)) != count:
        raise CollectionConflict(f"{name!r} has {written} points, and its backup {count}: was it written to meanwhile?")
    return name, count


def _batches(file: Path, count: int, *, first: bool) -> Iterator[list[models.PointStruct]]:
    """The points of a file that are the first of their documents, or that are not."""
    lines = islice(_lines(file), 1, count + 1)
    points = (point for line in lines if (_number(point := models.PointStruct.model_validate_json(line)) == 0) is first)
    while batch := list(islice(points, BATCH)):
        yield batch


def _number(point: models.PointStruct) -> int:
    return int((point.payload or {}).get(keys.CHUNK, 0))


def _incomplete(point: models.PointStruct) -> models.PointStruct:
    payload = point.payload or {}
    whole = bool(payload.get(keys.COMPLETE)) and payload[keys.CHUNKS] == 1
    return point.model_copy(update={"payload": payload | {keys.COMPLETE: whole}})


async def _complete(store: Store, name: str, firsts: Sequence[models.PointStruct]) -> None:
    """Mark documents as complete that the backup has all points of: one may have been replaced while it was made."""
    further = {
        str(point.id): further_points(payload[keys.DOCUMENT], payload)
        for point in firsts
        if (payload := point.payload or {}).get(keys.COMPLETE) and payload[keys.CHUNKS] > 1
    }
    present: set[str] = set()
    for ids in parts(list(chain.from_iterable(further.values()))):
        present |= (await store.payloads(name, ids, [])).keys()
    await store.mark(name, [first for first, ids in further.items() if present.issuperset(ids)], {keys.COMPLETE: True})


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _lines(file: Path) -> Iterator[bytes]:
    with gzip.open(file, "rb") as lines:
        yield from lines


def _check(file: Path) -> int:
    """The points of a file that is whole."""
    first = last = b""
    count = -2
    try:
        for last in _lines(file):
            first = first or last
            count += 1
        if "metadata" in json.loads(first) and json.loads(last) == {"points": count}:
            return count
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError):
        pass
    raise InvalidRequest(f"{file} is no backup of a collection, or not all of one")
