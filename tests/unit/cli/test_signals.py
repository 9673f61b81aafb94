"""`cragmesh up` in a process of its own, interrupted as a user or an orchestrator would."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from services.cli import processes
from services.cli.supervisor import PidFile
from tests.ports import free_port
from tests.unit.cli.conftest import FAKE

# As in a terminal: whatever runs the tests in the background may have made its children ignore interrupts.
SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from services.cli import main
from services.cli.services import Launch, Service

def table(urls):
    return tuple(
        Service(name, f"http://127.0.0.1:{port}", lambda port=port, behaviour=behaviour: Launch(
            (sys.executable, "-I", "-S", sys.argv[1], port, behaviour)))
        for name, port, behaviour in (("quick", sys.argv[2], "at-once"), ("slow", sys.argv[3], sys.argv[4]))
    )

main.embedded = table
main.load_dotenv = lambda _: False
main.app([sys.argv[5]])
"""


def start(folder: Path, behaviour: str, command: str, ports: tuple[int, int]) -> subprocess.Popen[str]:
    fake = folder / "fake.py"
    fake.write_text(FAKE)
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SCRIPT, str(fake), *map(str, ports), behaviour, command],
        env={**os.environ, "CRAGMESH_RUN_DIR": str(folder / "run")},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_stops_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path, "never-ready", "up", (free_port(), free_port())) as up:
        assert up.stderr
        output = ""
        while "quick: ready" not in output:
            line = up.stderr.readline()
            assert line, output
            output += line
        records = [PidFile.model_validate_json(path.read_bytes()) for path in (tmp_path / "run").glob("*.json")]
        assert len(records) == 2
        up.send_signal(number)
        _, rest = up.communicate(timeout=400)
    assert up.returncode == 130, rest
    assert "interrupted" in rest
    assert not any(processes.members(record.pid) for record in records)


def test_services_outlive_the_command_and_another_one_stops_them(tmp_path: Path) -> None:
    ports = (free_port(), free_port())
    with start(tmp_path, "at-once", "up", ports) as up:
        _, output = up.communicate(timeout=400)
    assert up.returncode == 0, output
    assert "The mesh is up" in output
    record = PidFile.model_validate_json((tmp_path / "run" / "slow.json").read_bytes())
    assert record.process()
    with start(tmp_path, "at-once", "down", ports) as down:
        _, output = down.communicate(timeout=400)
    assert down.returncode == 0, output
    assert "The mesh is down." in output
    assert not processes.members(record.pid)
