"""The saturation run's arithmetic and its files."""

import csv
from pathlib import Path

import pytest

from tests.load.saturation import Step, broken, saturation, verdict, write
from tests.load.tally import Tally

SUMMARY = {"answered": 30, "asked": 40, "p50_s": 0.5, "p95_s": 1.25, "share_429": 0.25, "share_5xx": 0.0}


def step(peer: str, users: int, answered: int, **more: float) -> Step:
    return Step.read(peer, users, 20, {**SUMMARY, "answered": answered, "share_in_budget": 1.0, **more})


def test_a_step_is_read_from_what_a_run_leaves() -> None:
    read = Step.read("mesh", 4, 20, {**SUMMARY, "share_in_budget": 0.9})
    assert (read.answers_a_second, read.p50_s, read.p95_s, read.late) == (1.5, 0.5, 1.25, 3)
    assert Step.read("mesh", 1, 20, Tally(30.0).summary()).answers_a_second == 0, "a run that nobody answered"


def test_saturation_is_the_best_step_and_not_the_last() -> None:
    steps = [step("mesh", 1, 40), step("haystack", 1, 8), step("mesh", 8, 30), step("haystack", 8, 10)]
    assert (saturation(steps, "mesh"), saturation(steps, "haystack"), saturation([], "mesh")) == (2.0, 0.5, 0.0)
    assert verdict(steps) == "the mesh saturates at 2 answers a second, the Haystack pipeline at 0.5: 4.0 times"
    assert verdict(steps[:1]) == "the mesh saturates at 2 answers a second"


def test_the_report_is_a_table(tmp_path: Path) -> None:
    write([step("mesh", 1, 40), step("haystack", 2, 1)], tmp_path)
    with (tmp_path / "saturation.csv").open() as opened:
        rows = list(csv.DictReader(opened))
    assert [(row["peer"], row["answers_a_second"]) for row in rows] == [("mesh", "2.0"), ("haystack", "0.05")]
    assert "| haystack | 2 |" in (tmp_path / "saturation.md").read_text()


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([step("mesh", 1, 60), step("haystack", 1, 20)], []),
        ([step("mesh", 1, 60)], []),
        ([step("mesh", 1, 58), step("haystack", 1, 20, share_in_budget=0.9)], ["less than 3 times"]),
        (
            [step("mesh", 1, 60, share_in_budget=0.9), step("mesh", 1, 60, share_5xx=0.1)],
            ["after the deadline", "5xx"],
        ),
        ([step("mesh", 1, 0)], ["answered nobody"]),
    ],
)
def test_saturation_must_be_three_times_the_peers(steps: list[Step], said: list[str]) -> None:
    lines = broken(steps, 3.0)
    assert len(lines) == len(said)
    assert all(word in line for word, line in zip(said, lines, strict=True))
