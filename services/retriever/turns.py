"""Calls in turns: one thread makes them, and callers wait in a bounded queue, which drops those whose time is over."""

from collections.abc import Callable
from typing import TypeVar

from services.kit.batcher import Batcher

T = TypeVar("T")


def turns(limit: int) -> Batcher[Callable[[], T], T]:
    """A queue of calls, of which at most `limit` may wait."""
    return Batcher(lambda calls: [call() for call in calls], cost=lambda _: 1, max_batch_cost=1, max_queue_cost=limit)
