"""An event loop whose clock moves only when no task can run: latencies cost nothing and repeat exactly."""

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from unittest import mock

from services.kit.budget import Budget

Result = TypeVar("Result")
# The clock's first reading, any but zero.
BEGIN_S = 1_000.0


class Deadlock(RuntimeError):
    """Every task waits for another one, and no timer is set."""


class _Selector(selectors.DefaultSelector):
    """Moves the clock to the next timer instead of waiting."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events and timeout is None:
            raise Deadlock("no task can go on")
        if not events and timeout:
            self._advance(timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs the work of executors in its own thread, since a clock that jumps would not wait for others."""

    def __init__(self) -> None:
        self._now = BEGIN_S
        super().__init__(_Selector(self._advance))

    def time(self) -> float:
        return self._now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _advance(self, seconds: float) -> None:
        self._now += seconds


async def _here(func: Callable[..., Result], *args: Any, **_: Any) -> Result:
    return func(*args)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine under virtual time; `time.monotonic` and every budget read the same clock."""
    thread, real = threading.get_ident(), time.monotonic
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        virtual = runner.get_loop().time

        def clock() -> float:
            # Between the two clocks lie hours, which threads of pools that outlive this loop would wait.
            return virtual() if threading.get_ident() == thread else real()

        defaults: dict[str, Any] = Budget.__init__.__kwdefaults__ or {}
        here = mock.patch("anyio.to_thread.run_sync", _here)
        with mock.patch("time.monotonic", clock), mock.patch.dict(defaults, clock=clock), here:
            return runner.run(main)
