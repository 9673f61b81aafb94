"""A Ray cluster of two nodes' processes on this machine, and a Qdrant server for it to write to."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import psutil
import ray

from tests.ports import free_ports
from tests.unit.retriever.collections.qdrant_server import QdrantServer

CPUS = 2
STORE_BYTES = 192 * 1024 * 1024
START_S, ATTEMPT_S = 400, 150
PORTS = ("dashboard-agent-listen-port", "dashboard-agent-grpc-port", "runtime-env-agent-port", "metrics-export-port")


class Cluster:
    """A head and a worker; `workers` finds what Ray has started on them."""

    def __init__(self, folder: Path) -> None:
        port, client = free_ports(2)
        self.address = f"{ray.util.get_node_ip_address()}:{port}"
        head = ("--head", f"--port={port}", f"--temp-dir={folder}", "--include-dashboard=false")
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._add(*head, f"--ray-client-server-port={client}")
        self._add(f"--address={self.address}")

    def _start(self, *options: str) -> "subprocess.Popen[bytes]":
        root = str(Path(__file__).parents[2])
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats"]
        sizes = [f"--num-cpus={CPUS}", f"--object-store-memory={STORE_BYTES}"]
        # A node waits 15 s for ports that it does not know, too short for its agents on a busy machine.
        ports = [f"--{name}={port}" for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)]
        return subprocess.Popen(  # noqa: S603 - our own words
            [*command, *sizes, *ports, *options],
            # Ray makes its workers nicer by 15, and beside other work they would starve.
            env=os.environ
            | {"PYTHONPATH": root, "RAY_agent_register_timeout_ms": "300000", "RAY_worker_niceness": "0"},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _add(self, *options: str) -> None:
        """Start a node; one whose agents are slow, as on a busy machine they are, Ray ends or leaves half started."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            self._nodes.append(self._start(*options))
            if self._have_joined(time.monotonic() + ATTEMPT_S):
                return
            _end(self._nodes.pop())
        raise AssertionError(f"node {len(self._nodes) + 1} did not start")

    def _have_joined(self, until: float) -> bool:
        while time.monotonic() < until and not _has_died(self._nodes[-1]):
            with contextlib.suppress(ConnectionError, RuntimeError):
                ray.init(self.address, ignore_reinit_error=True, log_to_driver=False, logging_level="error")
                if sum(node["Alive"] for node in ray.nodes()) == len(self._nodes):
                    return True
            time.sleep(1)
        return False

    def workers(self, name: str) -> list[psutil.Process]:
        """Processes of a stage's actors."""
        workers = []
        for node in self._nodes:
            for process in psutil.Process(node.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if process.cmdline()[:1] and f"({name})" in process.cmdline()[0]:
                        workers.append(process)
        return workers

    def stop(self) -> None:
        ray.shutdown()
        for node in self._nodes[::-1]:
            _end(node)


def _has_died(node: "subprocess.Popen[bytes]") -> bool:
    """Whether a node, or its raylet, has ended."""
    with contextlib.suppress(psutil.Error):
        return node.poll() is not None or any(
            child.name() == "raylet" and child.status() == psutil.STATUS_ZOMBIE
            for child in psutil.Process(node.pid).children()
        )
    return True


def _end(node: "subprocess.Popen[bytes]") -> None:
    children = []
    with contextlib.suppress(psutil.Error):
        children = psutil.Process(node.pid).children(recursive=True)
    node.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        node.wait(30)
    node.kill()
    node.wait()
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.kill()


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    # Short: Ray keeps sockets there, whose paths may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    nodes = Cluster(folder)
    try:
        yield nodes
    finally:
        nodes.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def qdrant(folder: Path) -> Iterator[tuple[QdrantServer, str]]:
    """Qdrant's own engine behind HTTP, and its root; it records only requests that change a collection."""
    server, lock = QdrantServer(folder), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"] or 0))
            with lock:
                request = httpx.Request(self.command, f"http://qdrant{self.path}", content=content)
                reply = server.transport.handle_request(request)
                server.requests[:] = [one for one in server.requests if one[0] == "PATCH"]
            self.send_response(reply.status_code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
        server.close()
