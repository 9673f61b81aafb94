"""The load runs' arithmetic."""

import pytest

from lab.capacity import percentile
from tests.load.tally import Limits, Tally, busy_ms


def stage(start: float, elapsed: float) -> dict[str, float]:
    return {"start_ms": start, "elapsed_ms": elapsed}


def test_overlapping_stages_are_counted_once() -> None:
    assert (
        busy_ms({"web": stage(0, 100), "classify": stage(10, 20), "kg": stage(50, 100), "answer": stage(200, 50)})
        == 200
    )


def test_a_run_fails_for_late_answers_and_server_errors_and_not_for_refusals() -> None:
    tally = Tally(30.0)
    tally.answered(0.5, {"degraded": [], "timings": {"web": stage(0, 495)}})
    tally.refused(429)
    assert (tally.failed, tally.broken(Limits())) == (0, [])
    assert tally.summary()["overhead_p50_ms"] == pytest.approx(5)
    assert tally.summary()["share_429"] == 0.5
    tally.answered(30.1, {"degraded": [{"stage": "x"}], "timings": {}})
    tally.refused(500, own_form=False)
    assert "1 refusals were not in the form of their door" in tally.broken(Limits())
    assert tally.failed == 2
    assert tally.summary()["share_in_budget"] == 0.5
    assert tally.summary()["share_5xx"] == 0.25


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([3, 1, 2, 4], 0.5) == 3
    assert percentile([1, 2], 0.99) == 2
