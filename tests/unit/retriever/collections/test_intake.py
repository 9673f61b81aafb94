"""Files that wait: none is lost by a kill, none waits behind a broken one, and no more wait than may."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from proto.base import Degradation
from proto.collections import IngestResponse
from services.kit.errors import MeshError, Overloaded, Unavailable
from services.retriever.collections import intake
from services.retriever.collections.documents import File
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
