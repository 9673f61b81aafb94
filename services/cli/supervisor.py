"""Starts, finds and stops the processes of the embedded mesh.

Each service leads a session of its own and has a pid file with the start of its process, so that a pid which the
system has given to somebody else is never signalled, and what a crashed service left behind is still found.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from services.cli import processes
from services.cli.logs import tail
from services.cli.services import Launch, NotPrepared, Service
from services.kit.concurrency import all_of
from services.kit.files import write_whole

POLL_S = 0.2
PROBE_S = 2.0
# A service that others run is either there or not; only a moment's hiccup is waited for.
EXTERNAL_S = 5.0
# A service that is not up yet has no request to finish, and vLLM hears no SIGTERM while it loads.
ABORT_S = 3.0
KILL_S = 5.0
REAP_S = 2.0
TAIL_LINES = 20

State = Literal["waiting", "starting", "ready", "already up", "external", "failed", "stopping", "stopped", "killed"]
OnChange = Callable[[str, State], None]


class MeshFailure(Exception):
    """The mesh could not be started, or something could not be stopped; the message is for the user.

    `log` holds the last lines of the service that failed, `log_file` where the rest is.
    """

    def __init__(self, message: str, *, log: tuple[str, ...] = (), log_file: Path | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.log_file = log_file


class PidFile(BaseModel):
    """The record of a started service."""

    model_config = ConfigDict(frozen=True)

    service: str
    pid: int
    started_ticks: int
    boot_id: str

    def process(self) -> processes.Process | None:
        """The service's process, if it still lives."""
        process = processes.find(self.pid)
        ours = process and process.started_ticks == self.started_ticks and self.boot_id == processes.boot_id()
        return process if ours else None

    def members(self) -> list[processes.Process]:
        """The living processes of the service's session, also after its leader has died."""
        if self.boot_id != processes.boot_id() or (processes.find(self.pid) and not self.process()):
            return []
        return processes.members(self.pid)


class ServiceStatus(BaseModel):
    """One row of `cragmesh status`."""

    service: str
    url: str
    ready: bool
    pid: int | None = None
    model: str = ""
    device: str = ""
    precision: str = ""
    memory_bytes: int = 0
    uptime_s: float = 0.0
    detail: str = ""


