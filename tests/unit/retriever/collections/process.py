"""A retriever as a process of its own, to be asked, measured or killed."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx

from tests.ports import free_port

START_S = 300


class Retriever:
    """A retriever that is ready; `settings` are variables of its environment, without `CRAGMESH_`."""

    def __init__(self, **settings: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        own = {f"CRAGMESH_{name}": value for name, value in settings.items()}
        own |= {"CRAGMESH_RETRIEVER_PORT": str(port), "GOMP_SPINCOUNT": "1000", "HF_HUB_OFFLINE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "services.retriever"],
            env=os.environ | own,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + START_S
        with httpx.Client(base_url=self.url, trust_env=False) as client:
            while time.monotonic() < until and self._process.poll() is None:
                with contextlib.suppress(httpx.HTTPError):
                    if client.get("/readyz").is_success:
                        return
                time.sleep(0.1)
        self.end(signal.SIGKILL)
        raise AssertionError("the retriever did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGTERM)

    def end(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        self._process.wait(30)

    def peak_mib(self) -> int:
        """Peak resident memory of the service, its page workers included."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[3]) == self._process.pid:
                    match = re.search(r"VmHWM:\s+(\d+)", (stat.parent / "status").read_text())
                    total += int(match[1]) // 1024 if match else 0
        return total


def written(folder: Path) -> int:
    """How many points are on disk."""
    for path in folder.rglob("storage.sqlite"):
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0)) as file,
        ):
            return int(file.execute("SELECT count(*) FROM points").fetchone()[0])
    return 0
