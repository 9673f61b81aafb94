"""What the domain of places answers by rules: the goal of its issue, held for both halves of the questions."""

import asyncio
from pathlib import Path

import pytest

from tests.places.measure import measure
from tests.places.questions import Half

# Of sixty; those that the tables do not answer count where nothing is asserted.
GOAL = 48


@pytest.mark.parametrize("half", ["work", "held-out"])
def test_rules_answer_four_of_five_questions_and_nothing_wrong(places_folder: Path, half: Half) -> None:
    results = asyncio.run(measure(places_folder, half))
    assert [one.question.text for one in results if one.verdict == "wrong"] == []
    assert sum(one.right for one in results) >= GOAL


def test_the_folder_is_data_alone() -> None:
    folder = Path(__file__).with_name("domains")
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} <= {".yaml", ".jsonl", ".txt"}
