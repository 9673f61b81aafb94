"""Whether memory stays flat: each service's resident memory over a run, its workers included."""

import asyncio
import csv
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from services.cli import processes
from services.cli.supervisor import PidFile

# Growth that counts: over both of these from the second quarter of a run, when caches are full, to the last.
GROWTH_SHARE = 0.1
GROWTH_MIB = 32.0
MIN_SAMPLES = 12


def memory_mib(run_dir: Path) -> dict[str, float]:
    """Resident memory of each service that was started with this folder, workers included."""
    records = [PidFile.model_validate_json(path.read_bytes()) for path in sorted(run_dir.glob("*.json"))]
    return {
        record.service: sum(processes.memory_bytes(process.pid) for process in record.members()) / 2**20
        for record in records
    }


@dataclass
class MemoryLog:
    """Samples of a run.

    Args:
        sample: measures resident MiB by service.
        every_s: between two samples.
    """

    sample: Callable[[], dict[str, float]]
    every_s: float = 5.0
    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)

    async def follow(self) -> None:
        """Sample until cancelled."""
        began = time.monotonic()
        while True:
            self.samples.append((time.monotonic() - began, await asyncio.to_thread(self.sample)))
            await asyncio.sleep(self.every_s)

    def growth_mib(self) -> dict[str, float]:
        """By service: the median of the last quarter less that of the second; empty where there are too few samples."""
        if len(self.samples) < MIN_SAMPLES:
            return {}
        quarter = len(self.samples) // 4
        return {name: self._median(-quarter, None, name) - self._second(name) for name in self.samples[-1][1]}

    def growing(self) -> dict[str, float]:
        """Services whose memory is not flat, with their growth in MiB."""
        return {
            name: growth
            for name, growth in self.growth_mib().items()
            if growth > GROWTH_MIB and growth > GROWTH_SHARE * self._second(name)
        }

    def _second(self, name: str) -> float:
        return self._median(len(self.samples) // 4, len(self.samples) // 2, name)

    def _median(self, first: int, end: int | None, name: str) -> float:
        return statistics.median(sample.get(name, 0.0) for _, sample in self.samples[first:end])

    def write(self, file: Path) -> None:
        """As CSV: seconds, then a column of MiB for each service."""
        names = sorted({name for _, sample in self.samples for name in sample})
        with file.open("w", newline="") as opened:
            rows = csv.writer(opened)
            rows.writerow(["seconds", *names])
            for seconds, sample in self.samples:
                rows.writerow([f"{seconds:.1f}", *(f"{sample.get(name, 0.0):.1f}" for name in names)])


def whole(mib: dict[str, float]) -> dict[str, int]:
    """The same in whole MiB, for people to read."""
    return {name: round(value) for name, value in mib.items()}
