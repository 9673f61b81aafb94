"""A collection's documents: listed, shown, moved and deleted, each by its first point."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qdrant_client import models

from proto.collections import DocumentInfo, Documents, Filter, Listing, Move, MoveResponse
from services.retriever.collections import keys
from services.retriever.collections.documents import Version, point_id, title_of
from services.retriever.collections.pipeline import further_points, parts
from services.retriever.collections.search import condition
from services.retriever.collections.store import Payload, Store

KEYS = [
    keys.DOCUMENT, keys.TITLE, keys.NAMED, keys.URL, keys.SOURCE, keys.FORMAT, keys.CONTENT, keys.FIELDS, keys.PAGES,
    keys.CHUNKS, keys.COMPLETE, keys.DIGEST,
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The documents of a store's collections; a caller that changes one holds the collection's lock."""

    store: Store

    async def documents(self, name: str, listing: Listing, filters: Sequence[Filter]) -> Documents:
        """A page of those documents of a collection that pass the filters."""
        values = {keys.CHUNK: 0} | ({keys.SOURCE: listing.source} if listing.source else {})
        must = [models.FieldCondition(key=key, match=models.MatchValue(value=value)) for key, value in values.items()]
        within = condition(filters, *must)
        points, following = await self.store.scroll(name, within, KEYS, listing.limit, listing.after)
        return Documents(documents=tuple(map(_info, points)), next=following)

    async def info(self, name: str, document: str, filters: Sequence[Filter] = ()) -> DocumentInfo | None:
        """A document; None where there is none of that id, or it does not pass the filters."""
        within = condition(filters, models.HasIdCondition(has_id=[point_id(document, "", 0)]))
        points, _ = await self.store.scroll(name, within, KEYS, 1, "")
        return _info(points[0]) if points else None

    async def delete(self, name: str, document: str) -> bool:
        """Delete a document; false when there was none. An interruption leaves it incomplete, to be deleted again."""
        payload = await self._first(name, document)
        if payload is None:
            return False
        first = point_id(document, "", 0)
        await self.store.mark(name, [first], {keys.COMPLETE: False})
        for ids in parts(further_points(document, payload)):
            await self.store.remove(name, ids)
        await self.store.remove(name, [first])
        return True

    async def move(self, name: str, moves: Sequence[Move]) -> MoveResponse:
        """Give documents other ids and URLs; their vectors are copied.

        The copy is complete before the original goes: an interruption leaves both, and the same move goes on.
        """
        missing = [move.id for move in moves if not await self._move(name, move)]
        return MoveResponse(moved=len(moves) - len(missing), missing=tuple(missing))

    async def _move(self, name: str, move: Move) -> bool:
        payload = await self._first(name, move.id)
        if payload is None or not payload.get(keys.COMPLETE):
            # A move whose reply was lost may be sent again: then it is done.
            target = await self._first(name, move.to)
            return target is not None and bool(target.get(keys.COMPLETE)) and target.get(keys.URL, "") == move.url
        if move.id == move.to:
            return True
        moved = replace(Version.of_payload(payload), id=move.to, url=move.url)
        await self.delete(name, move.to)
        chunks = int(payload[keys.CHUNKS])
        for numbers in parts(range(chunks)):
            old = [point_id(move.id, payload[keys.DIGEST], number) for number in numbers]
            points = await self.store.points(name, old)
            await self.store.write(
                name,
                [
                    models.PointStruct(
                        id=moved.point(number),
                        vector=points[point].vector,
                        payload=_moved_payload(points[point].payload or {}, moved, whole=chunks == 1),
                    )
                    for number, point in zip(numbers, old, strict=True)
                ],
            )
        await self.store.mark(name, [moved.point(0)], {keys.COMPLETE: True})
        await self.delete(name, move.id)
        return True

    async def _first(self, name: str, document: str) -> Payload | None:
        first = point_id(document, "", 0)
        return (await self.store.payloads(name, [first], KEYS)).get(first)


def _moved_payload(payload: Payload, moved: Version, *, whole: bool) -> dict[str, object]:
    values = {**payload, keys.DOCUMENT: moved.id, keys.URL: moved.url}
    return values | {keys.DIGEST: moved.digest, keys.COMPLETE: whole} if payload.get(keys.CHUNK) == 0 else values


def _info(payload: Payload) -> DocumentInfo:
    complete, passages = bool(payload.get(keys.COMPLETE)), int(payload.get(keys.CHUNKS, 0))
    return DocumentInfo(
        id=payload.get(keys.DOCUMENT, ""),
        title=title_of(payload),
        url=payload.get(keys.URL, ""),
        source=payload.get(keys.SOURCE, ""),
        format=payload.get(keys.FORMAT, ""),
        digest=payload.get(keys.CONTENT, ""),
        fields=payload.get(keys.FIELDS, {}),
        pages=payload.get(keys.PAGES, 0),
        passages=passages,
        written=passages if complete else 0,
        state="complete" if complete else "interrupted",
    )
