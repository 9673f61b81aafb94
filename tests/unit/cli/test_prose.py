"""`cragmesh train prose`: from a scripted server to the file, its report and the sample."""

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from lab.trainer.synthesise.reading.run import Files
from services.cli.ending import PROBLEM, UNREACHABLE
from services.cli.main import app
from services.kit import client
from tests.mesh.fakes import FakeGenerator
from tests.unit.lab.trainer.synthesise.reading.script import Script

URL = "http://generator"


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> FakeGenerator:
    generator = FakeGenerator(Script().reply)
    transport, make = httpx.ASGITransport(generator.app), client.http_client
    monkeypatch.setattr(client, "http_client", lambda: make(transport))
    return generator


def run(path: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["train", "prose", "--out", str(path), "--url", URL, "--briefs", "2", *arguments])


def test_it_writes_goes_on_and_reports(generator: FakeGenerator, tmp_path: Path) -> None:
    path, folder = tmp_path / "prose.jsonl", tmp_path / "sample"
    assert run(path, "--count", "8").exit_code == 0
    first = path.read_bytes()
    result = run(path, "--count", "30", "--sample", str(folder))
    assert result.exit_code == 0, result.output
    whole = path.read_bytes()
    assert whole.startswith(first)
    # What is complete needs no server.
    requests = len(generator.requests)
    assert run(path, "--count", "30").exit_code == 0
    assert (len(generator.requests), path.read_bytes()) == (requests, whole)
    items = [json.loads(line) for line in whole.splitlines()]
    assert len(items) >= 30
    assert {"q", "open", "cut"} <= {item["id"].rpartition("-")[2].rstrip("0123456789") for item in items}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest == json.loads((tmp_path / "prose.report.json").read_text())
    assert manifest["sha256"] == hashlib.sha256(whole).hexdigest()
    assert (manifest["lines"], manifest["models"]) == (len(items), ["fake"])
    # It goes into git: nothing of this machine is in it.
    assert manifest["command"] == "cragmesh train prose --seed 0 --count 30"
    assert (folder / "sample.jsonl").read_bytes() == whole


def test_a_server_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    make = client.http_client
    monkeypatch.setattr(client, "http_client", lambda: make(httpx.MockTransport(refuse)))
    result = run(tmp_path / "prose.jsonl")
    assert result.exit_code == UNREACHABLE
    assert "is the generator up?" in " ".join(result.output.split())


def test_a_file_that_another_process_writes_is_left_to_it(generator: FakeGenerator, tmp_path: Path) -> None:
    path = tmp_path / "new" / "prose.jsonl"
    with Files(path).alone():
        path.write_text('{"half a')
        result = run(path, "--count", "8")
        assert result.exit_code == PROBLEM
        assert "another process is writing it" in " ".join(result.output.split())
        assert path.read_text() == '{"half a'
    assert run(path, "--count", "8").exit_code == 0


def test_a_file_of_something_else_is_refused(generator: FakeGenerator, tmp_path: Path) -> None:
    path = tmp_path / "prose.jsonl"
    path.write_text('{"question": "who?"}\n')
    result = run(path)
    assert result.exit_code == PROBLEM
    assert "prose.jsonl:1" in "".join(result.output.split())
    assert path.read_text() == '{"question": "who?"}\n'
