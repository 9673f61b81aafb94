"""The progress of `cragmesh up` and `down`: a live table on a terminal, one line a change elsewhere."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from services.cli.supervisor import State
from services.kit.concurrency import beside

HEARTBEAT_S = 10.0
REFRESH_PER_S = 8

# States whose duration is shown while it grows.
BUSY: frozenset[State] = frozenset({"starting", "stopping"})
STYLES: dict[State, str] = {
    "waiting": "dim",
    "starting": "yellow",
    "ready": "green",
    "already up": "green",
    "external": "cyan",
    "failed": "bold red",
    "stopping": "yellow",
    "stopped": "dim",
    "killed": "red",
}


class ProgressTable:
    """The state of each service, and since when."""

    def __init__(self, names: Sequence[str], console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._states: dict[str, State] = dict.fromkeys(names, "waiting")
        self._seconds = dict.fromkeys(names, 0.0)
        self._since = dict.fromkeys(names, self._began)
        self._spinner = Spinner("dots")

    def changed(self, name: str, state: State) -> None:
        """Note a change; the supervisor calls this."""
        now = time.monotonic()
        self._seconds[name] = now - self._since.get(name, now)
        self._since[name] = now
        self._states[name] = state
        if not self._console.is_terminal:
            duration = f" after {self._seconds[name]:.1f} s" if state == "ready" else ""
            self._line(f"{name}: {state}{duration}")

    @contextlib.asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        """Show the table while the context is open."""
        if self._console.is_terminal:
            with Live(self, console=self._console, refresh_per_second=REFRESH_PER_S):
                yield
            return
        async with beside(self._beat()):
            yield

    def __rich__(self) -> Table:
        now = time.monotonic()
        table = Table(box=None, pad_edge=False)
        table.add_column("service")
        table.add_column("state", min_width=12)
        table.add_column("seconds", justify="right")
        for name, state in self._states.items():
            seconds = now - self._since[name] if state in BUSY else self._seconds[name]
            label = Text(state, style=STYLES[state])
            if state in BUSY:
                label = Text.assemble(self._spinner.render(now), " ", label)  # type: ignore[arg-type]
            table.add_row(name, label, f"{seconds:.1f}" if state in BUSY | {"ready"} else "")
        return table

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            for name, state in self._states.items():
                if state in BUSY:
                    self._line(f"{name}: still {state}, {time.monotonic() - self._since[name]:.0f} s")

    def _line(self, text: str) -> None:
        self._console.print(Text(f"{time.monotonic() - self._began:6.1f} s  {text}"), soft_wrap=True)
