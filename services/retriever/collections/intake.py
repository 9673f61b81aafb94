"""Files on their way into a collection: on disk until they are written, so that a kill loses none.

A file is on disk, whole, before its sender hears that it was accepted; the next process goes on with the files there.
Written twice, it is the same document.
"""

import asyncio
import contextlib
import json
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from proto.collections import DocumentInfo, DocumentState, IngestResponse
from services.kit.errors import MeshError, Overloaded, Unavailable
from services.kit.files import write_whole
from services.kit.telemetry import log
from services.retriever.collections.documents import File
from services.retriever.collections.errors import NoSuchCollection
from services.retriever.collections.pipeline import Progress

MAX_WAITING = 1_024
# Unreadable files whose problems are kept.
MAX_FAILED = 1_000
# Pauses between attempts while the store is away; after them the file waits for the next start.
PAUSES_S = (1.0, 5.0, 20.0, 60.0, 60.0)
SUFFIX = ".file"

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
        self._jobs: dict[tuple[str, str], Job] = {}
        self._failed: OrderedDict[tuple[str, str], Job] = OrderedDict()
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
        key = (collection, document)
        job = self._jobs.get(key) or self._failed.get(key)
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
        self._bytes += size
        try:
            path = await asyncio.to_thread(_save, self._folder, collection, file)
        except OSError as error:
            raise Unavailable(f"the disk took no more: {error.strerror}") from error
        finally:
            self._bytes -= size
        job = Job(collection, file.id, path, size, await asyncio.to_thread(lambda: file.digest))
        self._add(job)
        return job

    async def forget(self, collection: str, document: str) -> bool:
        """Drop a file that waits or failed; false where there is none. One that is being written is written."""
        had_failed = self._failed.pop((collection, document), None) is not None
        job = self._jobs.get((collection, document))
        if job is None or job.state != "waiting":
            return had_failed
        del self._jobs[collection, document]
        await asyncio.to_thread(job.path.unlink, missing_ok=True)
        return True

    def _add(self, job: Job) -> None:
        key = (job.collection, job.id)
        self._failed.pop(key, None)
        self._jobs[key] = job
        self._bytes += job.size
        self._waiting.put_nowait(job)

    async def _work(self) -> None:
        while True:
            job = await self._waiting.get()
            try:
                if self._jobs.get((job.collection, job.id)) is job:
                    await self._process(job)
                else:
                    job.problem = "another version came after it, or it was removed"
                    await asyncio.to_thread(job.path.unlink, missing_ok=True)
            finally:
                self._bytes -= job.size
                job.done.set()

    async def _process(self, job: Job) -> None:
        def progress(written: int, passages: int) -> None:
            job.state, job.written, job.passages = "writing", written, passages

        for pause in (*PAUSES_S, None):
            try:
                collection, file = await asyncio.to_thread(_load, job.path)
                response = await self._write(collection, [file], progress)
            except NoSuchCollection as error:
                await self._end(job, error.detail)
            except MeshError as error:
                log.warning("file not written", collection=job.collection, error=error.detail, again=pause is not None)
                if pause is not None:
                    await asyncio.sleep(pause)
                    continue
                job.state, job.problem = "interrupted", error.detail
                self._jobs.pop((job.collection, job.id), None)
            except Exception as error:
                # An error of one file; the others must not wait behind it.
                log.error("file failed", collection=job.collection, error=type(error).__name__, exc_info=error)
                await self._end(job, "the service failed; its log has the details")
            else:
                job.new = bool(response.added)
                await self._end(job, response.skipped[0].detail if response.skipped else "")
            return

    async def _end(self, job: Job, problem: str) -> None:
        # First of all, so that no finished file is in the folder.
        await asyncio.to_thread(job.path.unlink, missing_ok=True)
        job.state, job.problem = ("failed" if problem else "complete"), problem
        key = (job.collection, job.id)
        if self._jobs.get(key) is job:
            del self._jobs[key]
        if problem:
            self._failed[key] = job
            if len(self._failed) > MAX_FAILED:
                self._failed.popitem(last=False)


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
