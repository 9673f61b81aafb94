"""A circuit breaker: leave a failing service alone for a while, and find out soon when it is back."""

import time

from services.kit.budget import Clock


class Breaker:
    """Closed until `threshold` failures in a row, open for a while that doubles, then half-open: one probe decides.

    The cap of the doubling is short, since a breaker that stays open after recovery is an outage of its own.
    """

    def __init__(
        self, *, threshold: int = 5, first_open_s: float = 0.5, max_open_s: float = 5.0, clock: Clock = time.monotonic
    ) -> None:
        self._clock = clock
        self._threshold = threshold
        self._first_open_s = first_open_s
        self._max_open_s = max_open_s
        self._failures = 0
        self._open_s = first_open_s
        self._open_until = 0.0
        self._probing = False

    @property
    def state(self) -> str:
        """`closed`, `open` or `half-open`."""
        if self._failures < self._threshold:
            return "closed"
        return "open" if self._clock() < self._open_until else "half-open"

    def admit(self) -> bool:
        """Whether a call may go out now; in the half-open state only one may, until it has ended."""
        if self.state == "closed":
            return True
        if self.state == "open" or self._probing:
            return False
        self._probing = True
        return True

    def succeeded(self) -> None:
        self._failures = 0
        self._open_s = self._first_open_s
        self._probing = False

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= self._threshold:
            self._open_until = self._clock() + self._open_s
            self._open_s = min(self._open_s * 2, self._max_open_s)
        self._probing = False

    def abandoned(self) -> None:
        """Not counted: the caller cancelled, or allowed less time than a call needs."""
        self._probing = False
