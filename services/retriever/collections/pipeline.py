"""Documents to passages to vectors to points, in steps that any engine may run anywhere and repeat.

Ids come from a document's content, and a point written twice is one point, so that a step repeated after a failure
changes nothing.

A document's first point stands for it: its id comes from the document's alone, and it holds the digest of the version,
the number of its points, and whether all of them are written. It is written first, incomplete, and marked complete
last. So it tells what a crash has left: a complete document is skipped, an incomplete one is written again over itself,
and the points of an older version are removed by their ids. No step searches the collection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

from qdrant_client.models import PointStruct

from proto.collections import BM25
from services.kit.encoder import Floats
from services.kit.lexical import Stems, stems
from services.retriever.collections import keys
from services.retriever.collections.documents import (
    File,
    Passages,
    Version,
    is_binary,
    passages,
    point_id,
)
from services.retriever.collections.schema import AVERAGE_LENGTH
from services.retriever.collections.sparse import average_length, passage_vector
from services.retriever.collections.store import Payload, Store
from services.retriever.formats import READERS
from services.retriever.settings import RetrieverSettings
from services.retriever.workers import PageFailed, PagePool, PageTimeout

T = TypeVar("T")
Progress = Callable[[int, int], None]

# Points in one write; a point of 400 dimensions is 20 KiB of Python's lists and numbers.
WRITE_POINTS = 128


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document between parsing and writing: small, and without its content."""

    version: Version
    passages: Passages


class Place(NamedTuple):
    """A passage of a document, by its number."""

    document: Parsed
    number: int

    @property
    def point(self) -> str:
        return self.document.version.point(self.number)

    @property
    def text(self) -> str:
        """The passage's text for encoders and BM25."""
        return search_text(self.document.passages.title, self.document.passages.chunks[self.number].text)


# The vectors of some passages by their encoders' names, each of shape (places, d).
Encode = Callable[[Sequence[Place]], Awaitable[Mapping[str, Floats]]]


