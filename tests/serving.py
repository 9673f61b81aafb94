"""Applications behind real servers, each in a thread of this process, and programs beside it."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from services.kit.app import HTTP

START_S = 120
ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def process(*argv: str, env: Mapping[str, str] = os.environ) -> Iterator[subprocess.Popen[bytes]]:
    """A program in the checkout, without its standard output, until the context ends."""
    started = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)  # noqa: S603 - tests' own programs
    try:
        yield started
    finally:
        started.terminate()
        started.wait()


@contextmanager
def served(app: ASGIApp | Any, port: int = 0) -> Iterator[str]:
    """An application behind a real server in a thread of its own."""
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        started = threading.Event()

        class Announcing(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                started.set()

        server = Announcing(
            uvicorn.Config(app, http=HTTP, log_config=None, access_log=False, timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        until = time.monotonic() + START_S
        while not started.wait(0.1):
            if not thread.is_alive() or time.monotonic() > until:
                raise RuntimeError("an application did not start")
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
