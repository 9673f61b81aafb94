"""Progress of long steps: a bar or a spinner on a terminal, plain lines with the time elsewhere."""

import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from services.generator.errors import GeneratorError

# Seconds between two lines of a step whose output is not a terminal.
HEARTBEAT_S = 10.0
# Of a command's latest line; more would wrap.
DETAIL_CHARS = 60
# Of a failed command; pip and vLLM say what went wrong at their end.
KEPT_LINES = 30
# What `pip --progress-bar raw` prints: bytes so far, and bytes in all or 0.
_PIP_BYTES = re.compile(r"Progress (\d+) of (\d+)")


@dataclass(slots=True)
class Task:
    """One step under way; `total` and `completed` are bytes."""

    name: str
    total: int | None
    completed: int = 0
    detail: str = ""
    started: float = field(default_factory=time.monotonic)

    def advance(self, count: int) -> None:
        """`count` more bytes are done."""
        self.completed += count

    def describe(self) -> str:
        """The step, how far it is and how long it has run, in one line."""
        share = f" {_mega(self.completed)} of {_mega(self.total)} MB" if self.total else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.name}:{share} {time.monotonic() - self.started:.0f} s{detail}"


class Reporter:
    """Shows tasks on a console, standard error by default."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    def log(self, message: str) -> None:
        """One line, kept as it is."""
        self._console.print(message, markup=False, soft_wrap=True)

    @contextmanager
    def task(self, name: str, total: int | None = None) -> Iterator[Task]:
        """Show a step while the block runs; `total` is in bytes, None where it is not known beforehand."""
        task = Task(name, total)
        done = threading.Event()
        show = self._show_bar if self._console.is_terminal else self._show_lines
        # A thread, because the step itself may be blocked in a read for as long as it takes.
        thread = threading.Thread(target=show, args=(task, done), daemon=True)
        thread.start()
        ending = "stopped after"
        try:
            yield task
            ending = "done in"
        finally:
            done.set()
            thread.join()
            self.log(f"{name}: {ending} {time.monotonic() - task.started:.1f} s")

    def _show_lines(self, task: Task, done: threading.Event) -> None:
        self.log(f"{task.name} ...")
        while not done.wait(HEARTBEAT_S):
            self.log(task.describe())

    def _show_bar(self, task: Task, done: threading.Event) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[share]}", markup=False),
            TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
            # What is left of the line, so that on a narrow terminal only this is cut.
            TextColumn("{task.fields[detail]}", markup=False, style="dim", table_column=Column(ratio=1, no_wrap=True)),
        )
        with Progress(*columns, console=self._console, transient=True, expand=True) as progress:
            shown = progress.add_task(task.name, total=None, share="", detail="")
            finished = False
            while not finished:
                finished = done.wait(0.1)
                share = f"{_mega(task.completed)}/{_mega(task.total)} MB" if task.total else ""
                progress.update(shown, total=task.total, completed=task.completed, share=share, detail=task.detail)


def run(
    reporter: Reporter, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a command as a step and return what it printed, at most the last lines.

    Raises:
        GeneratorError: it could not be started, or ended with another status than 0; the last lines are in the message.
    """
    last: deque[str] = deque(maxlen=KEPT_LINES)
    with reporter.task(name) as task:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Python's descriptors are closed anyway, except for the lock that `files.locked` hands on.
                close_fds=False,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise GeneratorError(f"{argv[0]} could not be started: {error}") from error
        with process:
            try:
                for line in map(str.strip, process.stdout or ()):
                    if match := _PIP_BYTES.fullmatch(line):
                        task.completed, task.total = int(match[1]), int(match[2]) or None
                    elif line:
                        last.append(line)
                        task.detail = line if len(line) <= DETAIL_CHARS else line[: DETAIL_CHARS - 1] + "…"
                        task.total = None
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise GeneratorError("\n".join([f"{name}: failed with status {process.returncode}", *last]))
    return "\n".join(last)


def _mega(size: int | None) -> str:
    return f"{(size or 0) / 1e6:.0f}"
