"""Small services that behave well or badly, as processes."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from services.cli import processes, supervisor
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
