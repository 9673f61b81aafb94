"""A request's time: one deadline, split among stages without starving the later ones."""

import time
from collections.abc import Callable
from contextvars import ContextVar

DEADLINE_HEADER = "x-deadline-ms"

Clock = Callable[[], float]


class Budget:
    """A deadline on a monotonic clock.

    Time travels between services as milliseconds left, never as a wall-clock time, so that clocks need not agree.
    """

    __slots__ = ("_clock", "deadline", "start", "total_s")

    def __init__(self, seconds: float, *, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.start = clock()
        self.total_s = max(0.0, seconds)
        self.deadline = self.start + self.total_s

    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.deadline - self._clock())

    def elapsed_ms(self) -> float:
        """Milliseconds since the budget began."""
        return max(0.0, (self._clock() - self.start) * 1000)

    def allow(self, cap_s: float = float("inf"), *, reserve_s: float = 0.0) -> float:
        """Seconds that a stage may take: at most `cap_s`, and leaving `reserve_s` to the stages after it.

        Without the reserve an inner time-out equals the outer one, and the fallback that it should have left room for
        never runs.
        """
        return max(0.0, min(cap_s, self.left() - reserve_s))

    def within(self, seconds: float) -> "Budget":
        """A budget that ends after `seconds` or with this one, counted from the start of this one."""
        inner = Budget(0.0, clock=self._clock)
        inner.start = self.start
        inner.deadline = min(self.deadline, self.start + seconds)
        inner.total_s = inner.deadline - inner.start
        return inner


current_budget: ContextVar[Budget | None] = ContextVar("current_budget", default=None)
