"""Processes by Linux's `/proc`: their sessions, their memory, the ports that they listen on."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Process:
    """A living process. `started_ticks` counts from boot, so a step of the wall clock does not change it."""

    pid: int
    name: str
    session: int
    started_ticks: int

    @property
    def uptime_s(self) -> float:
        seconds = float((PROC / "uptime").read_text().split()[0])
        return max(0.0, seconds - self.started_ticks / os.sysconf("SC_CLK_TCK"))


def supported() -> bool:
    """Whether this system lists its processes in `/proc`."""
    return sys.platform == "linux" and (PROC / "self/stat").exists()


def boot_id() -> str:
    """Changes with every boot, after which old pids mean nothing."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def find(pid: int) -> Process | None:
    """The living process of that pid; None for a zombie."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in parentheses and may itself hold spaces and parentheses.
    head, _, tail = stat.rpartition(")")
    fields = tail.split()
    if fields[0] in "ZX":
        return None
    return Process(pid, head.partition("(")[2], session=int(fields[3]), started_ticks=int(fields[19]))


def members(session: int) -> list[Process]:
    """The living processes of a session."""
    return [process for process in _all() if process.session == session]


def memory_bytes(pid: int) -> int:
    """Memory of a process, its shared pages split among their users; its resident pages where the kernel hides that."""
    folder = PROC / str(pid)
    try:
        for line in (folder / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def is_listened_on(port: int) -> bool:
    return bool(_listening_inodes(port))


def owner_of_port(port: int) -> Process | None:
    """The process that listens on a TCP port; None when nobody does, or when it is another user's."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return None
    return next((process for process in _all() if not sockets.isdisjoint(_open_files(process.pid))), None)


def _all() -> Iterator[Process]:
    for entry in os.listdir(PROC):
        if entry.isdecimal() and (process := find(int(entry))):
            yield process


def _open_files(pid: int) -> Iterator[str]:
    folder = PROC / str(pid) / "fd"
    try:
        descriptors = os.listdir(folder)
    except OSError:
        return
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            yield os.readlink(folder / descriptor)


def _listening_inodes(port: int) -> set[str]:
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(fields[9])
    return inodes
