"""A collection's documents by themselves: listed, looked at, moved and deleted, each by its first point."""

from collections.abc import Sequence

from qdrant_client import models

from proto.collections import DocumentInfo, Documents, Filter, Listing, Move, MoveResponse
from services.retriever.collections.documents import Described, point_id
from services.retriever.collections.payload import (
    CHUNK,
    CHUNKS,
    COMPLETE,
    CONTENT,
    DIGEST,
    DOCUMENT,
    FIELDS,
    FORMAT,
    NAMED,
    PAGES,
    SOURCE,
    TITLE,
    URL,
)
from services.retriever.collections.pipeline import parts
from services.retriever.collections.search import condition
from services.retriever.collections.store import Payload, Store

KEYS = [DOCUMENT, TITLE, NAMED, URL, SOURCE, FORMAT, CONTENT, FIELDS, PAGES, CHUNKS, COMPLETE, DIGEST]


class Catalogue:
    """The documents of the collections of a store; who changes one holds the collection's lock."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def documents(self, name: str, listing: Listing, filters: Sequence[Filter]) -> Documents:
        """A page of those documents of a collection that the filters let through."""
        wanted = {CHUNK: 0} | ({SOURCE: listing.source} if listing.source else {})
        must = [models.FieldCondition(key=key, match=models.MatchValue(value=value)) for key, value in wanted.items()]
        within = condition(filters, *must)
        points, following = await self._store.scroll(name, within, KEYS, listing.limit, listing.after)
        return Documents(documents=tuple(map(_info, points)), next=following)

    async def info(self, name: str, document: str, filters: Sequence[Filter] = ()) -> DocumentInfo | None:
        """A document; None where there is none of that id, or none that the filters let through."""
        within = condition(filters, models.HasIdCondition(has_id=[point_id(document, "", 0)]))
        points, _ = await self._store.scroll(name, within, KEYS, 1, "")
        return _info(points[0]) if points else None

    async def delete(self, name: str, document: str) -> bool:
        """Delete a document; false when there was none. Interrupted, it is there, incomplete, to be deleted again."""
        payload = await self._first(name, document)
        if payload is None:
            return False
        first = point_id(document, "", 0)
        await self._store.mark(name, [first], {COMPLETE: False})
        for ids in parts(_others(document, payload)):
            await self._store.remove(name, ids)
        await self._store.remove(name, [first])
        return True

    async def move(self, name: str, moves: Sequence[Move]) -> MoveResponse:
        """Give documents other ids and addresses; their vectors are written again and made by no encoder.

        The new one is complete before the old one goes: interrupted, both are there, and the same move goes on.
        """
        missing = [move.id for move in moves if not await self._moved(name, move)]
        return MoveResponse(moved=len(moves) - len(missing), missing=tuple(missing))

    async def _moved(self, name: str, move: Move) -> bool:
        payload = await self._first(name, move.id)
        if payload is None or not payload.get(COMPLETE):
            # Sent again because its reply was lost, perhaps: then what it asks for is there.
            there = await self._first(name, move.to)
            return there is not None and bool(there.get(COMPLETE)) and Described.of(there).url == move.url
        if move.id == move.to:
            return True
        described = Described.of(payload)._replace(url=move.url)
        digest = described.digest(move.to)
        await self.delete(name, move.to)
        chunks = int(payload[CHUNKS])
        for numbers in parts(range(chunks)):
            old = [point_id(move.id, payload[DIGEST], number) for number in numbers]
            points = await self._store.points(name, old)
            await self._store.write(
                name,
                [
                    models.PointStruct(
                        id=point_id(move.to, digest, number),
                        vector=points[point].vector,
                        payload=_renamed(points[point].payload or {}, move, digest, whole=chunks == 1),
                    )
                    for number, point in zip(numbers, old, strict=True)
                ],
            )
        await self._store.mark(name, [point_id(move.to, digest, 0)], {COMPLETE: True})
        await self.delete(name, move.id)
        return True

    async def _first(self, name: str, document: str) -> Payload | None:
        first = point_id(document, "", 0)
        return (await self._store.payloads(name, [first], KEYS)).get(first)


def _others(document: str, payload: Payload) -> list[str]:
    return [point_id(document, payload[DIGEST], number) for number in range(1, int(payload[CHUNKS]))]


def _renamed(payload: Payload, move: Move, digest: str, *, whole: bool) -> dict[str, object]:
    renamed = {**payload, DOCUMENT: move.to, URL: move.url}
    return renamed | {DIGEST: digest, COMPLETE: whole} if payload.get(CHUNK) == 0 else renamed


def _info(payload: Payload) -> DocumentInfo:
    complete, passages = bool(payload.get(COMPLETE)), int(payload.get(CHUNKS, 0))
    return DocumentInfo(
        id=payload.get(DOCUMENT, ""),
        title=payload.get(TITLE, ""),
        url=payload.get(URL, ""),
        source=payload.get(SOURCE, ""),
        format=payload.get(FORMAT, ""),
        digest=payload.get(CONTENT, ""),
        fields=payload.get(FIELDS, {}),
        pages=payload.get(PAGES, 0),
        passages=passages,
        written=passages if complete else 0,
        state="complete" if complete else "interrupted",
    )
