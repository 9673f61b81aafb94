"""How firmly a generator must lean to yes or no is fitted by itself, beside what else a confidence has."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lab.evaluator.store import Prediction, RunFolder, RunInfo
from services.cli.main import app
from services.gateway.confidence import LEANING, Confidence

pytestmark = pytest.mark.usefixtures("few_folds")
OTHERS = {
    "answer": {"names": [], "means": [], "scales": [], "weights": [], "intercept": 0.5, "threshold": 0.4},
    "fitted_on": "9 answers",
}


def leaning_run(folder: Path, answers: int) -> Path:
    """Answers of yes, right as often as the generator leans firmly."""
    run = RunFolder(folder)
    run.begin(RunInfo(settings={}, mesh={"answers_by": "fake"}, finished=True))
    chance = np.random.default_rng(4)
    lines = [
        Prediction(
            id=f"q{at}",
            query="is it so?",
            gold=("yes" if chance.random() < firm else "no",),
            label_kind="answer",
            kind="answer",
            prediction="yes",
            signals={"leans": 0.5, "leans_one_way": 3 * firm},
        )
        for at, firm in enumerate(chance.random(answers))
    ]
    run.predictions_file.write_text("".join(line.model_dump_json() + "\n" for line in lines))
    return folder


def calibrate(run: Path, file: Path, code: int = 0) -> str:
    words = ["calibrate", str(run), "--out", str(file)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result.output


def test_the_head_of_a_yes_or_no_stands_beside_the_others(tmp_path: Path) -> None:
    file = tmp_path / "fake.json"
    file.write_text(json.dumps(OTHERS))
    for _ in range(2):
        calibrate(leaning_run(tmp_path / "run", 120), file)
        fitted = Confidence.model_validate_json(file.read_bytes())
        assert fitted.whether is not None
        assert set(fitted.whether.names) <= LEANING
        sure, unsure = ({"leans": 0.5, "leans_one_way": firm} for firm in (2.8, 0.2))
        assert fitted.whether.probability(unsure) < 0.5 < fitted.whether.probability(sure)
        assert fitted.answer.intercept == 0.5
        assert fitted.fitted_on == "9 answers; yes or no on 120 answers"


def test_a_few_are_too_few(tmp_path: Path) -> None:
    file = tmp_path / "fake.json"
    file.write_text(json.dumps(OTHERS))
    assert "too few" in calibrate(leaning_run(tmp_path / "run", 20), file, code=1)
    assert json.loads(file.read_bytes()) == OTHERS
