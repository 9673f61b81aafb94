"""The health check of the images."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from services.kit.probe import probe


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        ready = self.path == "/readyz"
        self.send_response(200 if ready else 503)
        self.end_headers()
        self.wfile.write(b"ready" if ready else b"no generator")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_ready_service_is_healthy_and_another_says_why_not(url: str) -> None:
    assert probe(f"{url}/readyz") == ""
    assert probe(f"{url}/healthz") == "HTTP 503: no generator"


def test_nobody_listening_is_not_healthy() -> None:
    assert "refused" in probe("http://127.0.0.1:9/readyz")
