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


def tally(seconds: float = 0.1, busy_ms: float = 95, *statuses: int) -> Tally:
    """Of one answer and some refusals."""
    made = Tally(30.0)
    made.answered(seconds, {"degraded": [], "timings": {"web": stage(0, busy_ms)}})
    for status in statuses:
        made.refused(status, own_form=status != 400)
    return made


@pytest.mark.parametrize(
    ("made", "limits", "said"),
    [
        (tally(0.1, 95, 429), Limits(overhead_ms=10), []),
        (tally(30.1, 0, 503), Limits(late=1, server_errors=1), []),
        (tally(30.1, 30_100), Limits(), ["1 answers came after the deadline"]),
        (tally(0.1, 95, 503), Limits(), ["1 replies were 5xx or none"]),
        (tally(0.1, 95, 0, 500), Limits(server_errors=1), ["2 replies were 5xx or none, and 1 may be"]),
        (tally(0.1, 95, 400), Limits(late=9, server_errors=9), ["1 questions were refused", "not in the form of"]),
        (tally(0.1, 90), Limits(overhead_ms=10), ["overhead was 10.0 ms"]),
        (Tally(30.0), Limits(), ["nobody was answered"]),
    ],
)
def test_what_a_run_does_not_hold_is_said(made: Tally, limits: Limits, said: list[str]) -> None:
    lines = made.broken(limits)
    assert len(lines) == len(said)
    assert all(words in line for words, line in zip(said, lines, strict=True))


def test_a_summary_has_shares_of_what_was_asked_and_of_what_was_answered() -> None:
    made = tally(0.5, 495, 429, 500)
    made.answered(30.1, {"degraded": [{"stage": "x"}], "timings": {}})
    assert made.failed == 2
    figures = made.summary()
    shares = {name: figures[f"share_{name}"] for name in ("in_budget", "429", "5xx", "degraded")}
    assert shares == {"in_budget": 0.5, "429": 0.25, "5xx": 0.25, "degraded": 0.5}
    assert tally(0.5, 495).summary()["overhead_p50_ms"] == pytest.approx(5)


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([3, 1, 2, 4], 0.5) == 3
    assert percentile([1, 2], 0.99) == 2
