"""The last lines of logs, and what is said where there are none."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.ending import PROBLEM
from services.cli.logs import LINE_BYTES, tail
from services.cli.main import app


def test_the_end_of_a_large_log_is_read_without_the_rest(tmp_path: Path) -> None:
    log = tmp_path / "kg.log"
    with log.open("wb") as file:
        file.truncate(8 * 2**30)
        file.seek(0, 2)
        file.write(b"\nfirst\nsecond \xc3\xa9\nthird \xff\n")
    assert tail(log, 2) == ("second é", "third \N{REPLACEMENT CHARACTER}")
    log.write_text("one\ntwo\n")
    assert tail(log, 5) == ("one", "two")
    log.write_text("x" * 3 * LINE_BYTES + "\nlast\n")
    assert tail(log, 1) == ("last",)
    assert tail(tmp_path / "none.log", 3) == ()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a service's log, which is not there yet."""
    monkeypatch.setenv("CRAGMESH_RUN_DIR", str(tmp_path))
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "kg.log"


def test_no_logs_are_said(log: Path) -> None:
    for arguments in ([], ["kg"]):
        result = CliRunner().invoke(app, ["logs", *arguments])
        assert (result.exit_code, result.stdout) == (0, "")
        assert f"no logs in {log.parent}" in result.stderr
    log.write_text("one\n")
    result = CliRunner().invoke(app, ["logs"])
    assert (result.stdout, result.stderr) == ("kg | one\n", "")


@pytest.mark.parametrize("reason", ["Is a directory", "Permission denied"])
def test_a_log_that_cannot_be_read_is_said(log: Path, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    if reason == "Is a directory":
        log.mkdir()
    else:

        def refuse(path: Path, *_: Any) -> Any:
            raise PermissionError(13, reason, str(path))

        # Root may read every file.
        monkeypatch.setattr(Path, "open", refuse)
    result = CliRunner().invoke(app, ["logs", "kg"])
    assert result.exit_code == PROBLEM
    assert isinstance(result.exception, SystemExit)
    assert reason in result.stderr
