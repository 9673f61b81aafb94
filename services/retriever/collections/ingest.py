"""Ingestion of documents: one that was killed and is sent again ends as an uninterrupted one would."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proto.base import Degradation
from proto.collections import IngestResponse
from services.kit.budget import current_budget
from services.kit.concurrency import ahead, all_of
from services.kit.encoder import Floats
from services.kit.errors import DeadlineExceeded
from services.retriever.collections.documents import File, Version
from services.retriever.collections.encoding import Encoding
from services.retriever.collections.pipeline import (
    Parsed,
    Place,
    Progress,
    Unusable,
    Writer,
    is_complete,
    parse,
    replaced,
)
from services.retriever.collections.schema import Schema
from services.retriever.collections.store import Store
from services.retriever.settings import RetrieverSettings
from services.retriever.workers import PagePool

# Documents processed at a time: they are in memory, and an interruption loses them.
SLICE_CHARS = 1024 * 1024
SLICE_DOCUMENTS = 32


@dataclass(frozen=True, slots=True)
class _Item:
    index: int
    document: File
    version: Version

    def problem(self, reason: str, detail: str) -> Degradation:
        name = self.document.id or f"number {self.index + 1}"
        return Degradation(stage=f"document:{self.index}", reason=reason, detail=f"{name[:200]}: {detail}")


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Writes documents into collections."""

    store: Store
    encoding: Encoding
    pages: PagePool
    settings: RetrieverSettings

    async def run(
        self, name: str, schema: Schema, documents: Sequence[File], progress: Progress = lambda *_: None
    ) -> IngestResponse:
        """Write those documents of a batch that the collection lacks.

        Args:
            progress: called with the number of written points of a slice of the batch, and of all its points.

        Raises:
            DeadlineExceeded: the budget ended; written points stay, and the same batch sent again goes on.
        """
        items, skipped = _distinct(documents)
        writer = Writer(self.store, name)
        stored = await writer.stored([item.version for item in items])
        new = [item for item in items if not is_complete(item.version, stored)]
        encoders = {encoder: await self.encoding.get(encoder) for encoder in schema.encoders} if new else {}

        async def encode(places: Sequence[Place]) -> Mapping[str, Floats]:
            texts = [place.text for place in places]
            return {name: await self.encoding.passages(encoder, texts) for name, encoder in encoders.items()}

        added = others = written = 0
        # The next part is parsed while this one is encoded and written.
        async with contextlib.aclosing(
            ahead(self._read(part, schema.document_chunker) for part in _slices(new))
        ) as slices:
            async for ready, failed in slices:
                skipped += failed
                written += await writer.write(ready, stored, encode, progress)
                # An unfinished version of the same digest is this one.
                replacing = len(replaced(ready, stored))
                added += len(ready) - replacing
                others += replacing
        return IngestResponse(
            added=added,
            unchanged=len(items) - len(new),
            replaced=others,
            points=written,
            skipped=tuple(sorted(skipped, key=lambda problem: int(problem.stage.partition(":")[2]))),
        )

    async def _read(self, items: Sequence[_Item], chunker: str) -> tuple[list[Parsed], list[Degradation]]:
        budget = current_budget.get()

        async def read(item: _Item) -> Parsed | Degradation:
            try:
                async with asyncio.timeout(budget.left() if budget else None):
                    return await parse(self.pages, item.document, item.version, self.settings, chunker=chunker)
            except Unusable as error:
                return item.problem(error.reason, str(error))
            except TimeoutError as error:
                # The caller's time, not the document's: sent again, it gets another chance.
                raise DeadlineExceeded("the time ran out before all documents were read") from error

        results = await all_of(read(item) for item in items)
        ready = [result for result in results if isinstance(result, Parsed)]
        return ready, [result for result in results if isinstance(result, Degradation)]


def _distinct(documents: Sequence[File]) -> tuple[list[_Item], list[Degradation]]:
    """The last document of each id, and a problem for each other one."""
    items: dict[str, _Item] = {}
    skipped = []
    for index, document in enumerate(documents):
        item = _Item(index, document, Version.of(document))
        if (earlier := items.get(item.version.id)) is not None:
            skipped.append(earlier.problem("duplicate", f"document {index + 1} of the batch has the same id"))
        items[item.version.id] = item
    return list(items.values()), skipped


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
