"""What the mesh is made of, what is known against it, and what a policy scanner says of the manifests.

    python -m tests.deploy.audit [sbom] [vulnerabilities] [policy] [--must-run] [--out out/audit]

- `sbom`: a CycloneDX bill of materials of each environment (the mesh's, vLLM's where it is there); needs no network.
- `vulnerabilities`: pip-audit over the same; where no vulnerability service answers it says NOT AUDITED, and that is
  no failure.
- `policy`: checkov over every rendered kustomization; a finding without an explanation below fails, and so does an
  explanation that nothing needs any more.

Each tool has an environment of its own, which uv makes when it is missing: their dependencies contradict each other,
and none belongs into the mesh's. Where the package index cannot be reached either, it says NOT RUN, and with
`--must-run` that fails: who asks for one check wants no pass because nobody looked.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from deploy import release
from services.generator.installer import pip_settings, translate
from tests.deploy import conftest
from tests.deploy.conftest import KUSTOMIZATIONS, ROOT

TOOLS = {"cyclonedx-bom": release.CYCLONEDX, "pip-audit": "2.10.1", "checkov": "3.3.30"}
ENVIRONMENTS = {"mesh": ROOT / ".venv", "generator": ROOT / ".venv-generator"}
# Asked about first, and alone: the service answers for the one package that every environment has, or for none.
PROBE = "pip"

EXPLAINED = {
    "CKV_K8S_15": "pulling again at every start would tie a restart to the registry; tags are never written twice",
    "CKV_K8S_35": "the mesh's token and the generator's key are read by the settings, from the environment; the keys "
    "of callers, which rotate, are a file",
    "CKV_K8S_43": "whoever deploys builds the images; `kustomize edit set image NAME@sha256:...` pins what was built",
}


class NotRun(Exception):
    """A tool cannot be had on this machine."""


@cache
def _settings_of_uv() -> dict[str, str]:
    """What pip is told of indexes, as uv is told it."""
    return translate(pip_settings()) or {}


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program, uv among them, which is told what pip is told unless it is told something itself."""
    return conftest.run(*argv, env={**_settings_of_uv(), **os.environ})


def tool(name: str, program: str) -> tuple[str, ...]:
    """The command of a tool, which uv installs when it is missing.

    Raises:
        NotRun: the package index cannot be reached, or has no such version.
    """
    environment = ("tool", "run", "--quiet", "--python", sys.executable, "--from", f"{name}=={TOOLS[name]}")
    command = (str(release.UV), *environment, program)
    tried = run(*command, "--version")
    if tried.returncode != 0:
        raise NotRun(f"{name} cannot be installed: {_last(tried.stderr)}")
    return command


def say(line: str) -> None:
    print(f"audit: {line}", flush=True)


def environments() -> dict[str, Path]:
    return {name: folder for name, folder in ENVIRONMENTS.items() if (folder / "bin" / "python").exists()}


def sbom(out: Path) -> list[str]:
    """A bill of materials of each environment; what is wrong, in words."""
    program = tool("cyclonedx-bom", "cyclonedx-py")
    wrong = []
    for name, folder in environments().items():
        say(f"bill of materials of {folder.name}")
        file = out / f"{name}.cdx.json"
        # Its validation of every address in it takes twenty times as long as all else, over what its own library wrote.
        options = ("--output-reproducible", "--no-validate", "-o", str(file))
        made = run(*program, "environment", *options, str(folder / "bin" / "python"))
        if made.returncode != 0:
            wrong.append(f"no bill of materials of {name}: {_last(made.stderr)}")
            continue
        components = json.loads(file.read_text(encoding="utf-8"))["components"]
        without = sum("version" not in component for component in components)
        say(f"{file}: {len(components)} components")
        if without:
            wrong.append(f"{without} components of {name} have no version")
    return wrong


