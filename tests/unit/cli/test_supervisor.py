"""Starting, finding and stopping processes: no process survives, and none but ours is ever signalled."""

import asyncio
import fcntl
import os
import signal
import socket
from pathlib import Path

import pytest

from services.cli import processes, supervisor
from services.cli.logs import tail
from services.cli.services import Launch, NotPrepared, Service
from services.cli.supervisor import MeshFailure, PidFile
from tests.unit.cli.conftest import Fake, Mesh, ended

pytestmark = pytest.mark.anyio


def pid_of(mesh: Mesh, name: str) -> int:
    return PidFile.model_validate_json(mesh.pid_file(name).read_bytes()).pid


async def test_starts_in_dependency_order_and_stops_everything(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("front", after=("back", "side")), fake("back"), fake("side"))
    await control.up()
    assert mesh.changes[:2] == [("back", "starting"), ("side", "starting")]
    assert mesh.changes[-2:] == [("front", "starting"), ("front", "ready")]
    pids = [pid_of(mesh, name) for name in ("front", "back", "side")]
    assert all(os.getsid(pid) == pid for pid in pids)
    assert "fake service begins" in control.log_file("front").read_text()

    assert await control.down() == {"back": "stopped", "front": "stopped", "side": "stopped"}
    assert not any(processes.find(pid) or processes.members(pid) for pid in pids)
    assert not list((mesh.folder / "run").glob("*.json"))
    assert await control.down() == {}


async def test_what_runs_already_is_left_alone(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("one"), fake("two"))
    await control.up()
    one, two = pid_of(mesh, "one"), pid_of(mesh, "two")
    os.kill(two, signal.SIGKILL)
    await ended(two)
    await control.up()
    assert pid_of(mesh, "one") == one
    assert pid_of(mesh, "two") != two
    assert ("one", "already up") in mesh.changes


async def test_status_tells_what_runs(mesh: Mesh, fake: Fake) -> None:
    service = fake("one", "at-once")
    control = mesh.of(service)
    (row,) = await control.status()
    assert (row.ready, row.pid, row.detail) == (False, None, "not running")
    await control.up()
    (row,) = await control.status()
    assert (row.ready, row.pid, row.model, row.device) == (True, pid_of(mesh, "one"), "tiny", "cpu")
    assert row.memory_bytes > 2**20
    assert 0 <= row.uptime_s < 100


async def test_a_service_that_dies_stops_all_and_shows_its_last_words(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("good", "at-once"), fake("bad", "dies", after=("good",)))
    with pytest.raises(MeshFailure, match=r"the bad ended with exit code 7 .* after its start") as failure:
        await control.up()
    assert failure.value.log == ("fake service begins", "no such model")
    assert failure.value.log_file == control.log_file("bad")
    assert ("good", "stopped") in mesh.changes
    assert not list((mesh.folder / "run").glob("*.json"))


async def test_a_service_that_is_never_ready_is_given_up(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("slow", "never-ready"), start_timeout_s=0.5)
    with pytest.raises(MeshFailure, match=r"the slow was not ready within 0\.5 s"):
        await control.up()
    assert not mesh.pid_file("slow").exists()


async def test_cancelled_start_leaves_nothing(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("one", "at-once"), fake("slow", "never-ready"))
    task = asyncio.create_task(control.up())
    await asyncio.wait_for(mesh.happened("one", "ready"), 60)
    pids = [pid_of(mesh, "one"), pid_of(mesh, "slow")]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(processes.members(pid) for pid in pids)


async def test_a_service_deaf_to_sigterm_is_killed_with_its_children(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("deaf", "ignores-sigterm", "forks"))
    await control.up()
    pid = pid_of(mesh, "deaf")
    assert len(processes.members(pid)) == 2
    assert await control.down() == {"deaf": "killed"}
    assert not processes.members(pid)


async def test_children_of_a_crashed_service_are_found(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("parent", "forks"))
    await control.up()
    first = pid_of(mesh, "parent")
    os.kill(first, signal.SIGKILL)
    await ended(first)
    (row,) = await control.status()
    assert row.detail == "crashed; 1 processes are left, `cragmesh down` removes them"
    await control.up()
    assert not processes.members(first)
    second = pid_of(mesh, "parent")
    os.kill(second, signal.SIGKILL)
    await ended(second)
    assert await control.down() == {"parent": "stopped"}
    assert not processes.members(second)


