"""What counts as growing memory."""

import csv
from pathlib import Path

import pytest

from tests.load.memory import MIN_SAMPLES, MemoryLog


def log(*series: float) -> MemoryLog:
    kept = MemoryLog(dict)
    kept.samples = [(5.0 * number, {"retriever": mib}) for number, mib in enumerate(series)]
    return kept


def test_filling_a_cache_at_the_start_and_noise_are_no_growth() -> None:
    series = [300.0, 400.0, 500.0, 560.0, 600.0, 598.0, 603.0, 599.0, 604.0, 597.0, 601.0, 602.0]
    assert log(*series).growing() == {}


def test_steady_growth_is_seen_and_told() -> None:
    kept = log(*(500.0 + 10 * number for number in range(24)))
    assert kept.growing() == {"retriever": pytest.approx(120)}


def test_a_small_service_may_double_and_a_large_one_may_breathe() -> None:
    assert log(*[10.0] * 12, *[20.0] * 12).growing() == {}, "10 MiB are nothing"
    assert log(*[1_000.0] * 12, *[1_050.0] * 12).growing() == {}, "a twentieth is nothing"
    assert log(*[1_000.0] * 12, *[1_200.0] * 12).growing() == {"retriever": 200.0}


def test_too_short_a_run_says_nothing() -> None:
    assert log(*range(100, 100 + MIN_SAMPLES - 1)).growth_mib() == {}
    assert log().growing() == {}


def test_the_samples_are_a_table(tmp_path: Path) -> None:
    kept = log(1.0, 2.0)
    kept.samples[1][1]["kg"] = 7.0
    kept.write(tmp_path / "memory.csv")
    with (tmp_path / "memory.csv").open() as opened:
        assert list(csv.reader(opened)) == [
            ["seconds", "kg", "retriever"],
            ["0.0", "0.0", "1.0"],
            ["5.0", "7.0", "2.0"],
        ]
