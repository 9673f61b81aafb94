"""The files that deploy the mesh, read as what they are: compose as YAML, Kubernetes as rendered by kustomize."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ("overlays/cpu", "overlays/search", "overlays/t4", "overlays/gpu1")
KUSTOMIZATIONS = (*OVERLAYS, "monitoring", "jobs", "ray")
Manifest = dict[str, Any]
SERVICES = ("gateway", "retriever", "reranker", "classifier", "kg", "generator")
# In images that install the wheel, of which the generator's is none: it has one name, `cragmesh`.
PROBE = ["python", "-m", "cragmesh", "services.kit.probe"]


def tool(name: str) -> str:
    """A program beside the interpreter or on the path; the test that needs it is skipped without it."""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if not program:
        pytest.skip(f"{name} is not installed")
    return program


def run(*argv: str, stdin: str = "", env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - programs of this test
        argv, cwd=ROOT, input=stdin, env=env, capture_output=True, text=True, timeout=900, check=False
    )


def parse(text: str) -> list[Manifest]:
    """Manifests of a file; by libyaml, since Python's own parser takes a second for each two thousand lines."""
    return [manifest for manifest in yaml.load_all(text, Loader=yaml.CSafeLoader) if manifest]


# Each validation would read all definitions of a version, megabytes of JSON, anew.
utils.schema_contents = cache(utils.schema_contents)
utils.all_versions = cache(utils.all_versions)


def validate(manifest: Manifest, version: str) -> None:
    """Against the schemas of a version of Kubernetes, strictly; what several overlays share is looked at once.

    Raises:
        kubernetes_validate.ValidationError: a field is unknown, missing or of another type.
    """
    _validate(json.dumps(manifest, sort_keys=True), version)


@cache
def _validate(manifest: str, version: str) -> None:
    kubernetes_validate.validate(json.loads(manifest), version, strict=True)


@pytest.fixture(scope="session")
def rendered() -> dict[str, list[Manifest]]:
    """Every kustomization's manifests, by its folder below deploy/k8s."""
    kubectl = tool("kubectl")
    manifests = {}
    for name in KUSTOMIZATIONS:
        result = run(kubectl, "kustomize", f"deploy/k8s/{name}")
        assert result.returncode == 0, result.stderr
        assert not result.stderr, result.stderr
        manifests[name] = parse(result.stdout)
    return manifests


def _compose(name: str) -> Manifest:
    (document,) = parse((ROOT / name).read_text())
    return document


@pytest.fixture(scope="session")
def compose() -> Manifest:
    return _compose("docker-compose.yml")


@pytest.fixture(scope="session")
def compose_gpu() -> Manifest:
    return _compose("docker-compose.gpu.yml")


@pytest.fixture(scope="session")
def compose_gpus(compose_gpu: Manifest) -> list[Manifest]:
    """The files for GPUs: of four cards, and of one."""
    return [compose_gpu, _compose("docker-compose.gpu1.yml")]


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {item["metadata"]["name"]: item for item in manifests if item["kind"] == kind}


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The pod template of every workload, by the workload's name."""
    return lasting(manifests) | {name: job["template"] for name, job in jobs(manifests).items()}


def lasting(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The pod templates of what stays: services and the store."""
    workloads = of_kind(manifests, "Deployment") | of_kind(manifests, "StatefulSet")
    return {name: item["spec"]["template"] for name, item in workloads.items()}


def jobs(manifests: list[Manifest]) -> dict[str, Manifest]:
    """What jobs are, those of a schedule included, by the workload's name."""
    scheduled = {name: item["spec"]["jobTemplate"] for name, item in of_kind(manifests, "CronJob").items()}
    return {name: item["spec"] for name, item in (of_kind(manifests, "Job") | scheduled).items()}


def container(pod: Manifest) -> Manifest:
    (only,) = pod["spec"]["containers"]
    return dict(only)


def variables(pod: Manifest) -> dict[str, Manifest]:
    """The entries of a pod's own environment, by name."""
    return {entry["name"]: entry for entry in container(pod).get("env", [])}
