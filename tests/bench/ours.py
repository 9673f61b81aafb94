"""Our retriever as peers of the bench: in its process, and as a process of its own behind HTTP."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from proto.retrieve import Page, RetrieveRequest, RetrieveResponse
from services.retriever.engine import Engine
from services.retriever.settings import RetrieverSettings
from tests.ports import free_port

# The harness fills contexts of up to 4,000 tokens from the ranking.
TOP_N = 40
# Every question's pages are new, so that the work is measured and not the cache.
UNCACHED = {"page_cache_mib": 0}


def request(query: str, pages: Sequence[str], snippets: Sequence[str]) -> RetrieveRequest:
    contents = tuple(Page(html=html, snippet=snippet) for html, snippet in zip(pages, snippets, strict=True))
    return RetrieveRequest(query=query, pages=contents, recall_k=200, top_n=TOP_N)


class LocalPeer:
    """The service's own code, called in this process."""

    name, k = "ours", 10

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = contextlib.AsyncExitStack()
        engine = Engine(RetrieverSettings.model_validate(UNCACHED))
        self._engine = self._loop.run_until_complete(self._stack.enter_async_context(engine.running()))
        self._pages: tuple[Sequence[str], Sequence[str]] = ((), ())
        self.chunks = 0

    def extract(self, pages: Sequence[str], snippets: Sequence[str]) -> Any:
        self._pages = (pages, snippets)
        return None

    def chunk(self, _: Any) -> int:
        return self.chunks

    def search(self, query: str) -> list[str]:
        response = self._retrieve(request(query, *self._pages))
        self.chunks = response.chunks
        return [passage.text for passage in response.passages]

    def _retrieve(self, message: RetrieveRequest) -> RetrieveResponse:
        return self._loop.run_until_complete(self._engine.retrieve(message))


class HttpPeer(LocalPeer):
    """A retriever process, asked through its HTTP."""

    name = "ours-http"

    def __init__(self) -> None:
        port = free_port()
        env = os.environ | {
            "CRAGMESH_RETRIEVER_PORT": str(port),
            "CRAGMESH_PAGE_CACHE_MIB": os.environ.get("CACHE", "0"),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "services.retriever"],
            env=env | {"GOMP_SPINCOUNT": "1000", "HF_HUB_OFFLINE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)
        self._pages = ((), ())
        self.chunks = 0
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError):
                if self._http.get("/readyz").is_success:
                    return
            time.sleep(0.2)
        raise SystemExit("the retriever did not become ready")

    def _retrieve(self, message: RetrieveRequest) -> RetrieveResponse:
        content = message.model_dump_json().encode()
        reply = self._http.post("/retrieve", content=content, headers={"content-type": "application/json"})
        return RetrieveResponse.model_validate_json(reply.raise_for_status().content)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 15)
        self._process.wait(20)

    def peak_mib(self) -> int:
        """Peak resident memory of the service, its page workers included."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[3]) == self._process.pid:
                    match = re.search(r"VmHWM:\s+(\d+)", (stat.parent / "status").read_text())
                    total += int(match[1]) // 1024 if match else 0
        return total
