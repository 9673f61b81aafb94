"""Background work: it uses the places that callers leave free, and gives way to them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from services.kit.admission import Admission


class GaveWay(Exception):
    """A caller needed the place: the work is to be done again later."""


class IdleLane:
    """Runs work while few callers are served, and cancels it when one more comes.

    The work takes no place of `admission`: it runs while requests in flight, its own included, are no more than
    `level`, which is at most what the service takes. So nobody waits for a place, or is refused one, for its sake.
    At a level of 1 it runs only while there is no caller.
    """

    def __init__(self, admission: Admission, level: int) -> None:
        self._admission = admission
        self._level = min(level, admission.limit)
        self._running: list[asyncio.Task[Any]] = []
        self._free = asyncio.Event()
        admission.changed = self._adjust
        self._adjust()

    async def wait(self) -> None:
        """Wait for a free place; `place` gets it if nothing is awaited in between."""
        while not self._free.is_set():
            await self._free.wait()

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Have a place while the context is open.

        Raises:
            GaveWay: there is none, or a caller needed it and the work inside was cancelled.
        """
        task = asyncio.current_task()
        if task is None or not self._free.is_set():
            raise GaveWay
        self._running.append(task)
        self._adjust()
        try:
            yield
        except asyncio.CancelledError:
            # `_adjust` removes from the list the task that it cancels; others may have cancelled it as well.
            if task in self._running or task.uncancel():
                raise
            raise GaveWay from None
        finally:
            if task in self._running:
                self._running.remove(task)
            self._adjust()

    def _adjust(self) -> None:
        """Fit the lane to the free places; the newest work gives way first, having lost the least."""
        room = max(0, self._level - self._admission.in_flight)
        while len(self._running) > room:
            self._running.pop().cancel()
        if len(self._running) < room:
            self._free.set()
        else:
            self._free.clear()
