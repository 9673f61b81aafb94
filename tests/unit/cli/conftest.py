"""Small services that behave well or badly, as processes, and a retriever that is none."""

import asyncio
import hashlib
import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from pydantic import BaseModel

from proto.collections import MEDIA_TYPES, CollectionInfo, DocumentInfo, Documents, IngestResponse, MoveResponse
from services.cli import index, processes, supervisor
from services.cli.collections import CollectionClient
from services.cli.services import Launch, Service
from services.cli.supervisor import State, Supervisor
from tests.ports import free_port

FAKE = """
import http.server, os, signal, sys, threading, time

port, behaviour = int(sys.argv[1]), sys.argv[2:]
print("fake service begins", flush=True)
if "dies" in behaviour:
    print("no such model", file=sys.stderr, flush=True)
    sys.exit(7)
if "ignores-sigterm" in behaviour:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "forks" in behaviour and os.fork() == 0:
    time.sleep(60)
ready_at = time.monotonic() + (0 if "at-once" in behaviour else 60 if "never-ready" in behaviour else 0.1)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = time.monotonic() >= ready_at
        body = b'{"ready": %s, "service": "fake", "model": "tiny", "device": "cpu"}' % (b"true" if ready else b"false")
        self.send_response(200 if ready else 503)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""

Fake = Callable[..., Service]


class Mesh:
    """A supervisor of fake services, and what it has told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes: list[tuple[str, State]] = []
        self._news = asyncio.Event()
        self.supervisor = self.of()

    def of(self, *services: Service, start_timeout_s: float = 60.0) -> Supervisor:
        self.supervisor = Supervisor(
            services,
            self.folder / "run",
            cwd=self.folder,
            start_timeout_s=start_timeout_s,
            stop_timeout_s=0.5,
            on_change=self._changed,
        )
        return self.supervisor

    async def happened(self, name: str, state: State) -> None:
        """Wait for a change that is still to come."""
        while (name, state) not in self.changes:
            self._news.clear()
            await self._news.wait()

    def _changed(self, name: str, state: State) -> None:
        self.changes.append((name, state))
        self._news.set()

    def pid_file(self, name: str) -> Path:
        return self.folder / "run" / f"{name}.json"


async def ended(pid: int) -> None:
    """Wait for the end of a process that was killed: on a busy machine it takes its time."""
    async with asyncio.timeout(240):
        while processes.find(pid):  # noqa: ASYNC110 - other processes send no events
            await asyncio.sleep(0.01)


@pytest.fixture
async def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mesh]:
    monkeypatch.setattr(supervisor, "POLL_S", 0.02)
    mesh = Mesh(tmp_path)
    yield mesh
    await mesh.supervisor.down()


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    script = tmp_path / "fake.py"
    script.write_text(FAKE)

    def make(name: str, *behaviour: str, after: tuple[str, ...] = (), port: int | None = None) -> Service:
        port = port or free_port()
        launch = Launch((sys.executable, "-I", "-S", str(script), str(port), *behaviour))
        return Service(name, f"http://127.0.0.1:{port}", lambda: launch, after=after)

    return make


INFO = CollectionInfo(name="corpus", encoders=("tiny",), chunked=True, documents=0, points=0, backend="local")


class Retriever:
    """The documents of one collection, without their passages.

    Attributes:
        answers: asked first; None leaves it to the rest.
        created, batches: bodies of the requests that make the collection, and those that write texts into it.
        broken: a file of this content cannot be read.
    """

    def __init__(self) -> None:
        self.answers: Callable[[httpx.Request], httpx.Response | None] = lambda _: None
        self.created: list[dict[str, Any]] = []
        self.batches: list[list[dict[str, Any]]] = []
        self.documents: dict[str, DocumentInfo] = {}
        self.failed: dict[str, DocumentInfo] = {}
        self.calls: list[str] = []
        self.broken = b"broken"

    def connect(self, _: str = "") -> CollectionClient:
        return CollectionClient("http://retriever", transport=httpx.MockTransport(self.handle))

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [document for batch in self.batches for document in batch]

    def handle(self, request: httpx.Request) -> httpx.Response:
        if (answer := self.answers(request)) is not None:
            return answer
        path = re.sub(r"^/collections/\w+", "", urlsplit(str(request.url)).path)
        query = {name: values[0] for name, values in parse_qs(request.url.query.decode()).items()}
        self.calls.append(f"{request.method} {path.partition('/documents/')[0]}")
        id = unquote(path.removeprefix("/documents/"))
        match request.method, path:
            case "PUT", "":
                self.created.append(json.loads(request.content))
                return sent(INFO, 201)
            case "GET", "/documents":
                # Two a page, so that a list of three has a second one.
                ids = sorted(self.documents)
                start = int(query.get("after") or 0)
                page = tuple(self.documents[one] for one in ids[start : start + 2])
                return sent(Documents(documents=page, next=str(start + 2) if start + 2 < len(ids) else ""))
            case "POST", "/documents":
                self.batches.append(json.loads(request.content)["documents"])
                for one in self.batches[-1]:
                    self.keep(one["id"], one["text"].encode(), one["format"], one["url"])
                return sent(IngestResponse(added=len(self.batches[-1])))
            case "POST", "/moves":
                for one in json.loads(request.content)["moves"]:
                    old = self.documents.pop(one["id"])
                    self.documents[one["to"]] = old.model_copy(update={"id": one["to"], "url": one["url"]})
                return sent(MoveResponse(moved=1))
            case "PUT", _ if request.content == self.broken:
                digest = hashlib.sha256(request.content).hexdigest()
                self.failed[id] = DocumentInfo(id=id, digest=digest, state="failed", problem="damaged")
                return httpx.Response(422, json={"title": "Invalid request", "status": 422, "detail": "damaged"})
            case "PUT", _:
                return sent(self.keep(id, request.content, MEDIA_TYPES[request.headers["content-type"]], query["url"]))
            case "GET", _:
                info = self.failed.get(id) or self.documents.get(id)
                return sent(info) if info else httpx.Response(404, json={"title": "Not found", "status": 404})
            case "DELETE", _:
                del self.documents[id]
                return httpx.Response(204)
        raise AssertionError(path)

    def keep(self, id: str, content: bytes, kind: str, url: str) -> DocumentInfo:
        digest = hashlib.sha256(content).hexdigest()
        info = DocumentInfo(id=id, url=url, digest=digest, format=kind, passages=1, written=1, state="complete")
        self.documents[id] = info
        return info


def sent(message: BaseModel, status: int = 200) -> httpx.Response:
    return httpx.Response(status, content=message.model_dump_json())


@pytest.fixture
def retriever(monkeypatch: pytest.MonkeyPatch) -> Retriever:
    """What commands find in the retriever's place."""
    retriever = Retriever()
    monkeypatch.setattr(index, "connect", retriever.connect)
    return retriever
