"""Counts and times of the questions of a load run."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab.capacity import percentile
from services.gateway.calibration import STAGE

REFUSED = 429


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run.

    Args:
        late: answers after the deadline, at most.
        server_errors: replies of 5xx and connections without a reply, at most.
        overhead_ms: median of the mesh's own overhead, below this; 0 asks nothing of it.
    """

    late: int = 0
    server_errors: int = 0
    overhead_ms: float = 0.0


@dataclass
class Tally:
    """Counts and times of one run.

    Args:
        budget_s: an answer, or a reply of any other route, that takes longer is late.

    Attributes:
        stages: seconds of each stage.
        doors: seconds of the replies of each other route.
        misshapen: refusals in a form that clients of their door do not read.
        moments: (second of the run, outcome of a question in it).
    """

    budget_s: float
    clock: Callable[[], float] = time.monotonic
    began: float | None = None
    stages: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    doors: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    moments: list[tuple[float, str]] = field(default_factory=list)
    useful: int = 0
    tokens: int = 0
    seconds: list[float] = field(default_factory=list)
    overheads_ms: list[float] = field(default_factory=list)
    degraded: int = 0
    left: int = 0
    misshapen: int = 0
    statuses: Counter[int] = field(default_factory=Counter)

    def answered(self, seconds: float, answer: dict[str, Any]) -> None:
        self.statuses[200] += 1
        self.seconds.append(seconds)
        is_useful = seconds <= self.budget_s and answer.get("kind", "answer") != "unknown"
        self.useful += is_useful
        self._at("answers" if is_useful else "abstentions")
        self.tokens += sum(answer.get("usage", {}).get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
        for name, timing in answer["timings"].items():
            self.stages[name].append(timing["elapsed_ms"] / 1000)
        # Nothing is fitted for the fake generator.
        self.degraded += any(item["stage"] != STAGE for item in answer["degraded"])
        self.overheads_ms.append(seconds * 1000 - busy_ms(answer["timings"]))

    def refused(self, status: int, *, own_form: bool = True) -> None:
        self.statuses[status] += 1
        self.misshapen += not own_form
        self._at("refusals" if status == REFUSED else "failures")

    def replied(self, door: str, seconds: float) -> None:
        """Count a good reply of a route that is no `/answer`."""
        self.doors[door].append(seconds)
        self.statuses[200] += 1

    def _at(self, outcome: str) -> None:
        now = self.clock()
        self.began = now if self.began is None else self.began
        self.moments.append((now - self.began, outcome))

    @property
    def late(self) -> int:
        replies = (self.seconds, *self.doors.values())
        return sum(seconds > self.budget_s for times in replies for seconds in times)

    @property
    def failed(self) -> int:
        """Late answers, and replies that are neither an answer nor a refusal for want of room."""
        return self.late + sum(count for status, count in self.statuses.items() if status not in (200, REFUSED))

    @property
    def server_errors(self) -> int:
        """Replies of 5xx, and connections without a reply."""
        return sum(count for status, count in self.statuses.items() if status >= 500 or status == 0)

    def broken(self, limits: Limits) -> list[str]:
        """The limits that the run broke, in words."""
        others = self.failed - self.late - self.server_errors
        overhead_ms = percentile(self.overheads_ms, 0.5)
        faults = {
            f"{self.late} answers came after the deadline, and {limits.late} may": self.late > limits.late,
            f"{self.server_errors} replies were 5xx or none, and {limits.server_errors} may be": self.server_errors
            > limits.server_errors,
            f"{others} questions were refused, and not for want of room": others > 0,
            f"the mesh's own overhead was {overhead_ms:.1f} ms (median), and must be below {limits.overhead_ms:g}": 0
            < limits.overhead_ms
            <= overhead_ms,
            f"{self.misshapen} refusals were not in the form of their door": self.misshapen > 0,
            "nobody was answered": not self.seconds,
        }
        return [line for line, is_so in faults.items() if is_so]

    def summary(self) -> dict[str, float]:
        """Figures of the run; shares of all that were asked, times in seconds."""
        asked = max(1, self.statuses.total())
        answers = max(1, len(self.seconds))
        return {
            "asked": self.statuses.total(),
            "answered": len(self.seconds),
            "left": self.left,
            "p50_s": percentile(self.seconds, 0.5),
            "p95_s": percentile(self.seconds, 0.95),
            "p99_s": percentile(self.seconds, 0.99),
            "share_in_budget": 1 - self.late / max(1, self.statuses[200]),
            "share_429": self.statuses[REFUSED] / asked,
            "share_5xx": self.server_errors / asked,
            "share_degraded": self.degraded / answers,
            "overhead_p50_ms": percentile(self.overheads_ms, 0.5),
            "overhead_p95_ms": percentile(self.overheads_ms, 0.95),
            "goodput_per_s": self.useful / max(1.0, self.moments[-1][0]) if self.moments else 0.0,
            "tokens_per_question": self.tokens / answers,
        }

    def record(self) -> dict[str, Any]:
        """The summary, with what the report draws."""
        stages, doors = dict(self.stages), dict(self.doors)
        return {**self.summary(), "stages_s": stages, "doors_s": doors, "moments": self.moments}

    def report(self) -> str:
        figures = self.summary()
        width = max(len(name) for name in figures)
        return "\n".join(f"  {name:<{width}}  {value:10.4g}" for name, value in figures.items())


def busy_ms(timings: dict[str, dict[str, float]]) -> float:
    """Milliseconds in which at least one stage was at work."""
    busy = reached = 0.0
    for start, end in sorted((item["start_ms"], item["start_ms"] + item["elapsed_ms"]) for item in timings.values()):
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return busy
