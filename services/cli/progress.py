"""Bars of work that is counted, and lines of JSON where no terminal shows one."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from services.cli.console import err


def counting(console: Console = err) -> Progress:
    """How many of how many, for how long, and for how long still; nothing where no terminal shows it."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


class Board:
    """A bar on a terminal, lines of JSON elsewhere.

    Args:
        bar: its fields are what `show` is given besides.
        log_s: seconds between two lines.
        begin_s: seconds before the first.
    """

    def __init__(self, bar: Progress, log_s: float, *, begin_s: float = 0.0) -> None:
        self._bar = bar
        self._log_s = log_s
        self._due = time.monotonic() + begin_s
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, line: Mapping[str, object], *, at_once: bool = False, **bar: Any) -> None:
        """Show the bar's state, or the line where it is due.

        Args:
            at_once: write the line also where it is not due.
        """
        if self._bar.console.is_terminal:
            if self._task is None:
                self._task = self._bar.add_task("", **bar)
            self._bar.update(self._task, **bar)
        elif at_once or time.monotonic() >= self._due:
            self._due = time.monotonic() + self._log_s
            sys.stderr.write(json.dumps({key: value for key, value in line.items() if value is not None}) + "\n")
            sys.stderr.flush()