def vulnerabilities(out: Path) -> list[str]:
    """What is known against each environment's packages."""
    program = tool("pip-audit", "pip-audit")
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "requirements.txt"
        version = run(sys.executable, "-m", "pip", "--version").stdout.split()[1]
        probe.write_text(f"{PROBE}=={version}\n")
        try:
            asked = _pip_audit(program, "--no-deps", "--disable-pip", "--requirement", str(probe))
        except NotRun as error:
            raise NotRun(f"NOT AUDITED, no vulnerability service answers: {error}") from None
    if any("skip_reason" in found for found in asked):
        raise NotRun(f"NOT AUDITED, no vulnerability service answers: {asked[0]['skip_reason']}")
    wrong = []
    for name, environment in environments().items():
        say(f"vulnerabilities of {environment.name}")
        (packages,) = environment.glob("lib/python3*/site-packages")
        found = _pip_audit(program, "--path", str(packages))
        (out / f"{name}.vulnerabilities.json").write_text(json.dumps(found, indent=1))
        skipped = [item["name"] for item in found if "skip_reason" in item]
        say(f"{len(found) - len(skipped)} packages of {name} audited, {len(skipped)} not: {', '.join(skipped) or '-'}")
        for item in found:
            if ids := ", ".join(known["id"] for known in item.get("vulns", ())):
                wrong.append(f"{name}: {item['name']} {item['version']}: {ids}")
    return wrong


def _pip_audit(program: tuple[str, ...], *arguments: str) -> list[dict[str, Any]]:
    done = run(*program, "--format", "json", "--progress-spinner", "off", "--timeout", "5", *arguments)
    try:
        return list(json.loads(done.stdout)["dependencies"])
    except ValueError:
        raise NotRun(_last(done.stderr)) from None


def policy(out: Path) -> list[str]:
    """Findings of the policy scanner that nothing explains."""
    program = tool("checkov", "checkov")
    kubectl = shutil.which("kubectl", path=str(ENVIRONMENTS["mesh"] / "bin")) or shutil.which("kubectl")
    if kubectl is None:
        raise NotRun("there is no kubectl that could render the manifests")
    manifests: dict[str, str] = {}
    for name in KUSTOMIZATIONS:
        rendered = run(kubectl, "kustomize", f"deploy/k8s/{name}")
        if rendered.returncode != 0:
            return [f"{name} cannot be rendered: {_last(rendered.stderr)}"]
        file = out / f"{name.replace('/', '-')}.yaml"
        file.write_text(rendered.stdout, encoding="utf-8")
        manifests[str(file)] = name
    say(f"policies over {', '.join(manifests.values())}")
    scan = ("--framework", "kubernetes", "--skip-download", "--quiet", "--compact", "--output", "json")
    report = json.loads(run(*program, *scan, "--file", *manifests).stdout)
    # Without results where nothing that it knows was in the files.
    passed = report["summary"]["passed"] if "results" in report else 0
    found: dict[str, set[str]] = {}
    for finding in report["results"]["failed_checks"] if passed else ():
        check = f"{finding['check_id']} {finding['check_name']}"
        found.setdefault(check, set()).add(f"{manifests[finding['file_abs_path']]}: {finding['resource']}")
    say(f"{passed} checks passed, {sum(map(len, found.values()))} did not")
    if not passed:
        return ["the policy scanner checked nothing"]
    wrong = []
    for check, where in sorted(found.items()):
        why = EXPLAINED.get(check.split()[0], "")
        say(f"{check}, {len(where)} times: {why or 'NOT EXPLAINED'}")
        if not why:
            wrong.append(f"{check}: {', '.join(sorted(where))}")
    stale = EXPLAINED.keys() - {check.split()[0] for check in found}
    return wrong + [f"{check} is explained and not found any more" for check in sorted(stale)]


PARTS: dict[str, Callable[[Path], list[str]]] = {"sbom": sbom, "vulnerabilities": vulnerabilities, "policy": policy}


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "it says nothing"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none")
    parser.add_argument("--must-run", action="store_true", help="fail where a part cannot be run")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "audit")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    args.out.mkdir(parents=True, exist_ok=True)
    wrong, not_run = [], []
    # At the same time: they wait for an index, for a service and for programs.
    with ThreadPoolExecutor() as pool:
        under_way = {part: pool.submit(PARTS[part], args.out.absolute()) for part in args.parts or PARTS}
    for part, findings in under_way.items():
        try:
            wrong += findings.result()
        except NotRun as error:
            not_run.append(part)
            say(f"NOT RUN, {part}: {error}")
    for line in wrong:
        say(f"FINDING {line}")
    if args.must_run and not_run:
        say(f"FAILED, since it was NOT RUN: {', '.join(not_run)}")
    return int(bool(wrong) or (args.must_run and bool(not_run)))


if __name__ == "__main__":
    sys.exit(main())
