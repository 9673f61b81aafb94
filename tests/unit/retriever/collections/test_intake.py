"""Files that wait: none is lost by a kill, none waits behind a broken one, and no more wait than may."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from proto.base import Degradation
from proto.collections import IngestResponse
from services.kit.errors import MeshError, Overloaded, Unavailable
from services.retriever.collections import intake
from services.retriever.collections.documents import File
from services.retriever.collections.errors import CollectionConflict
from services.retriever.collections.intake import Intake
from services.retriever.collections.pipeline import Progress

pytestmark = pytest.mark.anyio

FILES = [File(b"%PDF", "pdf", "a", fields={"year": 1864}), File("Ein Satz über Wale.", "text", "b", "Wale")]


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


class Written:
    """What was written; `fails` says what goes wrong with a file."""

    def __init__(self, fails: Callable[[File], MeshError | str | None] = lambda _: None) -> None:
        self.files: list[File] = []
        self.fails = fails

    async def __call__(self, _: str, files: Sequence[File], progress: Progress) -> IngestResponse:
        (file,) = files
        progress(0, 1)
        match self.fails(file):
            case MeshError() as error:
                raise error
            case str() as why:
                return IngestResponse(skipped=(Degradation(stage="document:0", reason="failed", detail=why),))
        self.files.append(file)
        return IngestResponse(added=1)


async def test_what_a_killed_process_left_is_written_by_the_next(tmp_path: Path) -> None:
    async def never(*_: object) -> IngestResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with Intake(never, tmp_path, max_bytes=1_000).running() as first:
        for file in FILES:
            await first.put("notes", file)
    # Half a file, as a kill leaves it, was promised to nobody.
    (tmp_path / ".0-left.file.7").write_bytes(b"{")
    written = Written()
    async with Intake(written, tmp_path, max_bytes=1_000).running() as second:
        while second.find("notes", "a") or second.find("notes", "b"):  # noqa: ASYNC110 - as a caller asks
            await asyncio.sleep(0.001)
    assert written.files == FILES
    assert files_in(tmp_path) == []


async def test_a_broken_file_is_named_and_the_next_is_written(tmp_path: Path) -> None:
    written = Written(lambda file: "it is damaged" if file.id == "a" else None)
    async with Intake(written, tmp_path, max_bytes=1_000).running() as intake:
        jobs = [await intake.put("notes", file) for file in FILES]
        for job in jobs:
            await job.done.wait()
        assert [(job.state, job.problem) for job in jobs] == [("failed", "it is damaged"), ("complete", "")]
        info = intake.find("notes", "a")
        assert info is not None
        assert (info.state, info.digest) == ("failed", FILES[0].digest)
        assert await intake.forget("notes", "a")
        assert intake.find("notes", "a") is None


async def test_files_of_a_collection_that_goes_are_forgotten(tmp_path: Path) -> None:
    written = Written(lambda _: "it is damaged")
    async with Intake(written, tmp_path, max_bytes=1_000).running() as intake:
        jobs = [await intake.put(name, file) for name in ("notes", "others") for file in FILES]
        for job in jobs:
            await job.done.wait()
        await intake.forget_all("notes")
        assert [intake.find("notes", file.id) for file in FILES] == [None, None]
        assert all(intake.find("others", file.id) for file in FILES)


async def test_of_failed_files_the_oldest_is_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.retriever.collections.intake.MAX_FAILED", 2)
    async with Intake(Written(lambda _: "it is damaged"), tmp_path, max_bytes=1_000).running() as intake:
        for name in "abac":
            job = await intake.put("notes", replace(FILES[0], id=name))
            await job.done.wait()
        assert [name for name in "abc" if intake.find("notes", name)] == ["a", "c"]


async def test_what_is_away_is_tried_again_and_then_kept_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PAUSES_S", (0.0, 0.0))
    attempts = 0

    def fails(_: File) -> MeshError | None:
        nonlocal attempts
        attempts += 1
        return Unavailable("the disk is full")

    async with Intake(Written(fails), tmp_path, max_bytes=1_000).running() as waiting:
        job = await waiting.put("notes", FILES[0])
        await job.done.wait()
    assert (job.state, job.problem, attempts) == ("interrupted", "the disk is full", 3)
    assert len(files_in(tmp_path)) == 1


async def test_no_more_wait_than_may(tmp_path: Path) -> None:
    async with Intake(Written(), tmp_path, max_bytes=10).running() as waiting:
        with pytest.raises(Overloaded):
            await waiting.put("notes", FILES[1])
        await waiting.put("notes", FILES[0])


@pytest.mark.parametrize("how", ["forget", "put"])
async def test_what_was_given_up_is_deleted_or_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(intake, "PAUSES_S", ())
    problems = [Unavailable("the store is away")]
    written = Written(lambda _: problems.pop() if problems else None)
    older, newer = File("Version 1", "text", "a"), File("Version 2", "text", "a")
    async with Intake(written, tmp_path, max_bytes=1_000).running() as waiting:
        job = await waiting.put("notes", older)
        await job.done.wait()
        info = waiting.find("notes", "a")
        assert info is not None
        assert info.state == "interrupted"
        if how == "forget":
            assert await waiting.forget("notes", "a")
            assert not await waiting.forget("notes", "a")
        else:
            await (await waiting.put("notes", newer)).done.wait()
        assert waiting.find("notes", "a") is None
    assert files_in(tmp_path) == []
    assert written.files == [newer][: how == "put"]


@pytest.mark.parametrize("how", ["forget", "put"])
async def test_what_is_removed_between_two_attempts_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(intake, "PAUSES_S", (0.05, 0.05))
    older, newer = File("Version 1", "text", "a"), File("Version 2", "text", "a")
    attempts: list[str] = []

    def fails(file: File) -> MeshError | None:
        attempts.append(str(file.content))
        return Unavailable("away") if file == older else None

    written = Written(fails)
    async with Intake(written, tmp_path, max_bytes=1_000).running() as waiting:
        job = await waiting.put("notes", older)
        while not attempts:  # noqa: ASYNC110 - the store is asked, and fails
            await asyncio.sleep(0.001)
        if how == "forget":
            assert await waiting.forget("notes", "a")
            await job.done.wait()
            assert waiting.find("notes", "a") is None
        else:
            await (await waiting.put("notes", newer)).done.wait()
    assert attempts == ["Version 1", "Version 2"][: 1 + (how == "put")]
    assert written.files == ([newer] if how == "put" else [])
    assert files_in(tmp_path) == []


async def test_a_document_deleted_while_it_is_written_is_written_no_further(tmp_path: Path) -> None:
    begun, parts = asyncio.Event(), []

    async def write(_: str, __: Sequence[File], progress: Progress) -> IngestResponse:
        for part in range(100):
            progress(part, 100)
            parts.append(part)
            begun.set()
            await asyncio.sleep(0.001)
        return IngestResponse(added=1)

    async with Intake(write, tmp_path, max_bytes=1_000).running() as waiting:
        job = await waiting.put("notes", FILES[0])
        await begun.wait()
        assert await waiting.forget("notes", "a")
        await job.done.wait()
        assert waiting.find("notes", "a") is None
    assert len(parts) < 100
    assert files_in(tmp_path) == []


async def test_a_collection_of_another_build_holds_up_nobody(tmp_path: Path) -> None:
    attempts: list[str] = []

    def fails(file: File) -> MeshError | None:
        attempts.append(file.id)
        return CollectionConflict("it was built with another encoder") if file.id == "a" else None

    async with Intake(Written(fails), tmp_path, max_bytes=1_000).running() as waiting:
        jobs = [await waiting.put("notes", file) for file in FILES]
        for job in jobs:
            await job.done.wait()
    assert attempts == ["a", "b"]
    assert [job.state for job in jobs] == ["interrupted", "complete"]
    # Kept: the encoder may be defined again.
    assert len(files_in(tmp_path)) == 1


async def test_a_sender_that_hangs_up_leaves_no_file_that_nobody_knows_of(tmp_path: Path) -> None:
    written = Written()
    async with Intake(written, tmp_path, max_bytes=1_000).running() as waiting:
        sending = asyncio.create_task(waiting.put("notes", FILES[1]))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        while not written.files:  # noqa: ASYNC110 - as a caller asks
            await asyncio.sleep(0.001)
        while files_in(tmp_path):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
