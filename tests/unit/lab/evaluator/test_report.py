"""Reports and tables: complete, harmless, the same every time."""

import json
from pathlib import Path

import pytest

from lab.evaluator import runs
from lab.evaluator.errors import BadRun
from lab.evaluator.judging import agreement
from lab.evaluator.report import files, tables
from lab.evaluator.report.markdown import code, escape
from lab.evaluator.report.summary import Summary, summarize
from lab.evaluator.store import RunFolder
from tests.unit.lab.evaluator.conftest import make_run

OUTCOMES = [("right", 0.9), ("right", 0.7), ("wrong", 0.6), ("missing", 0.0), ("wrong", 0.2)] * 12
HOSTILE = "</script><script>alert(1)</script>|`*"


def summary_of(run: RunFolder) -> Summary:
    contents = runs.read(run)
    verdicts = runs.verdicts(run, contents.predictions, "rules")
    agreements = {"llm": agreement(verdicts, verdicts)}
    return summarize(run.name, contents.info, contents.predictions, verdicts, judge="rules", agreements=agreements)


def judged(run: RunFolder) -> files.Judged:
    predictions = runs.read(run).predictions
    verdicts = runs.verdicts(run, predictions, "rules")
    return files.Judged(run.name, {line.id: line for line in predictions}, verdicts)


def test_the_same_run_makes_the_same_files_with_all_their_parts_and_no_question(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run",
        OUTCOMES,
        domain=HOSTILE,
        degraded=("page:1=timeout", "page:4=timeout"),
        timings={"generate": 20.0},
        llm_calls=2,
        prompt_tokens=300,
    )
    reports = []
    for name in ("one", "report"):
        files.write_run(summary_of(run), tmp_path / name)
        reports.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    report, again = reports
    assert report == again
    pictures = {
        f"{name}{dark}.png"
        for name in ("outcomes", "risk-coverage", "reliability", "latency")
        for dark in ("", "-dark")
    }
    assert set(report) == pictures | {"report.md", "summary.json"}
    assert all(report[name].startswith(b"\x89PNG") for name in pictures)
    text, numbers = report["report.md"].decode(), json.loads(report["summary.json"])
    for part in ("+0.000 [", "40.0% [", "inside 30 s", "page=timeout", "Cohen's kappa"):
        assert part in text
    assert "lamps" not in text
    assert "lamps" not in json.dumps(numbers)
    assert numbers["overall"]["right"] == 24
    assert numbers["usage"]["llm_calls"] == 2
    assert numbers["latency"]["inside_limit"] == 1


def test_markdown_shows_text_as_it_is() -> None:
    assert escape("a|b\n*c* <i>") == r"a\|b \*c\* \<i\>"
    assert escape("[a](b) [+1, +2]") == r"[a\](b) [+1, +2]"
    assert code("a `b` c") == "`` a `b` c ``"
    assert code("a|b") == "`a|b`"


def test_a_run_of_abstentions_has_a_report(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [("missing", 0.0)] * 3)
    files.write_run(summary_of(run), tmp_path / "report")
    assert not (tmp_path / "report" / "reliability.png").exists()
    assert "+0.000" in (tmp_path / "report" / "report.md").read_text()


def test_a_comparison_lists_what_each_got_right_alone(tmp_path: Path) -> None:
    first = make_run(tmp_path / "one", [("right", 0.9), ("wrong", 0.1), ("right", 0.8), ("missing", 0.0)] * 10)
    second = make_run(tmp_path / "two", [("right", 0.9), ("right", 0.1), ("wrong", 0.8), ("right", 0.5)] * 10)
    one, two = judged(first), judged(second)
    comparison = files.compare([one, two])
    difference = comparison.differences[0][2]
    assert (difference.both, difference.only_first, difference.only_second) == (10, 10, 20)
    # Right less wrong: 1/4 against 2/4.
    assert difference.score.value == pytest.approx(0.25)
    assert difference.score.low < 0.25 < difference.score.high
    assert comparison.only_right(one, two) == [f"q{index:05d}" for index in range(2, 40, 4)]
    for texts in (False, True):
        files.write_comparison(comparison, tmp_path / f"c{texts}", command="cragmesh eval compare", texts=texts)
        content = (tmp_path / f"c{texts}" / "compare.md").read_text()
        assert "q00002" in content
        assert ("lamps" in content) is texts
    row = tables.differences("one", "two", difference)
    assert row[0] == "two less one"


def test_runs_of_other_questions_are_not_compared(tmp_path: Path) -> None:
    first = judged(make_run(tmp_path / "one", [("right", 0.9)]))
    with pytest.raises(BadRun, match="no question in common"):
        files.compare([first, files.Judged("two", {}, {})])
    other = {name: line.model_copy(update={"gold": ("43",)}) for name, line in first.predictions.items()}
    with pytest.raises(BadRun, match="other gold answers for 1 questions"):
        files.compare([first, files.Judged("two", other, first.judgements)])
