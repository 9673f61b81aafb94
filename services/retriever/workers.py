"""Processes that parse pages: a page that hangs, crashes or eats memory fails alone."""

import asyncio
import multiprocessing
import resource
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

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
        self._pool = ProcessPool(
            max_workers=workers,
            max_tasks=TASKS_A_WORKER,
            initializer=_limit_memory,
            initargs=[memory_mib],
            context=context,
        )

    async def run(self, function: Callable[..., T], *args: Any, timeout_s: float) -> T:
        """The function's result; cancelling the wait kills its worker.

        Args:
            timeout_s: seconds of work, without the wait for a worker, which the caller's deadline bounds.

        Raises:
            PageTimeout: it took too long.
            PageFailed: it raised or its worker died.
        """
        future = self._pool.schedule(function, args=list(args), timeout=timeout_s)
        try:
            return await asyncio.wrap_future(future)
        except (TimeoutError, FutureTimeoutError) as error:
            raise PageTimeout(f"not parsed within {timeout_s:.1f} s") from error
        except ProcessExpired as error:
            raise PageFailed("the worker died of it") from error
        except MemoryError as error:
            raise PageFailed("it needs too much memory") from error
        except Exception as error:
            raise PageFailed(type(error).__name__) from error

    def close(self) -> None:
        """Kill the workers."""
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()


def _limit_memory(mib: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    limit = now + mib * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
