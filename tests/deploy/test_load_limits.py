"""What makes a load run fail: the promises that a release must hold, as exit codes."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.load import run as load
from tests.load import saturation
from tests.load.saturation import Step, broken
from tests.load.tally import Limits, Tally

ANSWER = {"degraded": [], "timings": {"answer": {"start_ms": 0, "elapsed_ms": 0}}}


def tally(seconds: float = 0.1, busy_ms: float = 95, *statuses: int) -> Tally:
    """Of one answer and some refusals."""
    made = Tally(30.0)
    made.answered(seconds, {"degraded": [], "timings": {"web": {"start_ms": 0, "elapsed_ms": busy_ms}}})
    for status in statuses:
        made.refused(status)
    return made


def test_a_run_that_holds_everything_is_not_broken() -> None:
    assert tally(0.1, 95, 429).broken(Limits(overhead_ms=10)) == []


@pytest.mark.parametrize(
    ("made", "limits", "said"),
    [
        (tally(30.1, 30_100), Limits(), "1 answers came after the deadline"),
        (tally(0.1, 95, 503), Limits(), "1 replies were 5xx or none"),
        (tally(0.1, 95, 0, 500), Limits(server_errors=1), "2 replies were 5xx or none, and 1 may be"),
        (tally(0.1, 95, 422), Limits(late=9, server_errors=9), "1 questions were refused"),
        (tally(0.1, 90), Limits(overhead_ms=10), "overhead was 10.0 ms"),
        (Tally(30.0), Limits(), "nobody was answered"),
    ],
)
def test_what_a_run_does_not_hold_is_said(made: Tally, limits: Limits, said: str) -> None:
    (line,) = made.broken(limits)
    assert said in line


def test_what_may_be_is_no_failure() -> None:
    assert tally(30.1, 0, 503).broken(Limits(late=1, server_errors=1)) == []


def step(peer: str, answers: float, late: int = 0, share_5xx: float = 0) -> Step:
    return Step(peer, 1, 10, 10, answers, 0.1, 0.2, 0.0, share_5xx, late)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([step("mesh", 3), step("haystack", 1)], []),
        ([step("mesh", 3)], []),
        ([step("mesh", 2.9), step("haystack", 1, late=5)], ["less than 3 times"]),
        ([step("mesh", 3, late=1), step("mesh", 3, share_5xx=0.1)], ["after the deadline", "5xx"]),
        ([step("mesh", 0)], ["answered nobody"]),
    ],
)
def test_saturation_must_be_three_times_the_peers(steps: list[Step], said: list[str]) -> None:
    found = broken(steps, 3.0)
    assert len(found) == len(said)
    assert all(word in line for word, line in zip(said, found, strict=True))


@contextmanager
def gateway(status: int) -> Iterator[str]:
    """Answers, or with every other status than 200 does so only half of the time."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        asked = 0

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            Handler.asked += 1
            body = json.dumps(ANSWER).encode()
            said = 200 if Handler.asked % 2 else status
            self.send_response(said)
            self.send_header("content-type", "application/json" if said == 200 else "application/problem+json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "options", "failed"),
    [
        # The steady users are held to no overhead: of one alone it fails the whole run.
        (200, ("--alone", "1", "--max-overhead-ms", "0.0001"), True),
        (503, ("--alone", "0", "--max-5xx", "1000000"), False),
    ],
)
def test_a_run_ends_with_what_it_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, options: tuple[str, ...], failed: bool
) -> None:
    with gateway(status) as host:
        monkeypatch.setattr(load, "mesh", lambda _: ([], {"gateway": host}))
        monkeypatch.setattr(load, "memory_mib", lambda _: {"gateway": 1.0})
        monkeypatch.setattr(load, "running", lambda *_: nullcontext())
        monkeypatch.setattr(sys, "argv", ["run", "--seconds", "1", "--users", "2", *options, "--out", str(tmp_path)])
        assert asyncio.run(load.main()) == int(failed)
    assert (tmp_path / "alone_summary.json").exists() is failed
    assert (tmp_path / "steady_summary.json").exists()


@pytest.mark.parametrize(
    ("program", "limits"), [(load, ("--max-late", "--max-5xx", "--max-overhead-ms")), (saturation, ("--min-ratio",))]
)
def test_the_limits_are_documented(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: Any, limits: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", "--help"])
    with pytest.raises(SystemExit):
        asyncio.run(program.main())
    said = capsys.readouterr().out
    assert all(option in said for option in limits)
