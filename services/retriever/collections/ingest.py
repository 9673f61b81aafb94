"""Documents into a collection, so that a killed ingest, sent again, leaves what an uninterrupted one would.

A document's first point stands for it: found by the document's id alone, it holds the digest of its version, how many
points that has, and whether all of them are written. It is written first, incomplete, and marked complete last. So
whatever a crash has left is known from it: what is complete is skipped, what is not is written again over itself, and
the points of an older version are removed by their ids. No step searches the collection.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, TypeVar

import numpy as np
from qdrant_client.models import PointStruct

from proto.base import Degradation
from proto.collections import BM25, IngestResponse
from services.kit.budget import current_budget
from services.kit.concurrency import all_of
from services.kit.encoder import Encoder
from services.kit.errors import DeadlineExceeded
from services.kit.lexical import Stems, stems
from services.retriever.chunk import Chunk
from services.retriever.collections.documents import File, Identity, Passages, identify, is_binary, passages, point_id
from services.retriever.collections.encoding import Encoding
from services.retriever.collections.payload import (
    CHUNK,
    CHUNKS,
    COMPLETE,
    CONTENT,
    DIGEST,
    DOCUMENT,
    END,
    FIELDS,
    FORMAT,
    NAMED,
    PAGE,
    PAGES,
    SOURCE,
    START,
    TEXT,
    TITLE,
    URL,
)
from services.retriever.collections.schema import AVERAGE_LENGTH, Schema
from services.retriever.collections.sparse import average_length, passage_vector
from services.retriever.collections.store import Payload, Store
from services.retriever.formats import READERS
from services.retriever.workers import PageFailed, PagePool, PageTimeout

T = TypeVar("T")
Progress = Callable[[int, int], None]

# Documents worked on at a time: what an interruption costs, and what is in memory.
SLICE_CHARS = 1024 * 1024
SLICE_DOCUMENTS = 32
# Points in one write; a point of 400 dimensions is 20 KiB of Python's lists and numbers.
WRITE_POINTS = 128


@dataclass(frozen=True, slots=True)
class _Item:
    index: int
    document: File
    identity: Identity

    def problem(self, reason: str, detail: str) -> Degradation:
        name = self.document.id or f"number {self.index + 1}"
        return Degradation(stage=f"document:{self.index}", reason=reason, detail=f"{name[:200]}: {detail}")


class Ingestion:
    """Writes documents into collections.

    Args:
        store: where to.
        encoding: makes the vectors.
        pages: processes that parse documents.
        page_timeout_s: for one text or web page.
        file_timeout_s: for one file of another format, which may be a book.
    """

    def __init__(
        self, store: Store, encoding: Encoding, pages: PagePool, *, page_timeout_s: float, file_timeout_s: float
    ) -> None:
        self._store = store
        self._encoding = encoding
        self._pages = pages
        self._page_timeout_s = page_timeout_s
        self._file_timeout_s = file_timeout_s

    async def run(
        self, name: str, schema: Schema, documents: Sequence[File], progress: Progress = lambda *_: None
    ) -> IngestResponse:
        """Write those documents of a batch that the collection does not hold yet.

        Args:
            progress: told how many points of a slice of the batch are written, and how many it has.

        Raises:
            DeadlineExceeded: the budget ended; what was written stays, and the same batch sent again goes on.
        """
        items, skipped = _distinct(documents)
        known = await self._store.payloads(name, [item.identity.point(0) for item in items], [DIGEST, CHUNKS, COMPLETE])
        new = [item for item in items if not _holds(known.get(item.identity.point(0)), item.identity)]
        encoders = {encoder: await self._encoding.get(encoder) for encoder in schema.encoders} if new else {}
        added = replaced = written = 0
        for part in _slices(new):
            ready, failed = await self._read(part, schema)
            skipped += failed
            written += await self._write(name, schema, encoders, ready, known, progress)
            olds = [known.get(item.identity.point(0)) for item, _ in ready]
            # A version of the same digest that was left unfinished is this one.
            others = sum(
                old is not None and old[DIGEST] != item.identity.digest
                for old, (item, _) in zip(olds, ready, strict=True)
            )
            added += len(ready) - others
            replaced += others
        return IngestResponse(
            added=added,
            unchanged=len(items) - len(new),
            replaced=replaced,
            points=written,
            skipped=tuple(sorted(skipped, key=lambda problem: int(problem.stage.partition(":")[2]))),
        )

    async def _read(
        self, items: Sequence[_Item], schema: Schema
    ) -> tuple[list[tuple[_Item, Passages]], list[Degradation]]:
        budget = current_budget.get()

        async def read(item: _Item) -> Passages | Degradation:
            document = item.document
            if isinstance(document.content, str) and is_binary(document.content):
                return item.problem("failed", "it is no text")
            try:
                async with asyncio.timeout(budget.left() if budget else None):
                    found = await self._pages.run(
                        passages,
                        document.content,
                        document.format,
                        document.title,
                        schema.chunked,
                        timeout_s=self._file_timeout_s if document.format in READERS else self._page_timeout_s,
                    )
            except PageTimeout as error:
                return item.problem("timeout", str(error))
            except PageFailed as error:
                return item.problem("failed", str(error))
            except TimeoutError as error:
                # The caller's time, not the document's: sent again, it gets another chance.
                raise DeadlineExceeded("the time ran out before all documents were read") from error
            if found.problem:
                return item.problem("failed", found.problem)
            if document.format in READERS and not found.title:
                found = replace(found, title=PurePosixPath(document.url or document.id).name)
            return found if found.chunks else item.problem("empty", "it holds no text")

        results = await all_of(read(item) for item in items)
        ready = [(item, found) for item, found in zip(items, results, strict=True) if isinstance(found, Passages)]
        return ready, [found for found in results if isinstance(found, Degradation)]

    async def _write(
        self,
        name: str,
        schema: Schema,
        encoders: dict[str, Encoder],
        ready: Sequence[tuple[_Item, Passages]],
        known: dict[str, Payload],
        progress: Progress,
    ) -> int:
        places = [(item, found, number) for item, found in ready for number in range(len(found.chunks))]
        if not places:
            return 0
        texts = [searched(found.title, found.chunks[number].text) for _, found, number in places]
        words = await asyncio.to_thread(stems, texts)
        length = await self._average_length(name, words)
        await self._forget(name, ready, known)
        there = await self._there(name, ready, known)
        firsts = [row for row, (_, _, number) in enumerate(places) if number == 0]
        others = [
            row for row, (item, _, number) in enumerate(places) if number and item.identity.point(number) not in there
        ]
        # Encoded and written in turns, so that a book that takes longer than a request may goes on with the next one.
        written = len(places) - len(firsts) - len(others)
        for rows in chain(parts(firsts), parts(others)):
            progress(written, len(places))
            part = [texts[row] for row in rows]
            vectors = {
                encoder: np.concatenate(await self._encoding.passages(model, part))
                for encoder, model in encoders.items()
            }
            await self._store.write(
                name,
                [
                    _point(*places[row], {encoder: of[index] for encoder, of in vectors.items()}, words[row], length)
                    for index, row in enumerate(rows)
                ],
            )
            written += len(rows)
        await self._store.mark(
            name, [item.identity.point(0) for item, found in ready if len(found.chunks) > 1], {COMPLETE: True}
        )
        return len(firsts) + len(others)

    async def _there(
        self, name: str, ready: Sequence[tuple[_Item, Passages]], known: dict[str, Payload]
    ) -> frozenset[str]:
        """Further points of these very versions, written before an interruption."""
        begun = [
            item.identity.point(number)
            for item, found in ready
            if (old := known.get(item.identity.point(0))) is not None and old[DIGEST] == item.identity.digest
            for number in range(1, len(found.chunks))
        ]
        found = [await self._store.payloads(name, part, []) for part in parts(begun)]
        return frozenset(chain.from_iterable(found))

    async def _average_length(self, name: str, words: Sequence[Stems]) -> float:
        known = (await self._store.metadata(name)).get(AVERAGE_LENGTH)
        if known is not None:
            return float(known)
        length = average_length([len(text) for text in words])
        await self._store.note(name, {AVERAGE_LENGTH: length})
        return length

    async def _forget(self, name: str, ready: Sequence[tuple[_Item, Passages]], known: dict[str, Payload]) -> None:
        """Remove the further points of older versions; their first points are written over."""
        olds = [
            (item, old)
            for item, _ in ready
            if (old := known.get(item.identity.point(0))) is not None and old[DIGEST] != item.identity.digest
        ]
        # If it is interrupted here, nobody is to take the old version for whole.
        await self._store.mark(name, [item.identity.point(0) for item, _ in olds], {COMPLETE: False})
        for item, old in olds:
            ids = [point_id(item.identity.id, old[DIGEST], number) for number in range(1, int(old[CHUNKS]))]
            await self._store.remove(name, ids)


def searched(title: str, text: str) -> str:
    """What a passage is found by: its document's title, which says whom its pronouns mean, and itself."""
    return text if not title or text.startswith(title) else f"{title}\n{text}"


