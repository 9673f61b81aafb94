"""Structured concurrency: an error of one of several awaitables cancels the others and is raised as itself."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@asynccontextmanager
async def _group() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises the first of its errors as itself, in place of an exception group."""
    parent = asyncio.current_task()
    assert parent is not None  # noqa: S101 - what awaits is a task
    cancellations = parent.cancelling()
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        # Before Python 3.13 a group that fails while its parent waits leaves its own cancel request counted on the
        # parent, and before 3.11.4 every later time-out of the parent is then a cancellation.
        if parent.cancelling() > cancellations:
            parent.uncancel()
        raise errors.exceptions[0] from None


async def all_of(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. Unlike `asyncio.gather` it leaves no task running; unlike a bare group it raises no group."""
    async with _group() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
    return [task.result() for task in tasks]


async def ahead(coroutines: Iterable[Coroutine[Any, Any, T]]) -> AsyncGenerator[T, None]:
    """Results in order, each begun while the caller works on the one before; a caller that leaves early closes it."""
    remaining = iter(coroutines)
    task: asyncio.Task[T] | None = None
    try:
        while (coroutine := next(remaining, None)) is not None or task is not None:
            following = None if coroutine is None else asyncio.create_task(coroutine)
            current, task = task, following
            if current is not None:
                yield await current
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait({task})


@asynccontextmanager
async def beside(coroutine: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run a coroutine while the context is open; it has ended when the context has. Its error stays in the task."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def both(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """The results of two coroutines of different types; otherwise as `all_of`."""
    async with _group() as group:
        first, second = group.create_task(one), group.create_task(other)
    return first.result(), second.result()


async def prefer(
    first: Coroutine[Any, Any, T | None], other: Coroutine[Any, Any, U], *, decided: Callable[[], None] = lambda: None
) -> T | U:
    """The result of `first`, which cancels the other; the other's result where that of `first` is None.

    `decided` is called before the other is cancelled, so that it can tell a lost race from a deadline.
    """
    async with _group() as group:
        running = group.create_task(other)
        preferred = await first
        if preferred is not None:
            decided()
            running.cancel()
    return running.result() if preferred is None else preferred
