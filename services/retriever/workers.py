"""Processes that parse pages: a page that hangs, crashes or eats memory fails alone."""

import asyncio
import multiprocessing
import resource
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from services.kit.errors import Unavailable
from services.kit.telemetry import log

T = TypeVar("T")

# Native parsers leak a little with each page; a worker is replaced before that adds up.
TASKS_A_WORKER = 500


class PageTimeout(Exception):
    """The page took longer than it may; its worker was killed."""


class PageFailed(Exception):
    """The page could not be parsed, or killed its worker."""


class PagePool:
    """Run functions in worker processes with a hard timeout each.

    Args:
        memory_mib: address space of a worker beside that at its start.
        preload: modules that workers have imported when they start.
    """

    def __init__(self, *, workers: int, memory_mib: int, preload: tuple[str, ...] = ()) -> None:
        context = multiprocessing.get_context("forkserver")
        # Workers fork from a process that has the parsers and nothing else: no model, no threads, no sockets.
        context.set_forkserver_preload([__name__, *preload])
        self._make = partial(
            ProcessPool,
            max_workers=workers,
            max_tasks=TASKS_A_WORKER,
            initializer=_limit_memory,
            initargs=[memory_mib],
            context=context,
        )
        self._pool = self._make()
        self._is_closed = False

    async def run(self, function: Callable[..., T], *args: Any, timeout_s: float) -> T:
        """The function's result; cancelling the wait kills its worker.

        Args:
            timeout_s: seconds of work, without the wait for a worker, which the caller's deadline bounds.

        Raises:
            PageTimeout: it took too long.
            PageFailed: it raised or its worker died.
            Unavailable: no workers can be started.
        """
        try:
            return await self._run(function, args, timeout_s)
        except BrokenProcessPool:
            # A worker died that had no work, as where memory is short; the page goes to the others' successors.
            pass
        try:
            return await self._run(function, args, timeout_s)
        except BrokenProcessPool as error:
            raise Unavailable("the processes that read pages are killed") from error

    async def _run(self, function: Callable[..., T], args: Sequence[Any], timeout_s: float) -> T:
        future = self._schedule(function, args, timeout_s)
        try:
            return await asyncio.wrap_future(future)
        except BrokenProcessPool:
            raise
        except TimeoutError as error:
            raise PageTimeout(f"not parsed within {timeout_s:.1f} s") from error
        except ProcessExpired as error:
            raise PageFailed("the worker died of it") from error
        except MemoryError as error:
            raise PageFailed("it needs too much memory") from error
        except Exception as error:
            raise PageFailed(type(error).__name__) from error

    def _schedule(self, function: Callable[..., T], args: Sequence[Any], timeout_s: float) -> "ProcessFuture[T]":
        try:
            return self._pool.schedule(function, args=list(args), timeout=timeout_s)
        except RuntimeError as error:
            if self._is_closed:
                raise Unavailable("the service ends") from error
            # Pebble's pool is of no more use once a worker died that had no work.
            log.warning("workers started anew", cause=str(error))
            broken, self._pool = self._pool, self._make()
            # Its other workers end by that.
            asyncio.get_running_loop().run_in_executor(None, broken.join)
        try:
            return self._pool.schedule(function, args=list(args), timeout=timeout_s)
        except (RuntimeError, OSError) as error:
            raise Unavailable("no process that reads pages can be started") from error

    def close(self) -> None:
        """Kill the workers."""
        self._is_closed = True
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()


def _limit_memory(mib: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    limit = now + mib * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
