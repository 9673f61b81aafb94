"""Scores and their intervals on synthetic runs whose truth is known."""

import numpy as np
import pytest

from lab.evaluator.score import Estimate, calibration_error, difference, reliability, risk_coverage, scores, separation

NAMES = np.array(["right", "missing", "wrong"])
RUNS = 400


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


def test_the_score_is_right_less_wrong() -> None:
    found = scores(["right"] * 5 + ["missing"] * 3 + ["wrong"] * 2)
    assert (found.questions, found.right, found.missing, found.wrong) == (10, 5, 3, 2)
    values = (found.score, found.accuracy, found.missing_rate, found.hallucination)
    assert [item.value for item in values] == pytest.approx([0.3, 0.5, 0.3, 0.2])
    assert all(item.low < item.value < item.high for item in values)


def test_the_same_run_has_the_same_interval() -> None:
    outcomes = ["right", "wrong", "missing"] * 20
    assert scores(outcomes) == scores(outcomes[::-1])


@pytest.mark.parametrize("shares", [(0.4, 0.3, 0.3), (0.2, 0.3, 0.5)])
def test_the_interval_covers_the_truth_as_often_as_it_says(shares: tuple[float, float, float]) -> None:
    dice = np.random.default_rng(11)
    truth = shares[0] - shares[2]
    covered = right = 0
    for run in range(RUNS):
        found = scores(list(dice.choice(NAMES, size=250, p=shares)), seed=run)
        covered += holds(found.score, truth)
        right += holds(found.accuracy, shares[0])
    assert 0.93 <= covered / RUNS <= 0.97
    assert 0.93 <= right / RUNS <= 0.97


def test_the_paired_interval_covers_the_truth_and_is_narrower() -> None:
    dice = np.random.default_rng(5)
    # Two runs that mostly agree: the second gets a tenth of the questions right that the first got wrong.
    joint = np.zeros((3, 3))
    joint[0, 0], joint[1, 1], joint[2, 2], joint[2, 0], joint[0, 2] = 0.35, 0.2, 0.3, 0.1, 0.05
    truth = 2 * (0.1 - 0.05)
    covered = 0
    for run in range(RUNS):
        cells = dice.choice(9, size=300, p=joint.reshape(9))
        first, second = list(NAMES[cells // 3]), list(NAMES[cells % 3])
        found = difference(first, second, seed=run)
        covered += holds(found.score, truth)
    assert 0.93 <= covered / RUNS <= 0.97
    apart = scores(first).score
    assert found.score.high - found.score.low < apart.high - apart.low
    assert found.only_second == sum(one != "right" == two for one, two in zip(first, second, strict=True))


def test_a_small_slice_without_an_outcome_leaves_it_possible() -> None:
    found = scores(["wrong"] * 6)
    assert found.score.value == -1 == found.score.low
    assert found.score.high > -1
    assert found.accuracy.low == 0 < found.accuracy.high < 0.5
    empty = scores([])
    assert (empty.score.value, empty.questions) == (0, 0)


def test_runs_over_other_questions_are_not_paired() -> None:
    with pytest.raises(ValueError, match="paired"):
        difference(["right"], ["right", "wrong"])


def test_risk_falls_with_coverage_when_confidence_tells() -> None:
    confidence = np.array([0.9, 0.8, 0.8, 0.3])
    right = np.array([True, True, False, False])
    curve = risk_coverage(confidence, right, questions=8)
    assert curve.threshold.tolist() == [0.9, 0.8, 0.3]
    assert curve.coverage.tolist() == [1 / 8, 3 / 8, 4 / 8]
    assert curve.risk.tolist() == pytest.approx([0, 1 / 3, 1 / 2])
    assert curve.score.tolist() == pytest.approx([1 / 8, 1 / 8, 0])
    assert curve.area == pytest.approx((0 + 2 / 3 + 1 / 2) / 4)
    assert separation(confidence, right) == pytest.approx((2 + 1 + 0.5) / 4)


def test_calibration_of_calibrated_answers_is_small() -> None:
    dice = np.random.default_rng(3)
    confidence = dice.random(20_000)
    right = dice.random(20_000) < confidence
    bins = reliability(confidence, right)
    assert len(bins) == 10
    assert sum(item.answers for item in bins) == 20_000
    assert calibration_error(bins) < 0.02
    assert calibration_error(reliability(np.full(100, 0.9), np.zeros(100, dtype=bool))) == pytest.approx(0.9)
    assert reliability(np.zeros(0), np.zeros(0, dtype=bool)) == []
    assert separation(np.zeros(0), np.zeros(0, dtype=bool)) == 0.5
