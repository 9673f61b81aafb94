"""Files on their way into a collection: on disk until they are written, so that a kill loses none.

A file is on disk, whole, before its sender hears that it was accepted; the next process goes on with the files there.
Written twice, it is the same document.
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from proto.collections import DocumentInfo, DocumentState, IngestResponse
from services.kit.errors import InvalidRequest, MeshError, Overloaded, Unavailable
from services.kit.files import write_whole
from services.kit.telemetry import log
from services.retriever.collections.documents import File
from services.retriever.collections.errors import CollectionConflict, NoSuchCollection
from services.retriever.collections.pipeline import Progress

MAX_WAITING = 1_024
# Unreadable files whose problems are kept.
MAX_FAILED = 1_000
# Pauses between attempts while the store is away; after them the file waits for the next start.
PAUSES_S = (1.0, 5.0, 20.0, 60.0, 60.0)
SUFFIX = ".file"


class _Superseded(Exception):
    """The file is not to be written any more: another version came after it, or it was removed."""


# Writes files into a collection.
Write = Callable[[str, Sequence[File], Progress], Awaitable[IngestResponse]]


@dataclass(slots=True)
class Job:
    """A file on its way."""

    collection: str
    id: str
    path: Path
    size: int
    digest: str = ""
    state: DocumentState = "waiting"
    problem: str = ""
    new: bool = False
    written: int = 0
    passages: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def info(self) -> DocumentInfo:
        """How far the file is; its digest is known unless an earlier process took it."""
        names = ("id", "digest", "passages", "written", "state", "problem")
        return DocumentInfo(**{name: getattr(self, name) for name in names})


class Intake:
    """Writes files one after the other; `folder` has the waiting ones, of this process alone."""

    def __init__(self, write: Write, folder: Path, *, max_bytes: int) -> None:
        self._write = write
        self._folder = folder
        self._max_bytes = max_bytes
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        # The newest of each document that is not complete; an interrupted one is on disk for the next start.
        self._jobs: dict[tuple[str, str], Job] = {}
        self._bytes = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Intake"]:
        """Write while the context is open, first the files of an earlier process."""
        for job in await asyncio.to_thread(_pending, self._folder):
            self._add(job)
        async with asyncio.TaskGroup() as tasks:
            worker = tasks.create_task(self._work())
            try:
                yield self
            finally:
                worker.cancel()

    def find(self, collection: str, document: str) -> DocumentInfo | None:
        """A waiting or unreadable file; None for any other."""
        job = self._jobs.get((collection, document))
        return job.info() if job else None

    async def put(self, collection: str, file: File) -> Job:
        """Accept a file; the newest of an id wins.

        Raises:
            Overloaded: too many wait.
            Unavailable: the disk failed.
        """
        size = len(file.content)
        if self._waiting.qsize() >= MAX_WAITING or self._bytes + size > self._max_bytes:
            raise Overloaded(
                f"{self._waiting.qsize():,} files wait to be written, which is all that may", retry_after_s=5
            )
        # A caller that hangs up meanwhile leaves no file on disk that nobody knows of.
        return await asyncio.shield(self._take(collection, file, size))

    async def _take(self, collection: str, file: File, size: int) -> Job:
        self._bytes += size
        try:
            path = await asyncio.to_thread(_save, self._folder, collection, file)
        except OSError as error:
            raise Unavailable(f"the disk took no more: {error.strerror}") from error
        finally:
            self._bytes -= size
        job = Job(collection, file.id, path, size, await asyncio.to_thread(lambda: file.digest))
        previous = self._jobs.get((collection, file.id))
        self._add(job)
        if previous is not None:
            await asyncio.to_thread(previous.path.unlink, missing_ok=True)
        return job

    async def forget(self, collection: str, document: str) -> bool:
        """Drop a file that waits, failed, or is being written; false where there is none.

        What is being written ends with its current points: whoever deletes the document waits for that, by the
        collection's lock.
        """
        job = self._jobs.pop((collection, document), None)
        if job is not None:
            await asyncio.to_thread(job.path.unlink, missing_ok=True)
        return job is not None

    async def forget_all(self, collection: str) -> None:
        """Drop all files of a collection that goes: another one of its name has none of them."""
        for document in [document for name, document in self._jobs if name == collection]:
            await self.forget(collection, document)

    def _add(self, job: Job) -> None:
        # Behind the others: of failed ones the oldest is forgotten first.
        self._jobs.pop((job.collection, job.id), None)
        self._jobs[job.collection, job.id] = job
        self._bytes += job.size
        self._waiting.put_nowait(job)

    async def _work(self) -> None:
        while True:
            job = await self._waiting.get()
            try:
                await self._process(job)
            except _Superseded:
                job.problem = "another version came after it, or it was removed"
                await asyncio.to_thread(job.path.unlink, missing_ok=True)
            finally:
                self._bytes -= job.size
                job.done.set()

    async def _process(self, job: Job) -> None:
        def check() -> None:
            if self._jobs.get((job.collection, job.id)) is not job:
                raise _Superseded

        def progress(written: int, passages: int) -> None:
            check()
            job.state, job.written, job.passages = "writing", written, passages

        for pause in (*PAUSES_S, None):
            check()
            try:
                collection, file = await asyncio.to_thread(_load, job.path)
                response = await self._write(collection, [file], progress)
            except _Superseded:
                raise
            except (NoSuchCollection, InvalidRequest) as error:
                await self._end(job, error.detail)
            except MeshError as error:
                check()
                # Where a collection was built otherwise a pause mends nothing, and the others would wait for it.
                wait_s = None if isinstance(error, CollectionConflict) else pause
                log.warning("file not written", error=error.detail, again=wait_s is not None)
                if wait_s is not None:
                    await asyncio.sleep(wait_s)
                    continue
                job.state, job.problem = "interrupted", error.detail
            except Exception as error:
                check()
                # An error of one file; the others must not wait behind it.
                log.error("file failed", error=type(error).__name__, exc_info=error)
                await self._end(job, "the service failed; its log has the details")
            else:
                job.new = bool(response.added)
                await self._end(job, response.skipped[0].detail if response.skipped else "")
            return

    async def _end(self, job: Job, problem: str) -> None:
        # First of all, so that no finished file is in the folder.
        await asyncio.to_thread(job.path.unlink, missing_ok=True)
        job.state, job.problem = ("failed" if problem else "complete"), problem
        if not problem and self._jobs.get((job.collection, job.id)) is job:
            del self._jobs[job.collection, job.id]
        failed = [key for key, one in self._jobs.items() if one.state == "failed"]
        if len(failed) > MAX_FAILED:
            del self._jobs[failed[0]]


# Below: in a thread. A file on disk is a line of JSON that describes it, then its content.


def _save(folder: Path, collection: str, file: File) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = isinstance(file.content, str)
    header: dict[str, Any] = {**asdict(file), "content": None, "text": text, "collection": collection}
    # Named by the time of arrival, so that the next process keeps the order.
    path = folder / f"{uuid.uuid1().time:020d}-{uuid.uuid4().hex}{SUFFIX}"
    write_whole(path, json.dumps(header).encode() + b"\n" + file.data)
    return path


def _load(path: Path) -> tuple[str, File]:
    with path.open("rb") as file:
        header = json.loads(file.readline())
        content: bytes = file.read()
    collection, text = header.pop("collection"), header.pop("text")
    header["content"] = content.decode("utf-8", "surrogatepass") if text else content
    return collection, File(**header)


def _pending(folder: Path) -> list[Job]:
    for draft in folder.glob(f".*{SUFFIX}.*"):
        draft.unlink()
    jobs = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with path.open("rb") as file:
            header = json.loads(file.readline())
        jobs.append(Job(header["collection"], header["id"], path, path.stat().st_size))
    return jobs
