"""The batcher: batches by cost, drops the expired and the departed, isolates bad items, refuses when full."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from services.kit.batcher import FAILED_RUNS, Batcher, Runs
from services.kit.budget import Budget, current_budget
from services.kit.errors import DeadlineExceeded, Overloaded, Unavailable

pytestmark = pytest.mark.anyio


class Model:
    """Doubles numbers; the first batch waits for `gate`, so that a queue builds up behind it."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.called = threading.Event()
        self.batches: list[list[int]] = []

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.called.set()
        self.gate.wait(5)
        if 13 in items:
            raise ValueError("unlucky")
        return [2 * item for item in items]


def batcher(model: Model, *, max_batch: int = 100, max_queue: int = 1_000) -> Batcher[int, int]:
    return Batcher(model, cost=lambda item: item, max_batch_cost=max_batch, max_queue_cost=max_queue)


async def queued(target: Batcher[int, int], model: Model, items: Sequence[int]) -> list["asyncio.Task[int]"]:
    """Submit one item that occupies the model, then `items` behind it."""

    async def submit(item: int) -> int:
        return (await target.submit(item)).result

    tasks = [asyncio.create_task(submit(1))]
    await asyncio.to_thread(model.called.wait, 5)
    tasks += [asyncio.create_task(submit(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


async def test_what_waits_becomes_one_batch_up_to_the_cost_which_a_single_item_may_exceed() -> None:
    model = Model()
    async with batcher(model, max_batch=10).running() as target:
        tasks = await queued(target, model, [4, 5, 6, 2, 50])
        model.gate.set()
        assert [await task for task in tasks] == [2, 8, 10, 12, 4, 100]
    assert model.batches == [[1], [4, 5], [6, 2], [50]]


async def test_the_departed_and_the_expired_never_reach_the_model() -> None:
    model = Model()
    async with batcher(model).running() as target:
        tasks = await queued(target, model, [2, 3])
        tasks[1].cancel()
        token = current_budget.set(Budget(0.0))
        expired = asyncio.create_task(target.submit(4))
        current_budget.reset(token)
        await asyncio.sleep(0)
        model.gate.set()
        assert await tasks[2] == 6
        with pytest.raises(DeadlineExceeded):
            await expired
    assert model.batches == [[1], [3]]


async def test_one_bad_item_fails_alone() -> None:
    model = Model()
    async with batcher(model).running() as target:
        tasks = await queued(target, model, [2, 13, 3])
        model.gate.set()
        assert await tasks[1] == 4
        with pytest.raises(ValueError, match="unlucky"):
            await tasks[2]
        assert await tasks[3] == 6


async def test_a_full_queue_refuses() -> None:
    model = Model()
    async with batcher(model, max_queue=10).running() as target:
        tasks = await queued(target, model, [6])
        with pytest.raises(Overloaded):
            await target.submit(5)
        tasks[1].cancel()
        await asyncio.sleep(0)
        later = asyncio.create_task(target.submit(5))
        await asyncio.sleep(0)
        model.gate.set()
        assert (await later).result == 10


async def test_stopping_cancels_what_waits() -> None:
    model = Model()
    async with batcher(model).running() as target:
        tasks = await queued(target, model, [2])
        model.gate.set()
    await asyncio.wait(tasks, timeout=1)
    assert all(task.done() for task in tasks)


async def test_a_model_that_fails_time_after_time_is_in_trouble_until_a_run_succeeds() -> None:
    model = Model()
    model.gate.set()
    async with batcher(model).running() as target:
        for _ in range(FAILED_RUNS):
            assert target.trouble == ""
            with pytest.raises(ValueError, match="unlucky"):
                await target.submit(13)
        assert "runs of the model failed" in target.trouble
        await target.submit(2)
        assert target.trouble == ""


async def test_a_model_that_nobody_asks_for_its_trouble_is_offered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.kit.batcher.FAILED_S", 0.0)
    runs = Runs()
    for _ in range(FAILED_RUNS + 1):
        runs.failed(ValueError())
    assert runs.trouble == ""


async def test_bad_items_in_one_batch_are_each_counted_once_and_what_callers_do_is_not() -> None:
    model = Model()
    async with batcher(model).running() as target:
        tasks = await queued(target, model, [13, 13])
        model.gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert target.trouble == "", "the batch failed, and each of two items"
    runs = Runs()
    for _ in range(FAILED_RUNS):
        with pytest.raises(Overloaded), runs.counted():
            raise Overloaded("too many")
        with pytest.raises(DeadlineExceeded), runs.counted():
            raise DeadlineExceeded
    assert runs.trouble == ""


class Fatal(BaseException):
    """What no worker lives through."""


async def test_a_queue_that_nobody_serves_any_more_says_so_and_lets_nobody_wait() -> None:
    def run(_: Sequence[int]) -> list[int]:
        raise Fatal

    target = Batcher[int, int](run, cost=lambda item: item, max_batch_cost=1, max_queue_cost=10)
    async with target.running():
        assert target.trouble == ""
        with pytest.raises(asyncio.CancelledError):
            await target.submit(1)
        await asyncio.sleep(0)
        assert "has stopped" in target.trouble
        with pytest.raises(Unavailable):
            await target.submit(1)