def _distinct(documents: Sequence[File]) -> tuple[list[_Item], list[Degradation]]:
    """The last of those that share an id, as if they had been sent one after the other."""
    items: dict[str, _Item] = {}
    skipped = []
    for index, document in enumerate(documents):
        item = _Item(index, document, identify(document))
        if (earlier := items.get(item.identity.id)) is not None:
            skipped.append(earlier.problem("duplicate", f"document {index + 1} of the batch has the same id"))
        items[item.identity.id] = item
    return list(items.values()), skipped


def _holds(known: Payload | None, identity: Identity) -> bool:
    return known is not None and bool(known.get(COMPLETE)) and known.get(DIGEST) == identity.digest


def _slices(items: Sequence[_Item]) -> Iterator[list[_Item]]:
    part: list[_Item] = []
    chars = 0
    for item in items:
        if part and (len(part) == SLICE_DOCUMENTS or chars + len(item.document.content) > SLICE_CHARS):
            yield part
            part, chars = [], 0
        part.append(item)
        chars += len(item.document.content)
    if part:
        yield part


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many as are written at a time."""
    return (items[first : first + WRITE_POINTS] for first in range(0, len(items), WRITE_POINTS))


def _point(
    item: _Item, found: Passages, number: int, vectors: dict[str, Any], words: Stems, length: float
) -> PointStruct:
    chunk: Chunk = found.chunks[number]
    payload: dict[str, Any] = {
        DOCUMENT: item.identity.id,
        CHUNK: number,
        TITLE: found.title,
        URL: item.document.url,
        TEXT: chunk.text,
        START: chunk.start,
        END: chunk.end,
        PAGE: chunk.page,
        FIELDS: dict(item.document.fields),
    }
    if number == 0:
        payload |= {
            DIGEST: item.identity.digest,
            CHUNKS: len(found.chunks),
            COMPLETE: len(found.chunks) == 1,
            NAMED: item.document.title,
            SOURCE: item.document.source,
            FORMAT: item.document.format,
            CONTENT: item.document.digest,
            PAGES: found.pages,
        }
    dense = {encoder: vector.tolist() for encoder, vector in vectors.items()}
    return PointStruct(
        id=item.identity.point(number), vector=dense | {BM25: passage_vector(words, length)}, payload=payload
    )
