"""Releases: one version everywhere, archives that follow from what is in them, and what the usual CI runs."""

import re
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import release
from tests.deploy.conftest import ROOT, run, tool

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
EPOCH = 1_700_000_000
PUSHED = "gateway retriever reranker classifier kg searcher trainer"


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    return dict(yaml.safe_load(WORKFLOW.read_text())["jobs"])


def steps(job: dict[str, Any], key: str) -> list[str]:
    return [step[key] for step in job["steps"] if key in step]


def images(*settings: str) -> str:
    """What `make images` would run."""
    return run("make", "--dry-run", "images", "REGISTRY=ghcr.io/owner", *settings).stdout


def test_the_version_of_pyproject_is_everybodys() -> None:
    version = release.version()
    assert release.version(ROOT / "clients" / "python") == version
    chart = yaml.safe_load((ROOT / "deploy/helm/cragmesh/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    manifests = "".join(file.read_text() for file in (ROOT / "deploy/k8s").rglob("mesh.yaml"))
    assert set(re.findall(r"image: cragmesh/[a-z-]+:(\S+)", manifests)) == {version}, "make manifests"
    assert set(re.findall(r'app.kubernetes.io/version: "(.+)"', manifests)) == {version}, "make manifests"
    built = images().splitlines()[1:]
    assert all(f"--label org.opencontainers.image.version={version} " in line for line in built)
    assert re.findall(r"--tag ghcr.io/owner/cragmesh/([a-z]+):" + re.escape(version), "\n".join(built)) == [
        *PUSHED.split(),
        "evaluator",
        "generator",
    ]
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert changes.index("## [Unreleased]") < changes.index(f"## [{version}]")


def test_what_has_no_wheels_for_arm64_is_not_built_for_it() -> None:
    built = re.findall(r"cragmesh/([a-z]+):\S+-arm64 --push", images(f"TAG={release.version()}-arm64", "PUSH=1"))
    assert built == PUSHED.split()


def test_a_tag_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["release", "--tag", "v0.0.1"])
    with pytest.raises(SystemExit, match=r"the tag is v0\.0\.1, and the project's version "):
        release.main()


def test_an_archive_follows_from_its_members(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tgz", tmp_path / "other.tgz"
    members = {"a/b": (b"x", 0o644), "a/a": (b"y", 0o755)}
    release.archive(one, members, EPOCH)
    release.archive(other, dict(reversed(members.items())), EPOCH)
    assert one.read_bytes() == other.read_bytes()
    (tmp_path / "a").mkdir()
    for name, (content, mode) in members.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(mode | 0o020)
    with tarfile.open(other, "w:gz") as tar:
        tar.add(tmp_path / "a", "a")
    assert one.read_bytes() != other.read_bytes()
    release.repack(other, EPOCH)
    assert one.read_bytes() == other.read_bytes()


def test_the_chart_is_packed_with_what_it_links_to(tmp_path: Path) -> None:
    release.chart(ROOT, tmp_path, EPOCH)
    (file,) = tmp_path.iterdir()
    with tarfile.open(file) as tar:
        names = tar.getnames()
        alerts = tar.extractfile("cragmesh/files/alerts.yml")
        assert alerts
        assert alerts.read() == (ROOT / "deploy/observability/alerts.yml").read_bytes()
        assert all(item.isfile() and item.mtime == EPOCH for item in tar)
    assert {"cragmesh/Chart.yaml", "cragmesh/values.schema.json", "cragmesh/templates/services.yaml"} <= set(names)


def test_sums_are_what_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "kg.txt").write_text("lark==1\n")
    (tmp_path / "SHA256SUMS").write_text("".join(release.sums(tmp_path)))
    checked = run("bash", "-c", f"cd {tmp_path} && sha256sum --check SHA256SUMS")
    assert checked.stdout == "locks/kg.txt: OK\n"


def test_images_install_what_is_locked() -> None:
    recipe = (ROOT / "services/Dockerfile").read_text()
    assert '--no-deps --require-hashes -r "/locks/${SERVICE}.txt"' in recipe
    assert f"in {'|'.join(release.ENCODER)}) sh install.sh /opt/cragmesh --no-compile --no-deps -r" in recipe
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(release.ENCODER) <= set(release.LOCKED) <= extras.keys()
    assert {*release.LOCKED, "trainer"} == {*PUSHED.split(), "evaluator"}
    assert not [name for name in release.LOCKED if any("torch" in line for line in extras[name])]


def test_the_workflow_runs_targets_that_exist_and_the_readmes_command(jobs: dict[str, Any]) -> None:
    text = "".join((ROOT / name).read_text() for name in ("Makefile", "deploy/checks.mk"))
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", text, re.MULTILINE))
    asked = {match for job in jobs.values() for line in steps(job, "run") for match in re.findall(r"^make (\S+)", line)}
    assert {"test", "release-check", "images", "images-merge"} <= asked <= targets
    assert "make test" in steps(jobs["test"], "run")
    assert "    make test " in (ROOT / "README.md").read_text()


def test_the_workflow_publishes_on_a_tag_alone_what_was_tested(jobs: dict[str, Any]) -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert {name for name, job in jobs.items() if "permissions" in job} == {"images", "publish"}
    assert jobs["images"]["if"] == "github.ref_type == 'tag'"
    assert set(jobs["images"]["needs"]) == {"test", "release"}
    assert jobs["publish"]["needs"] == "images"
    assert [entry["arch"] for entry in jobs["images"]["strategy"]["matrix"]["include"]] == ["amd64", "arm64"]
    for job in jobs.values():
        assert job["timeout-minutes"]
        for action in steps(job, "uses"):
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)


def test_the_workflow_follows_githubs_schema() -> None:
    checked = run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", str(WORKFLOW))
    assert checked.returncode == 0, checked.stdout
