"""A retriever as a process, to be killed."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.ports import free_port


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
        with httpx.Client(base_url=self.url, trust_env=False) as client:
            while time.monotonic() < until and self._process.poll() is None:
                with contextlib.suppress(httpx.HTTPError):
                    if client.get("/readyz").is_success:
                        return
                time.sleep(0.1)
        self.end(signal.SIGKILL)
        raise AssertionError("the retriever did not start")

    def end(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        self._process.wait(30)


def written(folder: Path) -> int:
    """How many points are on disk."""
    for path in folder.rglob("storage.sqlite"):
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0)) as file,
        ):
            return int(file.execute("SELECT count(*) FROM points").fetchone()[0])
    return 0
