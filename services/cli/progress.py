"""Progress of work that is counted: a bar on a terminal, lines elsewhere."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from services.cli.console import err, say

Advance = Callable[[int], None]


def bar_of(*columns: ProgressColumn) -> Progress:
    """A bar with these columns behind it, hidden where there is no terminal."""
    head = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
    return Progress(*head, *columns, console=err, disable=not err.is_terminal, transient=True)


def counting() -> Progress:
    """A bar with counts, time spent and time left."""
    return bar_of(MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())


@contextmanager
def counted(work: str, total: int | None = None, *, line_every: int = 0) -> Iterator[Advance]:
    """A function that takes how many items of the work are done since its last call.

    Args:
        line_every: without a terminal, items between two lines of progress; 0 writes none.
    """
    with counting() as bar:
        task = bar.add_task(work, total=total)
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            bar.advance(task, count)
            if line_every and not err.is_terminal and (done // line_every > before // line_every or done == total):
                say(f"{work}: {done} of {total}")

        yield advance


class ProgressLog:
    """A bar on a terminal, elsewhere a line of JSON every `log_s` seconds, the first after `begin_s`."""

    def __init__(self, bar: Progress, log_s: float, *, begin_s: float = 0.0) -> None:
        self._bar = bar
        self._log_s = log_s
        self._due = time.monotonic() + begin_s
        self._task: TaskID | None = None

    def update(self, line: Mapping[str, object], *, at_once: bool = False, **bar: Any) -> None:
        """Show the bar with these fields, or the line where it is due, or `at_once`."""
        if self._bar.console.is_terminal:
            if self._task is None:
                self._task = self._bar.add_task("", **bar)
            self._bar.update(self._task, **bar)
        elif at_once or time.monotonic() >= self._due:
            self._due = time.monotonic() + self._log_s
            sys.stderr.write(json.dumps({key: value for key, value in line.items() if value is not None}) + "\n")
            sys.stderr.flush()
