"""Without `lab`, as in a service's image, the commands that need it say so and the others run."""

import sys

import pytest
from typer.testing import CliRunner

from services.cli.main import app


@pytest.fixture(autouse=True)
def without_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lab", None)


@pytest.mark.parametrize(
    "command",
    [
        ["eval", "check", "questions.jsonl"],
        ["eval", "report", "run"],
        ["classifier", "train"],
        ["train", "labels", "run", "--out", "labels.jsonl"],
    ],
)
def test_what_needs_lab_refuses_in_words(command: list[str]) -> None:
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert f"`cragmesh {command[0]}` measures or teaches" in " ".join(result.stderr.split())
    assert "cragmesh/evaluator" in result.stderr
    assert not isinstance(result.exception, ModuleNotFoundError)


def test_what_needs_none_of_it_runs() -> None:
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0
