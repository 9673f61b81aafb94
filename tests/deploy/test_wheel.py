"""The wheel: one name in an environment, beside which another's `proto` stays what it was."""

import os
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from services.cli import launcher
from tests.deploy.conftest import ROOT, run, tool

OTHERS = "somebody else's"
# Weights, pages and records weigh much, and show nothing here.
HEAVY = ("*.safetensors", "*.npz", "*.png", "*.jsonl", "recorded", "node_modules")
# Of the images' recipes.
NOT_INSTALLED = {"services/Dockerfile", "services/install.sh", "services/generator/Dockerfile"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment's packages: the wheel's, and another's of the name `proto`."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("proto", "services", "lab"):
        ignored = shutil.ignore_patterns("__pycache__", *HEAVY)
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / name, source / name)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-W", "ignore", "-c", build, str(made)], cwd=source, check=True, capture_output=True
    )
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(next(made.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    (folder / "proto").mkdir(exist_ok=False)
    (folder / "proto" / "__init__.py").write_text(f"WHOSE = {OTHERS!r}\n")
    return folder


def python(site: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = (sys.executable, "-P", *arguments)
    ran = subprocess.run(  # noqa: S603 - our own
        command, cwd=site, env=environment, capture_output=True, text=True, check=False, timeout=400
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_wheel_installs_one_name(site: Path) -> None:
    names = {path.name for path in site.iterdir() if path.suffix != ".dist-info"}
    assert names == {"cragmesh", "proto"}
    code = site / "cragmesh" / "code"
    assert {path.name for path in code.iterdir()} == {"proto", "services", "lab"}
    for data in ("services/kg/domains/movie/domain.yaml", "services/generator/plugin", "proto/openapi/gateway.json"):
        assert (code / data).exists(), data


def test_the_wheel_has_every_file_of_the_checkout(site: Path) -> None:
    tracked = run(tool("git"), "ls-files", "proto", "services", "lab").stdout.split()
    wanted = {
        name
        for name in tracked
        if not any(fnmatch(part, pattern) for part in name.split("/") for pattern in HEAVY)
        and not name.startswith("services/cli/launcher/")
    }
    assert "services/gateway/data/reports/lab-1.5b/db3-crag_pages/summary.json" in wanted
    code = site / "cragmesh" / "code"
    assert {name for name in wanted if not (code / name).exists()} == NOT_INSTALLED


def test_anothers_proto_is_not_ours(site: Path) -> None:
    assert python(site, "-c", "import cragmesh, proto; print(proto.WHOSE)").strip() == OTHERS


def test_the_command_and_its_children_find_the_code(site: Path, tmp_path: Path) -> None:
    assert "feedback" in python(site, "-c", "import sys, cragmesh; sys.argv[1:] = ['--help']; cragmesh.main()")
    keys = (str(tmp_path / "keys"), "add", "alice")
    assert python(site, "-m", "cragmesh", "services.gateway.keys", *keys).startswith("cm_")
    child = "import cragmesh, subprocess, sys; cragmesh.enter(); " + (
        "subprocess.run([sys.executable, '-P', '-c', 'import proto.base; print(proto.base.__file__)'], check=True)"
    )
    assert str(site / "cragmesh" / "code") in python(site, "-c", child)


def test_a_checkout_beside_anothers_proto_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher.enter()
    monkeypatch.setattr(launcher, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="another package"):
        launcher.enter()
