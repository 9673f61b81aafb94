"""What makes a load run fail: the promises that a release must hold, as exit codes."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.load import run as load
from tests.load.saturation import Step, broken
from tests.load.tally import Limits, Tally
from tests.unit.lab.evaluator.conftest import FakeGateway

ANSWER = {"degraded": [], "timings": {"answer": {"start_ms": 0, "elapsed_ms": 0}}}


def tally(seconds: float = 0.1, busy_ms: float = 95, *statuses: int) -> Tally:
    """Of one answer and some refusals."""
    made = Tally(30.0)
    made.answered(seconds, {"degraded": [], "timings": {"web": {"start_ms": 0, "elapsed_ms": busy_ms}}})
    for status in statuses:
        made.refused(status)
    return made


@pytest.mark.parametrize(
    ("made", "limits", "said"),
    [
        (tally(0.1, 95, 429), Limits(overhead_ms=10), ""),
        (tally(30.1, 0, 503), Limits(late=1, server_errors=1), ""),
        (tally(30.1, 30_100), Limits(), "1 answers came after the deadline"),
        (tally(0.1, 95, 503), Limits(), "1 replies were 5xx or none"),
        (tally(0.1, 95, 0, 500), Limits(server_errors=1), "2 replies were 5xx or none, and 1 may be"),
        (tally(0.1, 95, 422), Limits(late=9, server_errors=9), "1 questions were refused"),
        (tally(0.1, 90), Limits(overhead_ms=10), "overhead was 10.0 ms"),
        (Tally(30.0), Limits(), "nobody was answered"),
    ],
)
def test_what_a_run_does_not_hold_is_said(made: Tally, limits: Limits, said: str) -> None:
    lines = made.broken(limits)
    assert len(lines) == bool(said)
    assert said in "".join(lines)


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