class Unusable(Exception):
    """A document cannot be indexed; `reason` is one of `Degradation`, the message its detail."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


async def parse(pages: PagePool, file: File, version: Version, settings: RetrieverSettings, *, chunker: str) -> Parsed:
    """Read a document in a process that may be killed.

    Raises:
        Unusable: it cannot be indexed.
    """
    if isinstance(file.content, str) and is_binary(file.content):
        raise Unusable("failed", "it is no text")
    timeout_s = settings.file_timeout_s if file.format in READERS else settings.page_timeout_s
    try:
        parsed = await pages.run(passages, file.content, file.format, file.title, chunker, timeout_s=timeout_s)
    except PageTimeout as error:
        raise Unusable("timeout", str(error)) from error
    except PageFailed as error:
        raise Unusable("failed", str(error)) from error
    if parsed.problem:
        raise Unusable("failed", parsed.problem)
    if not parsed.chunks:
        raise Unusable("empty", "it holds no text")
    if file.format in READERS and not parsed.title:
        parsed = replace(parsed, title=PurePosixPath(file.url or file.id).name)
    return Parsed(version, parsed)


def search_text(title: str, text: str) -> str:
    """A passage's text for encoders and BM25: its document's title, which resolves its pronouns, and itself."""
    return text if not title or text.startswith(title) else f"{title}\n{text}"


def is_complete(version: Version, stored: Mapping[str, Payload]) -> bool:
    """Whether this version of a document is written, all of it; `stored` as of `Writer.stored`."""
    first = stored.get(version.point(0), {})
    return bool(first.get(keys.COMPLETE)) and first.get(keys.DIGEST) == version.digest


def replaced(documents: Sequence[Parsed], stored: Mapping[str, Payload]) -> list[tuple[Version, Payload]]:
    """Those documents that replace another version, with the payload of its first point."""
    return [
        (document.version, first)
        for document in documents
        if (first := stored.get(document.version.point(0))) and first[keys.DIGEST] != document.version.digest
    ]


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts of the size of a write."""
    return (items[first : first + WRITE_POINTS] for first in range(0, len(items), WRITE_POINTS))


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes parsed documents into a collection."""

    store: Store
    name: str

    async def stored(self, versions: Sequence[Version]) -> dict[str, Payload]:
        """The payloads of the documents' first points in the collection, by the points' ids."""
        firsts = [version.point(0) for version in versions]
        return await self.store.payloads(self.name, firsts, [keys.DIGEST, keys.CHUNKS, keys.COMPLETE])

    async def write(
        self,
        documents: Sequence[Parsed],
        stored: Mapping[str, Payload],
        encode: Encode,
        progress: Progress = lambda *_: None,
    ) -> int:
        """Write the missing points; returns their number.

        Args:
            stored: of the documents, from `stored`.
            encode: makes the vectors of a write while the one before is under way.
            progress: called with the number of written points, and of all.
        """
        places = [Place(document, number) for document in documents for number in range(len(document.passages.chunks))]
        if not places:
            return 0
        words = await asyncio.to_thread(stems, [place.text for place in places])
        length = await self._average_length(words)
        await self._remove_others(documents, stored)
        present = await self._present(documents, stored)
        firsts = [row for row, place in enumerate(places) if place.number == 0]
        others = [row for row, place in enumerate(places) if place.number and place.point not in present]
        written = len(places) - len(firsts) - len(others)
        # Encoded and written in turns, so that a book that takes longer than a request goes on with the next one.
        writing: asyncio.Task[None] | None = None
        try:
            for rows in chain(parts(firsts), parts(others)):
                progress(written, len(places))
                vectors = await encode([places[row] for row in rows])
                points = [
                    _point(places[row], {name: of[index] for name, of in vectors.items()}, words[row], length)
                    for index, row in enumerate(rows)
                ]
                if writing is not None:
                    await writing
                writing = asyncio.create_task(self.store.write(self.name, points))
                written += len(rows)
        finally:
            if writing is not None:
                await writing
        await self._complete([document for document in documents if len(document.passages.chunks) > 1])
        return len(firsts) + len(others)

    async def _complete(self, documents: Sequence[Parsed]) -> None:
        """Mark documents as complete; of those that another service removed or replaced meanwhile nothing stays."""
        stored = await self.stored([document.version for document in documents])
        whole = []
        for document in documents:
            version, first = document.version, document.version.point(0)
            if stored.get(first, {}).get(keys.DIGEST) == version.digest:
                whole.append(first)
                continue
            for ids in parts([version.point(number) for number in range(1, len(document.passages.chunks))]):
                await self.store.remove(self.name, ids)
        await self.store.mark(self.name, whole, {keys.COMPLETE: True})

    async def _present(self, documents: Sequence[Parsed], stored: Mapping[str, Payload]) -> frozenset[str]:
        """Further points of these very versions, written before an interruption."""
        further = [
            document.version.point(number)
            for document in documents
            if stored.get(document.version.point(0), {}).get(keys.DIGEST) == document.version.digest
            for number in range(1, len(document.passages.chunks))
        ]
        written = [await self.store.payloads(self.name, part, []) for part in parts(further)]
        return frozenset(chain.from_iterable(written))

    async def _average_length(self, words: Sequence[Stems]) -> float:
        fixed = (await self.store.metadata(self.name)).get(AVERAGE_LENGTH)
        if fixed is not None:
            return float(fixed)
        length = average_length([len(text) for text in words])
        await self.store.note(self.name, {AVERAGE_LENGTH: length})
        return length

    async def _remove_others(self, documents: Sequence[Parsed], stored: Mapping[str, Payload]) -> None:
        """Remove the further points of other versions; their first points are overwritten."""
        others = replaced(documents, stored)
        # An interruption below must not leave the other version marked as complete.
        await self.store.mark(self.name, [version.point(0) for version, _ in others], {keys.COMPLETE: False})
        for version, first in others:
            await self.store.remove(self.name, further_points(version.id, first))


def further_points(document: str, first: Payload) -> list[str]:
    """Ids of a document's points after the first, by the first one's payload."""
    return [point_id(document, first[keys.DIGEST], number) for number in range(1, int(first[keys.CHUNKS]))]


def _point(place: Place, vectors: Mapping[str, Floats], words: Stems, length: float) -> PointStruct:
    (document, number), chunk = place, place.document.passages.chunks[place.number]
    version, parsed = document.version, document.passages
    payload: dict[str, Any] = {
        keys.DOCUMENT: version.id,
        keys.CHUNK: number,
        keys.TITLE: parsed.title,
        keys.URL: version.url,
        keys.TEXT: chunk.text,
        keys.START: chunk.start,
        keys.END: chunk.end,
        keys.PAGE: chunk.page,
        keys.FIELDS: dict(version.fields),
    }
    if number == 0:
        payload |= {
            keys.DIGEST: version.digest,
            keys.CHUNKS: len(parsed.chunks),
            keys.COMPLETE: len(parsed.chunks) == 1,
            keys.NAMED: version.title,
            keys.SOURCE: version.source,
            keys.FORMAT: version.format,
            keys.CONTENT: version.content,
            keys.PAGES: parsed.pages,
        }
    dense: dict[str, Any] = {encoder: vector.tolist() for encoder, vector in vectors.items()}
    return PointStruct(id=place.point, vector=dense | {BM25: passage_vector(words, length)}, payload=payload)
