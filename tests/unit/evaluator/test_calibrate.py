"""The fitted confidence: its thresholds earn what they can, and nothing is reported on what it was fitted on."""

from pathlib import Path

import numpy as np
import pytest

from services.evaluator.calibrate import Table, TooLittle, best_threshold, draw, fit, halves, probabilities, table
from services.evaluator.store import Judgement, Prediction


def made(answers: int = 400, *, seed: int = 0) -> Table:
    """Answers that are right as a logistic of one signal says; a second signal is noise, a third constant."""
    chance = np.random.default_rng(seed)
    signals = np.column_stack((chance.normal(size=answers), chance.normal(size=answers), np.ones(answers)))
    right = (chance.random(answers) < 1 / (1 + np.exp(-2 * signals[:, 0]))).astype(np.int64)
    return Table(("telling", "noise", "constant"), signals, right, tuple(f"q{i}" for i in range(answers)), answers)


def test_the_fit_finds_the_signal_that_tells() -> None:
    head, held_out = fit(made())
    weights = dict(zip(head["names"], head["weights"], strict=True))
    assert set(weights) == {"telling", "noise"}
    assert weights["telling"] > 1 > abs(weights["noise"])
    assert 0.35 < head["threshold"] < 0.65
    assert abs(float(held_out.mean()) - float(made().right.mean())) < 0.05


def test_abstaining_earns_on_questions_that_were_not_fitted_on() -> None:
    for half in halves(made(800)):
        assert half["score"] > half["without"] + 0.1


@pytest.mark.parametrize(
    ("probability", "right", "threshold"),
    [
        ([0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0], 0.5),
        ([0.9, 0.8, 0.7], [1, 1, 1], 0.35),
        ([0.9, 0.1], [0, 0], 1.0),
    ],
)
def test_the_threshold_earns_most(probability: list[float], right: list[int], threshold: float) -> None:
    assert best_threshold(np.array(probability), np.array(right)) == pytest.approx(threshold)


def test_probabilities_are_found_by_the_names_of_columns() -> None:
    data = made()
    head, _ = fit(data)
    turned = probabilities(head, data.signals[:, ::-1], data.names[::-1])
    assert np.allclose(turned, probabilities(head, data.signals, data.names))


def test_pictures_are_drawn(tmp_path: Path) -> None:
    data = made()
    draw(fit(data)[1], data.right, data.asked, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"calibration.png", "risk_coverage.png"}


def test_a_run_without_signals_is_refused() -> None:
    line = Prediction(id="q", query="q", gold=("a",), label_kind="answer", kind="answer")
    with pytest.raises(TooLittle, match="0 answers"):
        table([line], {"q": Judgement(id="q", outcome="right", by="rules")}, invalid=False)
