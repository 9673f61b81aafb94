"""Documents to passages to vectors to points, in steps that any engine may run anywhere and as often as it likes.

Ids come from what a document says, and a point written twice is one point, so that an engine which does a step again
after a failure, as all that distribute work do, changes nothing.

A document's first point stands for it: found by the document's id alone, it holds the digest of its version, how many
points that has, and whether all of them are written. It is written first, incomplete, and marked complete last. So
whatever a crash has left is known from it: what is complete is skipped, what is not is written again over itself, and
the points of an older version are removed by their ids. No step searches the collection.
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
from services.retriever.collections.documents import (
    Described,
    File,
    Identity,
    Passages,
    is_binary,
    passages,
    point_id,
)
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
from services.retriever.collections.schema import AVERAGE_LENGTH
from services.retriever.collections.sparse import average_length, passage_vector
from services.retriever.collections.store import Payload, Store
from services.retriever.formats import READERS
from services.retriever.workers import PageFailed, PagePool, PageTimeout

T = TypeVar("T")
Progress = Callable[[int, int], None]

# Points in one write; a point of 400 dimensions is 20 KiB of Python's lists and numbers.
WRITE_POINTS = 128


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document between parsing and writing: small, and without its content."""

    identity: Identity
    described: Described
    passages: Passages


class Place(NamedTuple):
    """A passage of a document, by its number."""

    document: Parsed
    number: int

    @property
    def point(self) -> str:
        return self.document.identity.point(self.number)

    @property
    def text(self) -> str:
        """What the passage is found by."""
        return searched(self.document.passages.title, self.document.passages.chunks[self.number].text)


# The vectors of some passages by their encoders' names, each of shape (places, d).
Encode = Callable[[Sequence[Place]], Awaitable[Mapping[str, Floats]]]


class Unusable(Exception):
    """Why a document cannot be indexed: a reason of `Degradation`, and the detail."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


async def parse(
    pages: PagePool, file: File, identity: Identity, *, chunked: bool, page_timeout_s: float, file_timeout_s: float
) -> Parsed:
    """Read a document in a process that may be killed.

    Args:
        page_timeout_s: for one text or web page.
        file_timeout_s: for one file of another format, which may be a book.

    Raises:
        Unusable: it cannot be indexed.
    """
    if isinstance(file.content, str) and is_binary(file.content):
        raise Unusable("failed", "it is no text")
    timeout_s = file_timeout_s if file.format in READERS else page_timeout_s
    try:
        found = await pages.run(passages, file.content, file.format, file.title, chunked, timeout_s=timeout_s)
    except PageTimeout as error:
        raise Unusable("timeout", str(error)) from error
    except PageFailed as error:
        raise Unusable("failed", str(error)) from error
    if found.problem:
        raise Unusable("failed", found.problem)
    if not found.chunks:
        raise Unusable("empty", "it holds no text")
    if file.format in READERS and not found.title:
        found = replace(found, title=PurePosixPath(file.url or file.id).name)
    return Parsed(identity, Described.of_file(file), found)


def searched(title: str, text: str) -> str:
    """What a passage is found by: its document's title, which says whom its pronouns mean, and itself."""
    return text if not title or text.startswith(title) else f"{title}\n{text}"