async def test_a_strangers_port_is_named(mesh: Mesh, fake: Fake, port: int) -> None:
    control = mesh.of(fake("first"), fake("second", port=port))
    with socket.create_server(("127.0.0.1", port)):
        own = processes.find(os.getpid())
        assert own
        with pytest.raises(MeshFailure) as failure:
            await control.up()
    assert f"port {port}, which the second needs, is taken by {own.name} (pid {own.pid})" in str(failure.value)
    assert "CRAGMESH_SECOND_PORT" in str(failure.value)
    assert not mesh.changes


@pytest.mark.parametrize("stale", ["recycled", "rebooted", "gone", "garbled"])
async def test_stale_pid_files_harm_nobody(mesh: Mesh, fake: Fake, stale: str) -> None:
    control = mesh.of(fake("one", "at-once"))
    # A session of its own, as a stranger's would be: its pid is also its session.
    stranger = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    alive = processes.find(stranger.pid)
    assert alive
    record = PidFile(
        service="one",
        pid=2**22 + 1 if stale == "gone" else alive.pid,
        started_ticks=alive.started_ticks + (5 if stale == "recycled" else 0),
        boot_id="another" if stale == "rebooted" else processes.boot_id(),
    )
    mesh.pid_file("one").parent.mkdir()
    mesh.pid_file("one").write_text("{" if stale == "garbled" else record.model_dump_json())
    try:
        assert await control.down() == {}
        await control.up()
        assert pid_of(mesh, "one") != stranger.pid
        await control.down()
        assert processes.find(stranger.pid)
    finally:
        stranger.kill()
        await stranger.wait()


async def test_only_one_up_at_a_time(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("one"))
    lock = mesh.folder / "run" / "up.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(MeshFailure, match="another `cragmesh up`"):
            await control.up()


async def test_what_is_missing_is_said_before_anything_starts(mesh: Mesh, fake: Fake) -> None:
    def unprepared() -> Launch:
        raise NotPrepared("run `make generator`")

    control = mesh.of(fake("one"), Service("generator", "http://127.0.0.1:1", unprepared))
    with pytest.raises(MeshFailure, match="run `make generator`"):
        await control.up()
    assert not mesh.changes
    launch = Launch(("no-such-program",))
    control = mesh.of(Service("one", "http://127.0.0.1:1", lambda: launch))
    with pytest.raises(MeshFailure, match="the one cannot be started: no-such-program: No such file"):
        await control.up()


async def test_a_service_elsewhere_is_only_checked(
    mesh: Mesh, fake: Fake, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "EXTERNAL_S", 0.1)
    elsewhere = Service("generator", f"http://127.0.0.1:{port}", None)
    with pytest.raises(MeshFailure, match=f"does not answer at http://127.0.0.1:{port}/readyz; CRAGMESH_GENERATOR_URL"):
        await mesh.of(elsewhere).up()
    await mesh.of(fake("stand-in", "at-once", port=port)).up()
    running = mesh.supervisor
    await mesh.of(elsewhere).up()
    assert mesh.changes[-1] == ("generator", "external")
    assert await running.down() == {"stand-in": "stopped"}


async def test_the_log_before_the_last_start_is_kept(mesh: Mesh, fake: Fake) -> None:
    control = mesh.of(fake("one", "dies"))
    for _ in range(2):
        with pytest.raises(MeshFailure):
            await control.up()
    log = control.log_file("one")
    assert tail(log, 1) == ("no such model",)
    assert log.with_suffix(".log.old").exists()
    assert tail(log.with_name("none.log"), 1) == ()


def test_as_many_lines_are_shown_as_are_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_text("".join(f"{number} {'x' * 500}\n" for number in range(600)))
    lines = tail(log, 400)
    assert [line.split()[0] for line in lines] == [str(number) for number in range(200, 600)]
    assert len(tail(log, 1_000)) == 600


async def test_a_service_without_a_record_is_not_left_running(
    mesh: Mesh, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(supervisor, "write_whole", full)
    one = fake("one", "at-once")
    with pytest.raises(MeshFailure, match="No space left"):
        await mesh.of(one).up()
    assert not processes.is_listened_on(one.port)
