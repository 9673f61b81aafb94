"""A load run's exit code: what a release must hold."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.load import run as load
from tests.unit.lab.evaluator.conftest import FakeGateway

ANSWER = {"degraded": [], "timings": {"answer": {"start_ms": 0, "elapsed_ms": 0}}}


@pytest.fixture
def host() -> Iterator[str]:
    """A gateway that answers half of the time, and says 503 else."""
    gateway = FakeGateway()
    refusal = (503, {"content-type": "application/problem+json"}, {"title": "Unavailable"})
    gateway.reply = lambda _: (200, {}, ANSWER) if len(gateway.bodies) % 2 else refusal
    yield gateway.url
    gateway.stop()


@pytest.mark.slow
def test_a_run_fails_for_the_overhead_of_one_alone_and_for_no_5xx_that_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    statuses: list[int] = []

    async def ask(command: tuple[str, ...], _: Any) -> int:
        statuses.append((await asyncio.to_thread(subprocess.run, command, cwd=load.ROOT, check=False)).returncode)
        return statuses[-1]

    limits = ("--alone", "1", "--max-overhead-ms", "0.0001", "--max-5xx", "1000000")
    monkeypatch.setattr(load, "mesh", lambda _: ([], {"gateway": host}))
    monkeypatch.setattr(load, "running", lambda *_: nullcontext())
    monkeypatch.setattr(load, "ask", ask)
    monkeypatch.setattr("tests.load.report.write", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", ["run", "--seconds", "1", "--users", "2", *limits, "--out", str(tmp_path)])
    assert asyncio.run(load.main()) == 1
    # The steady users are held to no overhead.
    assert statuses == [1, 0]
