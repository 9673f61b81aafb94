"""The ablation's report."""

import json
from pathlib import Path

import numpy as np
import pytest

from lab.evaluator.report.tables import Table
from lab.papers.measures import MAP, MEASURES
from lab.papers.report import Ablation, Step, tables, write


def step(name: str, value: float) -> Step:
    values = np.linspace(value - 0.1, value + 0.1, 21)
    return Step(name, dict.fromkeys(MEASURES, values))


@pytest.fixture
def ablation() -> Ablation:
    weak, strong = step("bm25, question", 0.3), step("mini, question", 0.4)
    return Ablation(
        "Papers",
        (("command", "cragmesh papers eval"),),
        (weak, strong),
        (step("bm25 alone", 0.3), step("+ mini", 0.45), step("+ weights", 0.5)),
        (step("question, all retrievers", 0.45),),
        (step("re-scoring", 0.42),),
        Table("Both ways", ("", MAP), (("one", "0.5"),)),
        Table("Weights", ("", "one"), (("bm25, question", "1"),)),
    )


def test_rows_tell_gain_and_loss_over_the_best_single_list(ablation: Ablation) -> None:
    assert ablation.best_single.name == "mini, question"
    assert ablation.gain.value == pytest.approx(0.25)
    rows = tables(ablation)[0].rows
    assert rows[1][0] == "+ mini"
    assert rows[1][1].startswith("0.4500 [")
    assert rows[1][-2].startswith("+0.1500")
    assert rows[0][-1] == "-25.0%"
    assert rows[2][-1] == "+25.0%"


def test_a_report_has_all_its_files(ablation: Ablation, tmp_path: Path) -> None:
    write(ablation, tmp_path / "report")
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {"report.md", "summary.json", "ablation.png", "ablation-dark.png"}
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert summary["best_single"] == "mini, question"
    assert summary["steps"]["+ weights"][MAP] == 0.5
    text = (tmp_path / "report" / "report.md").read_text()
    assert all(table.title in text for table in tables(ablation))
