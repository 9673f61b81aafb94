"""A retriever killed while it writes, twice: sent again, the documents end up as if nothing had happened."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from qdrant_client import QdrantClient

from tests.ports import free_port
from tests.unit.retriever.collections.conftest import MINILM, running, settings

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NAME = "chronicle"
# Much shorter than writing takes.
SLICE_S = 0.02
DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": f"year-{year}",
        "title": f"The year {year}",
        "text": " ".join(
            f"In month {month} of {year} the harbour saw {year % 7 + month} ships with {month * 3} barrels of herring."
            # One in ten has several passages, which are written after every document's first.
            for month in range(1, 25 if year % 10 == 0 else 2)
        ),
    }
    # More than are written at once.
    for year in range(1600, 1760)
]
# One that changes between the attempts, and is left half written by the first.
CHANGED = {**DOCUMENTS[20], "text": DOCUMENTS[20]["text"].replace("herring", "cod")}


class Process:
    """A retriever over a folder."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        settings = {
            "CRAGMESH_RETRIEVER_PORT": str(port),
            "CRAGMESH_QDRANT_PATH": str(folder),
            "CRAGMESH_PRECISION": "fp32",
            "CRAGMESH_THREADS": "1",
            "CRAGMESH_PAGE_WORKERS": "1",
            "CRAGMESH_MAX_DEADLINE_S": "300",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "services.retriever"],
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + 300
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/readyz", trust_env=False).is_success:
                    return
            time.sleep(0.1)
        self.end(signal.SIGKILL)
        raise AssertionError("the retriever did not start")

    def ingest(self, documents: list[dict[str, Any]]) -> None:
        with httpx.Client(base_url=self.url, timeout=300, trust_env=False) as client:
            client.put(f"/collections/{NAME}", json={}).raise_for_status()
            client.post(f"/collections/{NAME}/documents", json={"documents": documents}).raise_for_status()

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def memory_mib(self) -> int:
        """Of the retriever and the processes that read files for it."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self._process.pid)
            return int(sum(one.memory_info().rss for one in (process, *process.children(recursive=True))) / 2**20)
        return 0

    def end(self, number: int) -> None:
        self.send(number)
        self._process.wait(30)


def written(folder: Path) -> int:
    for path in folder.rglob("storage.sqlite"):
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0)) as file,
        ):
            return int(file.execute("SELECT count(*) FROM points").fetchone()[0])
    return 0


def killed_at(folder: Path, documents: list[dict[str, Any]], points: int) -> None:
    """Begin to ingest, and kill the retriever once so many points are on disk."""
    process = Process(folder)

    def send() -> None:
        with contextlib.suppress(httpx.HTTPError):
            process.ingest(documents)

    sending = threading.Thread(target=send)
    sending.start()
    try:
        while written(folder) < points:
            assert sending.is_alive(), "all was written before it could be interrupted"
            # In slices, so that it cannot run away from whoever counts, however busy this machine is.
            process.send(signal.SIGCONT)
            time.sleep(SLICE_S)
            process.send(signal.SIGSTOP)
    finally:
        process.end(signal.SIGKILL)
        sending.join()


def contents(folder: Path) -> dict[str, tuple[Any, Any]]:
    client = QdrantClient(path=str(folder))
    try:
        points, _ = client.scroll(NAME, limit=100_000, with_payload=True, with_vectors=True)
        return {str(point.id): (point.payload, point.vector) for point in points}
    finally:
        client.close()


async def ingested(client: httpx.AsyncClient, documents: list[dict[str, Any]]) -> dict[str, Any]:
    (await client.put(f"/collections/{NAME}", json={})).raise_for_status()
    reply = await client.post(f"/collections/{NAME}/documents", json={"documents": documents}, timeout=300)
    found: dict[str, Any] = reply.raise_for_status().json()
    return found


# What need not be killed runs in this process, which has imported what a retriever needs seconds for.
@pytest.fixture
async def undisturbed(tmp_path: Path) -> dict[str, tuple[Any, Any]]:
    async with running(settings(tmp_path / "undisturbed", max_deadline_s=300)) as client:
        found = await ingested(client, [*DOCUMENTS[:20], CHANGED, *DOCUMENTS[21:]])
        assert found["added"] == len(DOCUMENTS)
    return contents(tmp_path / "undisturbed")


async def test_killed_twice_it_equals_an_undisturbed_one(
    undisturbed: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    folder = tmp_path / "disturbed"
    total = len(undisturbed)
    await asyncio.to_thread(killed_at, folder, DOCUMENTS, 1)
    first = written(folder)
    assert first < total
    await asyncio.to_thread(killed_at, folder, DOCUMENTS, first + 1)
    assert first < written(folder) < total
    async with running(settings(folder, max_deadline_s=300)) as client:
        found = await ingested(client, [*DOCUMENTS[:20], CHANGED, *DOCUMENTS[21:]])
        # At most all of them again: documents that were half written are written whole.
        assert 0 < found["points"] <= total
        assert found["added"] + found["unchanged"] + found["replaced"] == len(DOCUMENTS)
        again = await ingested(client, [*DOCUMENTS[:20], CHANGED, *DOCUMENTS[21:]])
        assert (again["added"], again["replaced"], again["unchanged"]) == (0, 0, len(DOCUMENTS))
    disturbed = contents(folder)
    assert disturbed.keys() == undisturbed.keys()
    for point, (payload, vectors) in undisturbed.items():
        assert disturbed[point][0] == payload
        assert disturbed[point][1]["bm25"] == vectors["bm25"]
        assert disturbed[point][1][MINILM] == pytest.approx(vectors[MINILM], abs=1e-4)


async def test_one_process_holds_the_folder(tmp_path: Path) -> None:
    second = await asyncio.to_thread(Process, tmp_path)
    try:
        async with httpx.AsyncClient(base_url=second.url, timeout=60, trust_env=False) as client:
            async with running(settings(tmp_path)) as first:
                await ingested(first, DOCUMENTS[:1])
                reply = await client.get("/collections")
                assert reply.status_code == 503
                assert reply.headers["content-type"] == "application/problem+json"
                assert "CRAGMESH_QDRANT_PATH" in reply.json()["detail"]
            assert (await client.get("/collections")).json()["collections"][0]["documents"] == 1
    finally:
        await asyncio.to_thread(second.end, signal.SIGTERM)