def is_held(known: Payload | None, identity: Identity) -> bool:
    """Whether a first point is of this version, all of which is written."""
    return known is not None and bool(known.get(COMPLETE)) and known.get(DIGEST) == identity.digest


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many as are written at a time."""
    return (items[first : first + WRITE_POINTS] for first in range(0, len(items), WRITE_POINTS))


class Writer:
    """Writes parsed documents into a collection."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    async def known(self, identities: Sequence[Identity]) -> dict[str, Payload]:
        """What first points say of their versions, by the points' ids."""
        firsts = [identity.point(0) for identity in identities]
        return await self._store.payloads(self._name, firsts, [DIGEST, CHUNKS, COMPLETE])

    async def write(
        self,
        documents: Sequence[Parsed],
        known: Mapping[str, Payload],
        encode: Encode,
        progress: Progress = lambda *_: None,
    ) -> int:
        """Write those points that are not there; returns how many.

        Args:
            known: what `known` has said of them.
            encode: asked for the vectors of a write while the one before is under way.
            progress: told how many points are written, and how many there are to be.
        """
        places = [Place(document, number) for document in documents for number in range(len(document.passages.chunks))]
        if not places:
            return 0
        words = await asyncio.to_thread(stems, [place.text for place in places])
        length = await self._average_length(words)
        await self._forget(documents, known)
        there = await self._there(documents, known)
        firsts = [row for row, place in enumerate(places) if place.number == 0]
        others = [row for row, place in enumerate(places) if place.number and place.point not in there]
        written = len(places) - len(firsts) - len(others)
        # Encoded and written in turns, so that a book that takes longer than a request may goes on with the next one.
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
                writing = asyncio.create_task(self._store.write(self._name, points))
                written += len(rows)
        finally:
            if writing is not None:
                await writing
        many = [document.identity.point(0) for document in documents if len(document.passages.chunks) > 1]
        await self._store.mark(self._name, many, {COMPLETE: True})
        return len(firsts) + len(others)

    async def _there(self, documents: Sequence[Parsed], known: Mapping[str, Payload]) -> frozenset[str]:
        """Further points of these very versions, written before an interruption."""
        begun = [
            document.identity.point(number)
            for document in documents
            if (old := known.get(document.identity.point(0))) is not None and old[DIGEST] == document.identity.digest
            for number in range(1, len(document.passages.chunks))
        ]
        found = [await self._store.payloads(self._name, part, []) for part in parts(begun)]
        return frozenset(chain.from_iterable(found))

    async def _average_length(self, words: Sequence[Stems]) -> float:
        known = (await self._store.metadata(self._name)).get(AVERAGE_LENGTH)
        if known is not None:
            return float(known)
        length = average_length([len(text) for text in words])
        await self._store.note(self._name, {AVERAGE_LENGTH: length})
        return length

    async def _forget(self, documents: Sequence[Parsed], known: Mapping[str, Payload]) -> None:
        """Remove the further points of older versions; their first points are written over."""
        olds = [
            (document.identity, old)
            for document in documents
            if (old := known.get(document.identity.point(0))) is not None and old[DIGEST] != document.identity.digest
        ]
        # If it is interrupted here, nobody is to take the old version for whole.
        await self._store.mark(self._name, [identity.point(0) for identity, _ in olds], {COMPLETE: False})
        for identity, old in olds:
            ids = [point_id(identity.id, old[DIGEST], number) for number in range(1, int(old[CHUNKS]))]
            await self._store.remove(self._name, ids)


def _point(place: Place, vectors: Mapping[str, Floats], words: Stems, length: float) -> PointStruct:
    (document, number), chunk = place, place.document.passages.chunks[place.number]
    described, found = document.described, document.passages
    payload: dict[str, Any] = {
        DOCUMENT: document.identity.id,
        CHUNK: number,
        TITLE: found.title,
        URL: described.url,
        TEXT: chunk.text,
        START: chunk.start,
        END: chunk.end,
        PAGE: chunk.page,
        FIELDS: dict(described.fields),
    }
    if number == 0:
        payload |= {
            DIGEST: document.identity.digest,
            CHUNKS: len(found.chunks),
            COMPLETE: len(found.chunks) == 1,
            NAMED: described.title,
            SOURCE: described.source,
            FORMAT: described.format,
            CONTENT: described.content,
            PAGES: found.pages,
        }
    dense: dict[str, Any] = {encoder: vector.tolist() for encoder, vector in vectors.items()}
    return PointStruct(id=place.point, vector=dense | {BM25: passage_vector(words, length)}, payload=payload)
