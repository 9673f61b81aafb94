"""The report of a load run: figures, pictures, cost."""

from pathlib import Path

from tests.load import report
from tests.load.tally import Tally

ANSWER = {
    "kind": "answer",
    "degraded": [],
    "timings": {"generate": {"start_ms": 0, "elapsed_ms": 900}},
    "usage": {"prompt_tokens": 90, "completion_tokens": 10},
}


def tally(count: int) -> Tally:
    """A question a second: answered, of which the last is late; then an abstention and a refusal."""
    seconds = iter(range(count + 2))
    made = Tally(30.0, clock=lambda: float(next(seconds)))
    for number in range(count):
        made.answered(31.0 if number == count - 1 else 1.0, ANSWER)
    made.answered(1.0, ANSWER | {"kind": "unknown"})
    made.refused(429)
    made.replied("GET /collections/load/documents", 0.2)
    return made


def test_goodput_is_what_was_answered_in_time() -> None:
    summary = tally(11).summary()
    assert (summary["goodput_per_s"], summary["tokens_per_question"]) == (10 / 12, 100)
    assert summary["share_in_budget"] == 12 / 13


def test_the_report_tells_stages_routes_and_what_a_thousand_cost(tmp_path: Path) -> None:
    written = report.write("steady", tally(11).record(), tmp_path, command="make load", hour_price=3.0)
    text = written.read_text()
    assert "| generate | 12 | 0.900 | 0.900 | 0.900 |" in text
    assert "| GET /collections/load/documents | 1 | 0.200 |" in text
    assert "| cost_per_thousand | 1 |" in text
    for name in ("steady_stages.png", "steady_outcomes.png"):
        assert f"({name})" in text
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_a_run_without_an_answer_has_a_report_too(tmp_path: Path) -> None:
    assert report.write("steady", Tally(30.0).record(), tmp_path, command="make load", hour_price=1.0).exists()