class Supervisor:
    """The services of one run folder.

    Args:
        run_dir: where pid files and logs are.
        cwd: working directory of the services.
        start_timeout_s: replaces each service's own.
        stop_timeout_s: between SIGTERM and SIGKILL.
        on_change: called at every change of a service's state.
    """

    def __init__(
        self,
        services: Sequence[Service],
        run_dir: Path,
        *,
        cwd: Path,
        start_timeout_s: float | None = None,
        stop_timeout_s: float = 15.0,
        on_change: OnChange = lambda _name, _state: None,
    ) -> None:
        self._services = tuple(services)
        self._run_dir = run_dir
        self._cwd = cwd
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._on_change = on_change
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def log_file(self, name: str) -> Path:
        return self._run_dir / "logs" / f"{name}.log"

    async def up(self) -> None:
        """Start what is not running, each service once those before it are ready.

        What this call has started is stopped again when a service fails or the call is cancelled.

        Raises:
            MeshFailure: a service did not become ready, a port is taken, or something is missing.
        """
        (self._run_dir / "logs").mkdir(parents=True, exist_ok=True)
        with self._alone():
            self._preflight()
            ready = {service.name: asyncio.Event() for service in self._services}
            try:
                async with _http() as http:
                    await all_of(self._bring_up(service, ready, http) for service in self._services)
            except BaseException:
                await self._stop(list(self._children), grace_s=min(ABORT_S, self._stop_timeout_s))
                raise

    async def down(self) -> dict[str, State]:
        """Stop every service with a pid file, and say what became of each.

        Raises:
            MeshFailure: processes are left that cannot be stopped.
        """
        names = [path.stem for path in sorted(self._run_dir.glob("*.json"))]
        return await self._stop(names, grace_s=self._stop_timeout_s)

    async def status(self) -> list[ServiceStatus]:
        """Ask each service how it is."""
        async with _http() as http:
            return await all_of(self._status(service, http) for service in self._services)

    # Starting

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with (self._run_dir / "up.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MeshFailure("another `cragmesh up` is at work in this folder") from None
            yield

    def _preflight(self) -> None:
        """Before anything is started, so that what is missing or taken costs nobody a minute of loading models."""
        for service in self._services:
            if service.launch is None or self._running(service.name):
                continue
            try:
                service.launch()
            except NotPrepared as error:
                raise MeshFailure(str(error)) from None
            self._check_port(service)

    def _check_port(self, service: Service) -> None:
        if not processes.is_listened_on(service.port):
            return
        owner = processes.owner_of_port(service.port)
        record = self._read(service.name)
        # Left by a crash of ours: it is removed when the service's turn comes.
        if owner and record and record.members() and owner.session == record.pid:
            return
        who = f"{owner.name} (pid {owner.pid})" if owner else "a process of another user"
        raise MeshFailure(
            f"port {service.port}, which the {service.name} needs, is taken by {who}: "
            f"stop it, or give the {service.name} another one with CRAGMESH_{service.name.upper()}_PORT"
        )

    async def _bring_up(self, service: Service, ready: dict[str, asyncio.Event], http: httpx.AsyncClient) -> None:
        for name in service.after:
            await ready[name].wait()
        if service.launch is None:
            await self._check_external(service, http)
        elif self._running(service.name):
            await self._wait_ready(service, http)
            self._on_change(service.name, "already up")
        else:
            await self._stop([service.name], grace_s=ABORT_S)
            self._on_change(service.name, "starting")
            self._spawn(service, service.launch())
            await self._wait_ready(service, http)
            self._on_change(service.name, "ready")
        ready[service.name].set()

    async def _check_external(self, service: Service, http: httpx.AsyncClient) -> None:
        until = time.monotonic() + EXTERNAL_S
        while not (await service.probe(http))[0]:
            if time.monotonic() > until:
                self._on_change(service.name, "failed")
                raise MeshFailure(
                    f"the {service.name} does not answer at {service.url}{service.ready_path}; "
                    f"CRAGMESH_{service.name.upper()}_URL says that it is run elsewhere"
                )
            await asyncio.sleep(POLL_S)
        self._on_change(service.name, "external")

    def _spawn(self, service: Service, launch: Launch) -> None:
        log_file = self.log_file(service.name)
        if log_file.exists():
            log_file.replace(log_file.with_suffix(".log.old"))
        try:
            with log_file.open("wb") as log:
                child = subprocess.Popen(  # noqa: S603 - our own table says what runs
                    launch.argv,
                    env={**os.environ, **launch.env},
                    cwd=self._cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            self._on_change(service.name, "failed")
            raise MeshFailure(f"the {service.name} cannot be started: {launch.argv[0]}: {error.strerror}") from None
        self._children[service.name] = child
        # A child that is dead already is a zombie until it is waited for, and leaves nothing to remember.
        if process := processes.find(child.pid):
            ticks, boot_id = process.started_ticks, processes.boot_id()
            record = PidFile(service=service.name, pid=child.pid, started_ticks=ticks, boot_id=boot_id)
            try:
                write_whole(self._pid_path(service.name), record.model_dump_json().encode())
            except OSError as error:
                # Without its record nothing would find it again.
                _signal(child.pid, (process,), signal.SIGKILL)
                child.wait()
                self._on_change(service.name, "failed")
                raise MeshFailure(f"{self._pid_path(service.name)} cannot be written: {error.strerror}") from None

    async def _wait_ready(self, service: Service, http: httpx.AsyncClient) -> None:
        limit_s = self._start_timeout_s or service.start_timeout_s
        began = time.monotonic()
        while True:
            answered, _ = await service.probe(http)
            seconds = time.monotonic() - began
            # Asked after the probe: a stranger that took the port meanwhile may have answered it.
            if not self._running(service.name):
                raise self._failure(service, f"{self._end_of(service.name)} {seconds:.1f} s after its start")
            if answered:
                return
            if seconds > limit_s:
                raise self._failure(service, f"was not ready within {limit_s:g} s")
            await asyncio.sleep(POLL_S)

    def _failure(self, service: Service, what: str) -> MeshFailure:
        self._on_change(service.name, "failed")
        log_file = self.log_file(service.name)
        return MeshFailure(f"the {service.name} {what}", log=tail(log_file, TAIL_LINES), log_file=log_file)

    def _end_of(self, name: str) -> str:
        code = child.poll() if (child := self._children.get(name)) else None
        if code is None:
            return "went away"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    # Stopping

    async def _stop(self, names: Sequence[str], *, grace_s: float) -> dict[str, State]:
        records = {name: record for name in names if (record := self._read(name))}
        alive = _living(records)
        states: dict[str, State] = dict.fromkeys(alive, "stopped")
        for name, group in alive.items():
            self._on_change(name, "stopping")
            _signal(records[name].pid, group, signal.SIGTERM)
        alive = await _wait_for_end(records, grace_s)
        if alive:
            states |= dict.fromkeys(alive, "killed")
            until = time.monotonic() + KILL_S
            while alive and time.monotonic() < until:
                for name, group in alive.items():
                    _signal(records[name].pid, group, signal.SIGKILL)
                alive = await _wait_for_end(records, POLL_S)
        for name in records.keys() - alive.keys():
            self._pid_path(name).unlink(missing_ok=True)
            self._reap(name)
        for name, state in states.items():
            self._on_change(name, state)
        if alive:
            pids = ", ".join(f"{process.name} (pid {process.pid})" for group in alive.values() for process in group)
            raise MeshFailure(f"these processes cannot be stopped: {pids}")
        return states

    def _reap(self, name: str) -> None:
        if child := self._children.pop(name, None):
            # It is dead to /proc a moment before its last thread has ended and it can be waited for.
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(REAP_S)

    # Remembering

    def _pid_path(self, name: str) -> Path:
        return self._run_dir / f"{name}.json"

    def _read(self, name: str) -> PidFile | None:
        try:
            return PidFile.model_validate_json(self._pid_path(name).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def _running(self, name: str) -> processes.Process | None:
        record = self._read(name)
        return record.process() if record else None

    # Looking

    async def _status(self, service: Service, http: httpx.AsyncClient) -> ServiceStatus:
        ready, readiness = await service.probe(http)
        record = self._read(service.name)
        process = record.process() if record else None
        group = record.members() if record else []
        return ServiceStatus(
            service=service.name,
            url=service.url,
            ready=ready,
            pid=process.pid if process else None,
            model=readiness.model,
            device=readiness.device,
            precision=readiness.precision,
            memory_bytes=sum(processes.memory_bytes(member.pid) for member in group),
            uptime_s=process.uptime_s if process else 0.0,
            detail=readiness.detail or _explain(service, ready, process, group),
        )


def _living(records: Mapping[str, PidFile]) -> dict[str, list[processes.Process]]:
    """The living processes of each service that has some."""
    return {name: group for name, record in records.items() if (group := record.members())}


async def _wait_for_end(records: Mapping[str, PidFile], limit_s: float) -> dict[str, list[processes.Process]]:
    """Wait until all processes have ended; returns those that live on when the time is up."""
    until = time.monotonic() + limit_s
    while True:
        alive = _living(records)
        if not alive or time.monotonic() > until:
            return alive
        await asyncio.sleep(POLL_S / 4)


def _explain(
    service: Service, ready: bool, process: processes.Process | None, group: Sequence[processes.Process]
) -> str:
    if ready:
        return "" if process else "not started by this mesh"
    if process:
        return "starting, or stuck"
    if group:
        return f"crashed; {len(group)} processes are left, `cragmesh down` removes them"
    return "not reachable" if service.launch is None else "not running"


def _http() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=PROBE_S, trust_env=False)


def _signal(session: int, group: Sequence[processes.Process], number: signal.Signals) -> None:
    """Signal the process group at once, so that no fork slips through, then those that have left it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, number)
    for process in group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) != session:
                os.kill(process.pid, number)
