"""Awaitables side by side: results in order, and one that fails ends the others and nothing else."""

import asyncio

import pytest

from services.kit.concurrency import all_of, both, prefer

pytestmark = pytest.mark.anyio


async def value_of(value: str) -> str:
    await asyncio.sleep(0)
    return value


class Slow:
    """Waits for ever, and counts how often it was ended."""

    ended = 0

    async def __call__(self) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        raise AssertionError


async def broken() -> str:
    await asyncio.sleep(0)
    raise LookupError("no such thing")


async def test_results_come_in_order() -> None:
    assert await all_of(value_of(value) for value in "abc") == ["a", "b", "c"]
    assert await both(value_of("a"), value_of("b")) == ("a", "b")


async def test_what_is_preferred_ends_the_other() -> None:
    slow = Slow()
    assert await prefer(value_of("a"), slow()) == "a"
    assert slow.ended == 1


async def test_the_first_error_comes_as_itself_and_ends_the_others() -> None:
    slow = Slow()
    for together in (all_of([slow(), broken()]), both(slow(), broken()), prefer(slow(), broken())):
        with pytest.raises(LookupError, match="no such thing"):
            await together
    assert slow.ended == 3


async def test_after_an_error_a_time_out_is_a_time_out() -> None:
    task = asyncio.current_task()
    assert task is not None
    cancellations = task.cancelling()
    with pytest.raises(LookupError):
        await all_of([Slow()(), broken()])
    assert task.cancelling() == cancellations
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()


async def test_who_waits_can_be_cancelled() -> None:
    slow = Slow()
    waiting = asyncio.create_task(all_of([slow(), slow()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slow.ended == 2
