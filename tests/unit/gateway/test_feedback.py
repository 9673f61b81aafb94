"""Verdicts on answers: who may give one, how long it is kept, and that the evaluator takes it."""

import asyncio
import contextlib
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.evaluator.store import RunFolder
from proto.answer import AnswerRequest, AnswerResponse
from proto.feedback import FeedbackRequest, Verdict
from services.cli.calibrate import _judged
from services.cli.main import app
from services.gateway import feedback
from services.gateway.feedback import WAIT_S, Feedback
from services.kit.errors import NotFound, Unavailable
from tests.unit.conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
def time() -> Clock:
    return Clock()


@pytest.fixture
def kept(tmp_path: Path, time: Clock) -> Feedback:
    return Feedback(tmp_path / "feedback", 30, clock=time)


def answered(kept: Feedback, request_id: str, *, caller: str = "alice", kind: str = "answer") -> None:
    response = AnswerResponse.model_validate(
        {"answer": "Marta", "kind": kind, "confidence": 0.7, "source": "web", "strategy": "adaptive"}
        | {"request_id": request_id, "signals": {"logprob": -0.2}}
    )
    kept.remember(caller, AnswerRequest(query=f"who built {request_id}?"), response, "tiny+answer")


def verdict(request_id: str, said: Verdict = "right", right: str = "") -> FeedbackRequest:
    return FeedbackRequest(request_id=request_id, verdict=said, right_answer=right)


async def test_an_answer_is_judged_by_who_asked_and_while_it_waits(kept: Feedback, time: Clock, tmp_path: Path) -> None:
    answered(kept, "r1")
    for caller, request_id in (("bob", "r1"), ("", "r1"), ("alice", "r2")):
        with pytest.raises(NotFound):
            await kept.judge(caller, verdict(request_id))
    assert not (tmp_path / "feedback").exists(), "what nobody has judged is on no disk"
    await kept.judge("alice", verdict("chatcmpl-r1"))
    (file,) = (tmp_path / "feedback").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "alice" not in file.read_text()
    time.now += WAIT_S + 1
    with pytest.raises(NotFound):
        await kept.judge("alice", verdict("r1"))


async def test_no_more_wait_than_are_kept_in_mind(kept: Feedback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "WAITING", 2)
    for number in range(3):
        answered(kept, f"r{number}")
    with pytest.raises(NotFound):
        await kept.judge("alice", verdict("r0"))
    await kept.judge("alice", verdict("r2"))


async def test_without_a_folder_nothing_is_kept() -> None:
    off = Feedback(None, 30)
    answered(off, "r1")
    with pytest.raises(NotFound, match="CRAGMESH_FEEDBACK_DIR"):
        await off.judge("alice", verdict("r1"))
    await off.expire()


async def test_what_is_older_than_retention_is_removed(
    kept: Feedback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "feedback"
    folder.mkdir()
    today = datetime.now(UTC).date()
    for days in (0, 29, 31):
        (folder / f"{today - timedelta(days=days)}.host-1.jsonl").write_text("")
    (folder / "notes.txt").write_text("somebody else's")
    # Nobody can unlink a folder, and the rest is removed all the same.
    (folder / "2020-01-01.stuck.jsonl").mkdir()
    monkeypatch.setattr(feedback, "EXPIRE_S", 0.001)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(kept.expire(), 0.2)
    days_kept = {str(today), str(today - timedelta(days=29))}
    assert {path.name[:10] for path in folder.iterdir()} == {*days_kept, "notes.txt", "2020-01-01"}


async def test_a_folder_that_takes_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = Feedback(tmp_path / "file" / "feedback", 30)
    answered(kept, "r1")
    with pytest.raises(Unavailable):
        await kept.judge("alice", verdict("r1"))


async def test_the_evaluator_takes_what_people_said(kept: Feedback, tmp_path: Path) -> None:
    for name, kind in (("r1", "answer"), ("r2", "answer"), ("r3", "unknown"), ("r4", "answer")):
        answered(kept, name, kind=kind)
    await kept.judge("alice", verdict("r1", "wrong"))
    await kept.judge("alice", verdict("r1", "right"))
    await kept.judge("alice", verdict("r2", "wrong", "Pieter"))
    await kept.judge("alice", verdict("r3", "wrong", "Jan"))
    await kept.judge("alice", verdict("r4", "wrong"))
    run = tmp_path / "run"
    result = CliRunner().invoke(app, ["feedback", "export", str(tmp_path / "feedback"), "--out", str(run)])
    assert result.exit_code == 0, result.output
    outcomes = {line.id: judgement.outcome for line, judgement in _judged(run)}
    assert outcomes == {"r1": "right", "r2": "wrong", "r3": "missing", "r4": "wrong"}
    lines = {line.id: line for line in RunFolder(run).predictions()}
    assert [lines[name].gold for name in sorted(lines)] == [("Marta",), ("Pieter",), ("Jan",), ()]
    assert lines["r2"].signals == {"logprob": -0.2}
    assert RunFolder(run).info().mesh["generator"] == ["tiny+answer"]
    questions = [json.loads(line) for line in (run / "questions.jsonl").read_text().splitlines()]
    assert [one["answer"] for one in questions] == ["Marta", "Pieter", "Jan"]
    for to in ("ragas", "deepeval"):
        shown = CliRunner().invoke(app, ["eval", "export", str(run), "--to", to])
        assert shown.exit_code == 0, shown.output
        text = shown.output if to == "deepeval" else f"[{','.join(shown.output.splitlines())}]"
        found = json.loads(text)
        assert [one.get("reference", one.get("expected_output")) for one in found] == ["Marta", "Pieter", "Jan", ""]
        assert found[1][{"ragas": "user_input", "deepeval": "input"}[to]] == "who built r2?"


def test_a_wrong_setting_is_said_and_no_stack_trace() -> None:
    result = CliRunner().invoke(app, ["feedback", "export", "--out", "run"], env={"CRAGMESH_CAUTION": "bogus"})
    assert (result.exit_code, "CRAGMESH_CAUTION" in result.output) == (2, True)


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["feedback", "export", str(tmp_path), "--out", str(tmp_path / "run")])
    assert result.exit_code == 1
    assert "holds no verdicts" in " ".join(result.output.split())
