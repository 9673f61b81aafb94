"""Dynamic batching in front of a model: one thread runs it, callers wait in a bounded queue.

A batch starts as soon as the model is free, with what is waiting then: no timer adds latency to a quiet service, and
under load batches grow by themselves. An item whose time or caller is gone is dropped before the model sees it.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from proto.base import StageTiming
from services.kit.breaker import Breaker
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import beside
from services.kit.errors import DeadlineExceeded, InvalidRequest, Overloaded, Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

# One failed run may be the fault of its item; this many in a row are the model's.
FAILED_RUNS = 3
# A service that is not ready gets no requests, so it turns ready again by itself, after orchestrators have noticed.
FAILED_S = 60.0


class Runs:
    """Counts a model's failed runs."""

    def __init__(self) -> None:
        self._breaker = Breaker(threshold=FAILED_RUNS, first_open_s=FAILED_S, max_open_s=FAILED_S)

    @property
    def trouble(self) -> str:
        """Why the model is unreliable now; empty while it works."""
        return f"the last {FAILED_RUNS} runs of the model failed" if self._breaker.state == "open" else ""

    def succeeded(self) -> None:
        self._breaker.succeeded()

    def failed(self, error: Exception) -> None:
        # The other errors are the callers' doing.
        if not isinstance(error, (Overloaded, DeadlineExceeded, InvalidRequest)):
            self._breaker.failed()

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count the run inside as succeeded or failed."""
        try:
            yield
        except Exception as error:
            self.failed(error)
            raise
        self.succeeded()


@dataclass(frozen=True, slots=True)
class Batched(Generic[Result]):
    """A result, with the milliseconds that it took."""

    result: Result
    queue_ms: float
    inference_ms: float

    @property
    def timing(self) -> StageTiming:
        """The times in the form of a reply."""
        elapsed_ms = self.queue_ms + self.inference_ms
        return StageTiming(elapsed_ms=elapsed_ms, queue_ms=self.queue_ms, inference_ms=self.inference_ms)


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    cost: int
    budget: Budget | None
    future: "asyncio.Future[Batched[Result]]"
    since: float = field(default_factory=time.monotonic)

    @property
    def is_live(self) -> bool:
        return not self.future.done() and (self.budget is None or self.budget.left() > 0)


class Batcher(Generic[Item, Result]):
    """Collect items into batches for `run`, which gets a list and returns as many results.

    Args:
        run: the model, called in a thread of its own, one batch at a time.
        cost: tokens (or any unit of work) of an item.
        max_batch_cost: a single larger item is a batch too; larger batches are slower per item on CPUs.
        max_queue_cost: of all waiting items; above it `submit` refuses.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Sequence[Result]],
        *,
        cost: Callable[[Item], int],
        max_batch_cost: int,
        max_queue_cost: int,
    ) -> None:
        self._run = run
        self._cost = cost
        self._max_batch_cost = max_batch_cost
        self._max_queue_cost = max_queue_cost
        self._queue: deque[_Waiting[Item, Result]] = deque()
        # Cost of the items that wait.
        self.queued_cost = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._runs = Runs()
        self._worker: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """Why the model is unreliable now; empty while it works."""
        if self._worker and self._worker.done():
            return "the queue in front of the model has stopped"
        return self._runs.trouble

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Batcher[Item, Result]"]:
        """Serve the queue while the context is open; items still waiting at its end are cancelled."""
        try:
            async with beside(self._serve()) as self._worker:
                yield self
        finally:
            for waiting in self._queue:
                waiting.future.cancel()
            self._queue.clear()
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def submit(self, item: Item) -> Batched[Result]:
        """Wait for the result of one item.

        Raises:
            Overloaded: the queue is full.
            DeadlineExceeded: the request's budget ended while the item waited.
            Unavailable: nobody serves the queue any more.
            Exception: the error that `run` raised for this item.
        """
        if self._worker and self._worker.done():
            raise Unavailable(self.trouble)
        cost = max(1, self._cost(item))
        if self._queue and self.queued_cost + cost > self._max_queue_cost:
            self._drop_expired()
            if self._queue and self.queued_cost + cost > self._max_queue_cost:
                raise Overloaded("the queue in front of the model is full")
        future: asyncio.Future[Batched[Result]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(item, cost, current_budget.get(), future))
        self.queued_cost += cost
        self._arrived.set()
        return await future

    async def _serve(self) -> None:
        while True:
            await self._arrived.wait()
            batch = self._form()
            if not self._queue:
                self._arrived.clear()
            if batch:
                await self._infer(batch)

    def _form(self) -> list[_Waiting[Item, Result]]:
        self._drop_expired()
        batch: list[_Waiting[Item, Result]] = []
        cost = 0
        while self._queue and (not batch or cost + self._queue[0].cost <= self._max_batch_cost):
            waiting = self._queue.popleft()
            cost += waiting.cost
            batch.append(waiting)
        self.queued_cost -= cost
        return batch

    def _drop_expired(self) -> None:
        live = deque[_Waiting[Item, Result]]()
        for waiting in self._queue:
            if waiting.is_live:
                live.append(waiting)
                continue
            self.queued_cost -= waiting.cost
            if not waiting.future.done():
                waiting.future.set_exception(DeadlineExceeded("the time ran out in the queue"))
        self._queue = live

    async def _infer(self, batch: list[_Waiting[Item, Result]]) -> None:
        started = time.monotonic()
        items = [waiting.item for waiting in batch]
        try:
            results = await self._in_thread(items)
        except Exception as error:
            if len(batch) == 1:
                self._runs.failed(error)
                if not batch[0].future.done():
                    batch[0].future.set_exception(error)
                return
            # One bad item must fail alone, and only the items themselves can tell which it is.
            for waiting in batch:
                if waiting.is_live:
                    await self._infer([waiting])
            return
        except BaseException:
            for waiting in batch:
                waiting.future.cancel()
            raise
        self._runs.succeeded()
        inference_ms = (time.monotonic() - started) * 1000
        for waiting, result in zip(batch, results, strict=True):
            if not waiting.future.done():
                queue_ms = max(0.0, started - waiting.since) * 1000
                waiting.future.set_result(Batched(result, queue_ms, inference_ms))

    async def _in_thread(self, items: list[Item]) -> Sequence[Result]:
        results = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, items)
        if len(results) != len(items):
            raise RuntimeError(f"the model returned {len(results)} results for {len(items)} items")
        return results
