"""The goldens' own tools: a clock that jumps, records that come back as they were, differences that one can read."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.goldens import evaluation, graph, virtual
from lab.goldens.records import differences, dump, load, plain
from services.kit.budget import Budget

LONG = "a line that strategies share\n" * 20


async def _waits(seconds: float) -> float:
    budget = Budget(2 * seconds)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    assert budget.left() == pytest.approx(seconds)
    return time.monotonic() - began


def test_virtual_time_passes_for_all_clocks_alike() -> None:
    assert virtual.run(_waits(5_000.0)) == pytest.approx(5_000.0)


def test_time_outs_come_in_virtual_time() -> None:
    async def late() -> None:
        async with asyncio.timeout(240):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        virtual.run(late())


def test_threads_are_run_at_once() -> None:
    async def threads() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(pow, number, 2) for number in range(3)))

    assert virtual.run(threads()) == [0, 1, 4]


def test_threads_that_were_there_before_keep_their_clock() -> None:
    with ThreadPoolExecutor(1) as pool:

        async def both() -> tuple[float, float]:
            return time.monotonic(), pool.submit(time.monotonic).result()

        began = time.monotonic()
        here, there = virtual.run(both())
        assert here == virtual.BEGIN_S
        assert began <= there <= time.monotonic()


def test_a_deadlock_is_an_error() -> None:
    with pytest.raises(virtual.Deadlock):
        virtual.run(asyncio.Event().wait())


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    records = {"one": {"texts": [LONG, LONG], "score": 0.123456789, "none": None}, "two": {"text": LONG, "mark": "=x"}}
    (tmp_path / "part.json").write_text(dump(records), encoding="utf-8")
    found = load(tmp_path / "part.json")
    assert found == plain(records)
    assert found["one"] == {"texts": [LONG, LONG], "score": 0.1235, "none": None}
    assert dump(records).count("a line that strategies share") == LONG.count("\n")


def test_a_difference_names_its_place() -> None:
    before = {"same": 1, "gone": 1, "other": {"body": {"text": "first\nsecond"}}}
    now = {"same": 1, "new": 1, "other": {"body": {"text": "first\nthird"}}}
    found = dict(differences(before, now))
    assert found.keys() == {"gone", "new", "other"}
    assert "-body.text: second" in found["other"]
    assert "+body.text: third" in found["other"]


def test_differences_of_the_evaluation_are_counts() -> None:
    before = {"a": {"domain": "movie", "status": "ok", "program": "1", "outcome": "1"}}
    now = {"a": {"domain": "movie", "status": "empty", "program": "2", "outcome": "2"}}
    assert [line.strip() for line in evaluation.describe(before, now)] == ["1 movie: another program, ok -> empty"]


def test_every_hole_of_a_question_is_filled() -> None:
    asked = list(graph.questions())
    assert len(set(asked)) == len(asked) > 200
    assert not [query for _, query in asked if "{" in query]
