"""The files that deploy the mesh, read as what they are: compose as YAML, Kubernetes as rendered by kustomize."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ("overlays/cpu", "overlays/t4", "overlays/search")
KUSTOMIZATIONS = (*OVERLAYS, "monitoring", "jobs", "ray")
Manifest = dict[str, Any]


def tool(name: str) -> str:
    """A program beside the interpreter or on the path; the test that needs it is skipped without it."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed")
    return found


def run(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - programs of this test
        argv, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=400, check=False
    )


@pytest.fixture(scope="session")
def rendered() -> dict[str, list[Manifest]]:
    """Every kustomization's manifests, by its folder below deploy/k8s."""
    kubectl = tool("kubectl")
    manifests = {}
    for name in KUSTOMIZATIONS:
        result = run(kubectl, "kustomize", f"deploy/k8s/{name}")
        assert result.returncode == 0, result.stderr
        assert not result.stderr, result.stderr
        manifests[name] = list(yaml.safe_load_all(result.stdout))
    return manifests


@pytest.fixture(scope="session")
def compose() -> Manifest:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


@pytest.fixture(scope="session")
def compose_gpu() -> Manifest:
    return dict(yaml.safe_load((ROOT / "docker-compose.gpu.yml").read_text()))


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {item["metadata"]["name"]: item for item in manifests if item["kind"] == kind}


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The pod template of every workload, by the workload's name."""
    kinds = ("Deployment", "StatefulSet", "Job")
    return {item["metadata"]["name"]: item["spec"]["template"] for item in manifests if item["kind"] in kinds}


def container(pod: Manifest) -> Manifest:
    (only,) = pod["spec"]["containers"]
    return dict(only)
