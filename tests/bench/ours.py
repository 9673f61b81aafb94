"""Our retriever: in this process, and as a process of its own behind HTTP."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import httpx

from proto.retrieve import Page, RetrieveRequest, RetrieveResponse
from services.retriever.engine import Engine
from services.retriever.settings import RetrieverSettings
from tests.ports import free_port

# Contexts of up to 4,000 tokens are filled from the ranking.
TOP_N = 40

# Passages by rank for a question, the HTML of its pages and their snippets.
Search = Callable[[str, Sequence[str], Sequence[str]], list[str]]


def request(query: str, pages: Sequence[str], snippets: Sequence[str]) -> RetrieveRequest:
    contents = tuple(Page(html=html, snippet=snippet) for html, snippet in zip(pages, snippets, strict=True))
    return RetrieveRequest(query=query, pages=contents, recall_k=200, top_n=TOP_N)


@contextlib.contextmanager
def local() -> Iterator[Search]:
    """The service's own code in this process, which is to end afterwards."""
    loop = asyncio.new_event_loop()
    # Every question's pages are new, so that the work is measured and not the cache.
    engine = Engine(RetrieverSettings(page_cache_mib=0))
    running = engine.running()
    loop.run_until_complete(running.__aenter__())

    def search(query: str, pages: Sequence[str], snippets: Sequence[str]) -> list[str]:
        response = loop.run_until_complete(engine.retrieve(request(query, pages, snippets)))
        return [passage.text for passage in response.passages]

    yield search


class Retriever:
    """A retriever process; `settings` are variables of its environment, without `CRAGMESH_`."""

    def __init__(self, **settings: str) -> None:
        port = free_port()
        own = {f"CRAGMESH_{name}": value for name, value in settings.items()}
        own |= {"CRAGMESH_RETRIEVER_PORT": str(port), "GOMP_SPINCOUNT": "1000", "HF_HUB_OFFLINE": "1"}
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "services.retriever"],
            env=os.environ | own,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    def __enter__(self) -> Self:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError):
                if self._http.get("/readyz").is_success:
                    return self
            time.sleep(0.2)
        self.__exit__()
        raise SystemExit("the retriever did not become ready")

    def __exit__(self, *_: object) -> None:
        self._http.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(20)

    def search(self, query: str, pages: Sequence[str], snippets: Sequence[str]) -> list[str]:
        content = request(query, pages, snippets).model_dump_json().encode()
        reply = self._http.post("/retrieve", content=content, headers={"content-type": "application/json"})
        response = RetrieveResponse.model_validate_json(reply.raise_for_status().content)
        return [passage.text for passage in response.passages]

    def peak_mib(self) -> int:
        """Peak resident memory of the service, its page workers included."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[3]) == self._process.pid:
                    match = re.search(r"VmHWM:\s+(\d+)", (stat.parent / "status").read_text())
                    total += int(match[1]) // 1024 if match else 0
        return total
