"""`cragmesh classifier`: what it prints, and how it ends when it cannot."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.classifier import app

runner = CliRunner()


def test_wrong_usage_ends_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRAGMESH_EVAL_DATA", raising=False)
    assert runner.invoke(app, ["evaluate"]).exit_code == 2
    missing = runner.invoke(app, ["train", "--data", str(tmp_path / "none.jsonl"), "--out", str(tmp_path)])
    assert missing.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_a_missing_model_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_CLASSIFIER_MODEL", str(tmp_path / "none.npz"))
    monkeypatch.setenv("CRAGMESH_EVAL_DATA", str(tmp_path))
    assert runner.invoke(app, ["evaluate", "--out", str(tmp_path)]).exit_code == 1
