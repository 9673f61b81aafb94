"""An ingest cut short at any point, and sent again: what is written once is neither lost nor written twice."""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proto.collections import Document
from services.kit.encoder import Floats
from services.kit.errors import DeadlineExceeded
from services.retriever.collections.ingest import WRITE_POINTS, Ingestion
from services.retriever.collections.schema import EncoderRecord, Schema
from services.retriever.collections.store import LocalStore

pytestmark = pytest.mark.anyio

NAME = "library"
SCHEMA = Schema(encoders={"count": EncoderRecord(dimension=2, fingerprint="none", precision="fp32")}, chunked=True)
BOOK = " ".join(f"Chapter {index} tells of walruses, and of {index * 7} of them at most." for index in range(4_000))
LETTER = Document(id="letter", text="A letter about seals.")


class Counting:
    """Vectors of two numbers; `left` calls, and then the time is up."""

    def __init__(self) -> None:
        self.left = 10_000
        self.texts: list[str] = []

    async def get(self, name: str) -> str:
        return name

    async def passages(self, _: str, texts: Sequence[str]) -> list[Floats]:
        if self.left == 0:
            raise DeadlineExceeded("the time ran out")
        self.left -= 1
        self.texts += texts
        # Unit vectors that any order of arithmetic leaves as they are.
        return [np.asarray([[len(text) % 2, 1 - len(text) % 2] for text in texts], np.float32)]


class Inline:
    """Does the work of page workers here."""

    async def run(self, function: Callable[..., Any], *arguments: Any, timeout_s: float) -> Any:
        assert timeout_s > 0
        return function(*arguments)


class Library:
    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self.encoding = Counting()
        self.ingestion = Ingestion(store, self.encoding, Inline(), page_timeout_s=4)  # type: ignore[arg-type]

    async def put(self, *documents: Document, calls: int = 10_000) -> Any:
        self.encoding.left, self.encoding.texts = calls, []
        return await self.ingestion.run(NAME, SCHEMA, documents)

    async def contents(self) -> dict[str, Any]:
        points, _ = await self.store.call("scroll", collection_name=NAME, limit=10_000, with_vectors=True)
        return {str(point.id): (point.payload, point.vector) for point in points}


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with LocalStore(tmp_path / "disturbed").running() as store:
        await store.create(NAME, SCHEMA)
        yield Library(store)


@pytest.fixture
async def undisturbed(tmp_path: Path) -> dict[str, Any]:
    async with LocalStore(tmp_path / "undisturbed").running() as store:
        await store.create(NAME, SCHEMA)
        library = Library(store)
        await library.put(Document(id="book", text=BOOK), LETTER)
        return await library.contents()


async def test_a_book_longer_than_a_request_goes_on_with_the_next(
    library: Library, undisturbed: dict[str, Any]
) -> None:
    book = Document(id="book", text=BOOK)
    for calls in (1, 2):
        with pytest.raises(DeadlineExceeded):
            await library.put(book, LETTER, calls=calls)
    found = await library.put(book, LETTER)
    # The letter was whole after the first call; of the book the second wrote a part beside its first point.
    assert (found.added, found.unchanged) == (1, 1)
    assert len(library.encoding.texts) == len(undisturbed) - 1 - WRITE_POINTS == found.points
    assert await library.contents() == undisturbed
    assert (await library.put(book, LETTER)).unchanged == 2
    assert library.encoding.texts == []


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
async def test_a_replacement_cut_short_leaves_nothing_of_the_old(
    library: Library, undisturbed: dict[str, Any], calls: int
) -> None:
    await library.put(Document(id="book", text=BOOK.replace("walruses", "pelicans")), LETTER)
    with pytest.raises(DeadlineExceeded):
        await library.put(Document(id="book", text=BOOK), LETTER, calls=calls)
    found = await library.put(Document(id="book", text=BOOK), LETTER)
    assert found.unchanged == 1
    assert await library.contents() == undisturbed


async def test_the_old_version_sent_again_after_a_cut_is_whole_again(
    library: Library, undisturbed: dict[str, Any]
) -> None:
    book = Document(id="book", text=BOOK)
    await library.put(book, LETTER)
    with pytest.raises(DeadlineExceeded):
        await library.put(Document(id="book", text="Another book. " * 2_000), calls=1)
    await library.put(book)
    assert await library.contents() == undisturbed


async def test_of_one_id_sent_twice_the_last_counts(library: Library) -> None:
    first, last = Document(id="note", text="On pelicans."), Document(id="note", text="On walruses.")
    found = await library.put(first, last)
    assert (found.added, [item.reason for item in found.skipped]) == (1, ["duplicate"])
    assert [payload["text"] for payload, _ in (await library.contents()).values()] == ["On walruses."]


async def test_documents_without_an_id_are_known_by_their_content(library: Library) -> None:
    note = Document(text="On walruses.", fields={"b": 1, "a": "x"})
    assert (await library.put(note)).added == 1
    assert (await library.put(Document(text="On walruses.", fields={"a": "x", "b": 1}))).unchanged == 1
    assert (await library.put(Document(text="On walruses.", fields={"a": "y", "b": 1}))).added == 1
    assert len(await library.contents()) == 2
