"""The health check of the images."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from services.kit import probe as module
from services.kit.probe import TIMEOUT_S, main, probe


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


@pytest.mark.parametrize(("arguments", "seconds"), [(["http://a/health"], TIMEOUT_S), (["http://a/health", "9"], 9.0)])
def test_a_check_says_how_long_its_service_may_take(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], seconds: float
) -> None:
    taken: list[float] = []

    def patient(url: str, timeout_s: float = TIMEOUT_S) -> str:
        taken.append(timeout_s)
        return ""

    monkeypatch.setattr(module, "probe", patient)
    monkeypatch.setattr("sys.argv", ["probe", *arguments])
    main()
    assert taken == [seconds]


@pytest.mark.parametrize("arguments", [[], ["a/health"], ["http://a", "soon"], ["http://a", "9", "9"]])
def test_what_is_no_check_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr("sys.argv", ["probe", *arguments])
    with pytest.raises(SystemExit, match="usage"):
        main()
