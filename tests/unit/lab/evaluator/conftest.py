"""A gateway that answers by rote, over real HTTP, and runs made of lines."""

import hashlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from typer.testing import CliRunner

from lab.evaluator.store import Prediction, RunFolder, RunInfo
from services.cli.main import app

Body = dict[str, Any]
# Status, headers, JSON.
Reply = tuple[int, dict[str, str], Body]


def by_rote(body: Body) -> Reply:
    """An answer that depends on the question alone: a third right, a third "i don't know", a third wrong."""
    number = int(hashlib.sha256(body["query"].encode()).hexdigest(), 16)
    answer = (body["query"].split()[-1].rstrip("?"), "i don't know", "999999")[number % 3]
    return 200, {}, answered(answer, strategy=body["strategy"], confidence=round(number % 97 / 97, 3))


def answered(answer: str, **fields: Any) -> Body:
    return {
        "answer": answer,
        "kind": "unknown" if answer == "i don't know" else "answer",
        "confidence": 0.5,
        "source": "web",
        "citations": [{"page": 0, "text": f"it is {answer}", "score": 0.7}, {"page": 1, "text": "no", "score": 0.2}],
        "timings": {"generate": {"elapsed_ms": 12.5}},
        "usage": {"llm_calls": 1, "prompt_tokens": 100, "completion_tokens": 5},
        "strategy": "rote",
    } | fields


class FakeGateway:
    """Counts what it is asked; `reply` may be replaced, `seconds` is how long an answer takes."""

    def __init__(self) -> None:
        self.reply: Callable[[Body], Reply] = by_rote
        self.seconds = 0.0
        self.parts: dict[str, Body] = {}
        self.asked: Counter[str] = Counter()
        self.bodies: list[Body] = []
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/strategies":
                    rote = {"name": "rote", "summary": "-", "default": True, "parts": gateway.parts}
                    self._send((200, {}, {"strategies": [rote]}))
                else:
                    self._send((200, {}, {"ready": True, "service": "gateway"}))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                gateway.asked[body["query"]] += 1
                gateway.bodies.append(body)
                time.sleep(gateway.seconds)
                self._send(gateway.reply(body))

            def _send(self, reply: Reply) -> None:
                status, headers, content = reply
                data = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    # A killed caller says no goodbye.
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def environment(url: str) -> dict[str, str]:
    """Of a command that asks this gateway, and has no setting of whoever runs the tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CRAGMESH_")}
    root = str(Path(__file__).parents[4])
    return kept | {"CRAGMESH_GATEWAY_URL": url, "PYTHONPATH": root, "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


def evaluate(folder: Path, url: str, *words: str, code: int = 0) -> str:
    """What `cragmesh eval` prints, run in this process as if typed in a folder; it ends without a traceback."""
    with chdir(folder), patch.dict(os.environ, environment(url), clear=True):
        result = CliRunner().invoke(app, ["eval", *words])
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.output


@pytest.fixture(scope="module")
def few_folds() -> Iterator[None]:
    """A fit regresses for each pair of folds and each strength."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr("lab.evaluator.calibrate.FOLDS", 3)
        patching.setattr("lab.evaluator.calibrate.STRENGTHS", np.array([0.01, 0.1, 1.0]))
        yield


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing them is what takes most of a small run; `test_report.py` has them drawn."""
    monkeypatch.setattr("lab.evaluator.report.pictures.in_themes", lambda *_: {})


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    gateway = FakeGateway()
    yield gateway
    gateway.stop()


def write_questions(path: Path, count: int, **fields: Any) -> Path:
    """A file of questions that `by_rote` answers; domains and types go round."""
    domains = ("finance", "movie", "open")
    lines = (
        {
            "id": f"q{index:04d}",
            "query": f"what is the code of depot {index}? it is {index * 7 + 1000}",
            "answer": str(index * 7 + 1000),
            "domain": domains[index % 3],
            "question_type": "simple" if index % 2 else "set",
            **fields,
        }
        for index in range(count)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def make_run(folder: Path, outcomes: list[tuple[str, float]], **fields: Any) -> RunFolder:
    """A finished run whose answers are right, wrong or missing as told, with these confidences."""
    run = RunFolder(folder)
    run.begin(RunInfo(settings={"strategy": "rote"}, command="cragmesh eval run", finished=True))
    said = {"right": "42", "wrong": "41", "missing": "i don't know"}
    lines = [
        Prediction(
            id=f"q{index:05d}",
            query=f"how many lamps has street {index}?",
            gold=("42",),
            label_kind="answer",
            prediction=said[outcome],
            kind="unknown" if outcome == "missing" else "answer",
            confidence=confidence,
            strategy="rote",
            seconds=1.5,
            **fields,
        )
        for index, (outcome, confidence) in enumerate(outcomes)
    ]
    run.predictions_file.write_text("".join(line.model_dump_json(exclude_defaults=True) + "\n" for line in lines))
    return run
