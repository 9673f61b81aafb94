"""The audit's judgement, with the tools' replies given: who cannot look is never taken for one that found nothing."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import audit
from tests.deploy.audit import EXPLAINED, NotRun, policy, vulnerabilities
from tests.deploy.conftest import ROOT

Replies = Callable[..., None]


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Replies:
    """Sets what each program prints, by a word of its command line."""
    environment = tmp_path / "env"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").touch()
    (environment / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    monkeypatch.setattr(audit, "ENVIRONMENTS", {"mesh": environment})
    monkeypatch.setattr(audit, "tool", lambda name, program: (program,))
    monkeypatch.setattr(shutil, "which", lambda name, path=None: name)

    def set_replies(**printed: Any) -> None:
        def run(*argv: str) -> subprocess.CompletedProcess[str]:
            for word, reply in printed.items():
                if any(word in part for part in argv):
                    return subprocess.CompletedProcess(
                        argv, 0, json.dumps(reply) if isinstance(reply, dict) else "", "no"
                    )
            return subprocess.CompletedProcess(argv, 0, "pip 26.0 from somewhere", "")

        monkeypatch.setattr(audit, "run", run)

    return set_replies


def scanned(out: Path, *ids: str, passed: int = 5) -> dict[str, Any]:
    finding = {"check_name": "a check", "resource": "Deployment.kg", "file_abs_path": str(out / "jobs.yaml")}
    failed = [finding | {"check_id": check} for check in ids]
    return {"results": {"failed_checks": failed}, "summary": {"passed": passed}}


def test_explained_findings_pass_others_do_not_and_neither_do_stale_explanations(
    replies: Replies, tmp_path: Path
) -> None:
    replies(checkov=scanned(tmp_path, *EXPLAINED), kubectl="kind: Deployment")
    assert policy(tmp_path) == []
    replies(checkov=scanned(tmp_path, *EXPLAINED, "CKV_NEW_1"), kubectl="kind: Deployment")
    (finding,) = policy(tmp_path)
    assert finding.startswith("CKV_NEW_1 a check: jobs: Deployment.kg")
    replies(checkov=scanned(tmp_path, *sorted(EXPLAINED)[1:]), kubectl="kind: Deployment")
    assert policy(tmp_path) == [f"{min(EXPLAINED)} is explained and not found any more"]


def test_a_scanner_that_looked_at_nothing_is_a_finding(replies: Replies, tmp_path: Path) -> None:
    replies(checkov={"passed": 0, "failed": 0}, kubectl="")
    assert policy(tmp_path) == ["the policy scanner checked nothing"]


def test_packages_that_nobody_knows_anything_about_are_not_audited(replies: Replies, tmp_path: Path) -> None:
    replies(audit={"dependencies": [{"name": "pip", "skip_reason": "not found"}]})
    with pytest.raises(NotRun, match=r"NOT AUDITED.*not found"):
        vulnerabilities(tmp_path)
    replies(audit=None)
    with pytest.raises(NotRun, match="NOT AUDITED"):
        vulnerabilities(tmp_path)


def test_what_is_known_against_a_package_is_a_finding(replies: Replies, tmp_path: Path) -> None:
    good, bad = ({"name": name, "version": "1", "vulns": vulns} for name, vulns in (("a", []), ("b", [{"id": "X-1"}])))
    replies(audit={"dependencies": [good]})
    assert vulnerabilities(tmp_path) == []
    replies(audit={"dependencies": [good, bad]})
    assert vulnerabilities(tmp_path) == ["mesh: b 1: X-1"]


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--must-run",), 1)])
def test_what_cannot_be_run_is_said_and_fails_where_it_must_run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    options: tuple[str, ...],
    status: int,
) -> None:
    def away(name: str, program: str) -> str:
        raise NotRun(f"{name} cannot be installed")

    monkeypatch.setattr(audit, "tool", away)
    monkeypatch.setattr(sys, "argv", ["audit", "policy", *options, "--out", str(tmp_path)])
    assert audit.main() == status
    assert "NOT RUN, policy: checkov cannot be installed" in capsys.readouterr().out


def test_a_finding_fails_and_none_does_not(replies: Replies, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["audit", "policy", "--must-run", "--out", str(tmp_path)])
    replies(checkov=scanned(tmp_path, *EXPLAINED), kubectl="kind: Deployment")
    assert audit.main() == 0
    replies(checkov=scanned(tmp_path, *EXPLAINED, "CKV_NEW_1"), kubectl="kind: Deployment")
    assert audit.main() == 1


def test_the_check_of_the_manifests_runs_the_scanner_and_does_not_pass_without_it() -> None:
    recipe = (ROOT / "deploy" / "checks.mk").read_text().partition("\nk8s-check:")[2].partition("\n\n")[0]
    assert "tests.deploy.audit policy --must-run" in recipe
