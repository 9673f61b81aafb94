"""Measures, on numbers that can be worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from lab.classifier.measure import picture, score

NAMES = ("a", "b")
PROBABILITIES = np.array([[0.95, 0.05], [0.95, 0.05], [0.4, 0.6], [0.35, 0.65]])


def test_scores_by_hand(tmp_path: Path) -> None:
    scores = score(["a", "b", "b", "b"], PROBABILITIES, NAMES)
    assert scores.accuracy == 0.75
    assert scores.majority == 0.75
    assert scores.f1 == pytest.approx({"a": 2 / 3, "b": 0.8})
    assert scores.macro_f1 == pytest.approx((2 / 3 + 0.8) / 2)
    assert (scores.coverage, scores.sure_accuracy) == (0.5, 0.5)
    # Two at 0.95 of which one is right, two at 0.6 and 0.65 which are right.
    assert scores.ece == pytest.approx(0.5 * 0.45 + 0.5 * 0.375)
    assert scores.matrix == ((1, 0), (1, 2))
    picture(scores, tmp_path / "p.png", "by hand")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_label_that_is_never_predicted_counts() -> None:
    scores = score(["a", "c"], np.array([[0.9, 0.1], [0.8, 0.2]]), NAMES)
    assert (scores.accuracy, scores.f1["c"]) == (0.5, 0)
