"""An ingest cut short at any point, and sent again: what is written once is neither lost nor written twice."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client.local.persistence import CollectionPersistence

from proto.collections import BM25, Document, SearchRequest
from services.kit.encoder import Floats
from services.kit.errors import DeadlineExceeded, Unavailable
from services.kit.lexical import stems
from services.kit.shard import Shard
from services.retriever.collections.catalogue import Catalogue
from services.retriever.collections.documents import File
from services.retriever.collections.errors import NoSuchCollection
from services.retriever.collections.ingest import Ingestion
from services.retriever.collections.local import LocalStore
from services.retriever.collections.pipeline import WRITE_POINTS
from services.retriever.collections.schema import EncoderRecord, Schema
from services.retriever.collections.search import ListQuery
from services.retriever.collections.sparse import query_vector
from services.retriever.settings import RetrieverSettings

pytestmark = pytest.mark.anyio

NAME = "library"
SCHEMA = Schema(encoders={"count": EncoderRecord(dimension=2, fingerprint="none", precision="fp32")}, chunked=True)
BOOK = " ".join(f"Chapter {index} tells of walruses, and of {index * 7} of them at most." for index in range(2_000))
LETTER = Document(id="letter", text="A letter about seals.")


class Counting:
    """Vectors of two numbers; `left` calls, and then the time is up."""

    def __init__(self) -> None:
        self.left = 10_000
        self.texts: list[str] = []

    async def get(self, name: str) -> str:
        return name

    async def passages(self, _: str, texts: Sequence[str]) -> Floats:
        if self.left == 0:
            raise DeadlineExceeded("the time ran out")
        self.left -= 1
        self.texts += texts
        # Unit vectors that any order of arithmetic leaves as they are.
        return np.asarray([[len(text) % 2, 1 - len(text) % 2] for text in texts], np.float32)


class Inline:
    """Does the work of page workers here."""

    async def run(self, function: Callable[..., Any], *arguments: Any, timeout_s: float) -> Any:
        assert timeout_s > 0
        return function(*arguments)


class Library:
    def __init__(self, store: LocalStore, schema: Schema = SCHEMA) -> None:
        self.store = store
        self.schema = schema
        self.encoding = Counting()
        self.ingestion = Ingestion(store, self.encoding, Inline(), RetrieverSettings())  # type: ignore[arg-type]

    async def put(self, *documents: Document, calls: int = 10_000) -> Any:
        self.encoding.left, self.encoding.texts = calls, []
        return await self.ingestion.run(NAME, self.schema, [File.of(document) for document in documents])

    async def contents(self) -> dict[str, Any]:
        points, _ = await self.store.call("scroll", collection_name=NAME, limit=10_000, with_vectors=True)
        return {str(point.id): (point.payload, point.vector) for point in points}

    async def matches(self, word: str) -> set[str]:
        """Points that BM25 finds."""
        query = ListQuery(BM25, 0, query_vector(stems([word])[0]))
        lists = await self.store.lists(NAME, SearchRequest(queries=(word,), candidates=1_000), [query])
        return {str(point.id) for point in lists[0]}

    async def having(self, word: str) -> set[str]:
        """Points that hold it."""
        return {point for point, (payload, _) in (await self.contents()).items() if word in payload["text"]}


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with LocalStore(tmp_path / "disturbed").running() as store:
        await store.create(NAME, SCHEMA)
        yield Library(store)


@pytest.fixture(scope="module")
async def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    async with LocalStore(tmp_path_factory.mktemp("undisturbed")).running() as store:
        await store.create(NAME, SCHEMA)
        library = Library(store)
        await library.put(Document(id="book", text=BOOK), LETTER)
        return await library.contents()


async def test_an_older_collection_goes_on_with_its_chunker(library: Library) -> None:
    older = SCHEMA.model_copy(update={"chunker": "passages"})
    assert not older.differences(SCHEMA)
    rules = "What we lend is listed at the desk. " * 8 + "\n\n" + "You pay nothing the first time. " * 12
    chunkings = []
    for schema in (older, SCHEMA):
        documents = await Library(library.store, schema).put(Document(id="rules", text=rules + schema.chunker))
        assert documents.added + documents.replaced == 1
        chunkings.append(sorted(len(payload["text"]) for payload, _ in (await library.contents()).values()))
    assert chunkings[0] != chunkings[1]


async def test_a_book_longer_than_a_request_goes_on_with_the_next(
    library: Library, undisturbed: dict[str, Any]
) -> None:
    book = Document(id="book", text=BOOK)
    for calls in (1, 2):
        with pytest.raises(DeadlineExceeded):
            await library.put(book, LETTER, calls=calls)
    response = await library.put(book, LETTER)
    # The letter was whole after the first call; of the book the second wrote a part beside its first point.
    assert (response.added, response.unchanged) == (1, 1)
    assert len(library.encoding.texts) == len(undisturbed) - 1 - WRITE_POINTS == response.points
    assert await library.contents() == undisturbed
    assert (await library.put(book, LETTER)).unchanged == 2
    assert library.encoding.texts == []


def killed(folder: Path) -> None:
    """Write what two calls allow, and end as by SIGKILL."""

    async def write() -> None:
        async with LocalStore(folder).running() as store:
            await store.create(NAME, SCHEMA)
            with contextlib.suppress(DeadlineExceeded):
                await Library(store).put(Document(id="book", text=BOOK), LETTER, calls=2)
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(write())


async def test_a_process_killed_while_it_writes_is_gone_on_with(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=killed, args=(tmp_path,))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -signal.SIGKILL
    async with LocalStore(tmp_path).running() as store:
        library = Library(store)
        assert 0 < len(await library.contents()) < len(undisturbed)
        response = await library.put(Document(id="book", text=BOOK), LETTER)
        assert (response.added, response.unchanged) == (1, 1)
        assert await library.contents() == undisturbed


@pytest.mark.parametrize("calls", [0, 1, 2])
async def test_a_replacement_cut_short_leaves_nothing_of_the_old(
    library: Library, undisturbed: dict[str, Any], calls: int
) -> None:
    await library.put(Document(id="book", text=BOOK.replace("walruses", "pelicans")), LETTER)
    with pytest.raises(DeadlineExceeded):
        await library.put(Document(id="book", text=BOOK), LETTER, calls=calls)
    response = await library.put(Document(id="book", text=BOOK), LETTER)
    assert response.unchanged == 1
    assert await library.contents() == undisturbed


@pytest.mark.parametrize("meanwhile", ["deleted", "replaced"])
async def test_what_another_service_removes_while_it_is_written_is_gone(library: Library, meanwhile: str) -> None:
    class Interrupting(Counting):
        """Another service over the same store does its work between two writes of this one."""

        async def passages(self, encoder: str, texts: Sequence[str]) -> Floats:
            if self.left == 9_998:
                if meanwhile == "deleted":
                    assert await Catalogue(library.store).delete(NAME, "book")
                else:
                    await library.put(Document(id="book", text="A newer book about pelicans."))
            return await super().passages(encoder, texts)

    slow = Ingestion(library.store, Interrupting(), Inline(), RetrieverSettings())  # type: ignore[arg-type]
    await slow.run(NAME, SCHEMA, [File.of(Document(id="book", text=BOOK))])
    texts = [payload["text"] for payload, _ in (await library.contents()).values()]
    assert texts == ([] if meanwhile == "deleted" else ["A newer book about pelicans."])


async def test_the_old_version_sent_again_after_a_cut_is_whole_again(
    library: Library, undisturbed: dict[str, Any]
) -> None:
    book = Document(id="book", text=BOOK)
    await library.put(book, LETTER)
    with pytest.raises(DeadlineExceeded):
        await library.put(Document(id="book", text="Another book. " * 2_000), calls=1)
    await library.put(book)
    assert await library.contents() == undisturbed


async def test_shards_of_which_one_is_killed_leave_what_one_run_leaves(library: Library, tmp_path: Path) -> None:
    documents = [Document(id=f"part {part}", text=BOOK[part * 2_000 : (part + 1) * 2_000]) for part in range(12)]
    async with LocalStore(tmp_path / "whole").running() as store:
        await store.create(NAME, SCHEMA)
        whole = Library(store)
        await whole.put(*documents)
        expected = await whole.contents()
    for index in (2, 0, 1):
        share = list(Shard(index, 3).of_items(documents, lambda document: document.id))
        with pytest.raises(DeadlineExceeded):
            await library.put(*share, calls=1)
        await library.put(*share)
    assert await library.contents() == expected


async def test_documents_without_an_id_are_known_by_their_content(library: Library) -> None:
    note = Document(text="On walruses.", fields={"b": 1, "a": "x"})
    assert (await library.put(note)).added == 1
    assert (await library.put(Document(text="On walruses.", fields={"a": "x", "b": 1}))).unchanged == 1
    assert (await library.put(Document(text="On walruses.", fields={"a": "y", "b": 1}))).added == 1
    assert len(await library.contents()) == 2


def failing(monkeypatch: pytest.MonkeyPatch, method: str, *, after: int) -> None:
    """Have SQLite fail as on a full disk, once that many points are written or removed."""
    real, left = getattr(CollectionPersistence, method), [after]

    def run(self: CollectionPersistence, *arguments: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise sqlite3.OperationalError("database or disk is full")
        real(self, *arguments)

    monkeypatch.setattr(CollectionPersistence, method, run)


async def test_words_are_found_after_a_full_disk(
    library: Library, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Document(id="book", text=BOOK)
    await library.put(LETTER)
    assert await library.matches("walruses") == set()
    with monkeypatch.context() as context:
        failing(context, "persist", after=60)
        with pytest.raises(Unavailable, match="disk took no more: database or disk is full"):
            await library.put(book)
    assert len(await library.having("walruses")) == 60 == len(await library.matches("walruses"))
    assert (await library.put(book)).added == 1
    assert await library.contents() == undisturbed
    assert await library.matches("walruses") == await library.having("walruses")


async def test_words_are_found_after_a_removal_that_failed(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    await library.put(Document(id="book", text=BOOK.replace("walruses", "pelicans")))
    assert await library.matches("pelicans")
    with monkeypatch.context() as context:
        failing(context, "delete", after=60)
        with pytest.raises(Unavailable):
            await library.put(Document(id="book", text=BOOK))
    assert await library.matches("pelicans") == await library.having("pelicans") != set()
    await library.put(Document(id="book", text=BOOK))
    assert await library.matches("pelicans") == set()
    assert await library.matches("walruses") == await library.having("walruses")


async def test_a_collection_that_is_deleted_meanwhile_is_not_found(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deleting(_: str, texts: Sequence[str]) -> list[Floats]:
        await library.store.delete(NAME)
        return [np.ones((len(texts), 2), np.float32)]

    monkeypatch.setattr(library.encoding, "passages", deleting)
    with pytest.raises(NoSuchCollection, match=NAME):
        await library.put(LETTER)
