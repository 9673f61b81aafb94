"""What kustomize and `kubectl apply` take, as the chart renders it: `python -m tests.deploy.manifests` writes it anew.

The chart in deploy/helm/cragmesh is the one source; a test holds the files in deploy/k8s equal to it.
"""

import shutil
import sys
from pathlib import Path

from tests.deploy.conftest import ROOT, run

CHART = ROOT / "deploy" / "helm" / "cragmesh"
# Where `make helm` puts it; another helm is one on the path.
HELM = ROOT / ".venv-helm" / "bin" / "helm"
# Values files by overlay, each over those before it.
OVERLAYS = {"cpu": ("cpu",), "search": ("cpu", "search"), "t4": ("t4",), "gpu1": ("gpu1",)}
CLAIMS = ("models.from=claim", "confidence.from=claim", "services.searcher.enabled=true")
# What is rendered beside the mesh, by folder: the values that add it.
BESIDE = {
    "jobs": tuple(f"jobs.{name}.enabled=true" for name in ("calibrator", "evaluator", "graph-loader", "trainer")),
    "monitoring": ("monitoring.serviceMonitors=true", "monitoring.alerts=true"),
}
HEAD = "# Made of deploy/helm/cragmesh by `make manifests`: change the chart, or patch this by an overlay of yours.\n"


def helm() -> str | None:
    """The program's path; None where there is none."""
    return str(HELM) if HELM.exists() else shutil.which("helm")


def template(*arguments: str) -> str:
    """The chart's manifests.

    Raises:
        RuntimeError: helm is missing, or refuses; its own words.
    """
    program = helm()
    if program is None:
        raise RuntimeError("there is no helm: make helm")
    command = [program, "template", "cragmesh", str(CHART), "--namespace", "cragmesh", "--skip-tests", *arguments]
    done = run(*command)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def documents(text: str) -> list[str]:
    """Its documents, without helm's remarks on where each comes from."""
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# Source: "))
    return [document.strip() + "\n" for document in kept.split("---\n") if document.strip()]


def files() -> dict[Path, str]:
    """What each file below deploy/k8s is to hold."""
    made = {}
    for overlay, values in OVERLAYS.items():
        chosen = [argument for name in values for argument in ("--values", str(CHART / f"values-{name}.yaml"))]
        made[f"overlays/{overlay}"] = documents(template(*chosen, "--set", "namespace.create=true"))
    base = documents(template("--set", ",".join(CLAIMS)))
    for folder, values in BESIDE.items():
        with_it = documents(template("--set", ",".join((*CLAIMS, *values))))
        made[folder] = [document for document in with_it if document not in base]
    place = ROOT / "deploy" / "k8s"
    return {place / folder / "mesh.yaml": HEAD + "---\n".join(found) for folder, found in made.items()}


if __name__ == "__main__":
    try:
        for file, text in files().items():
            file.write_text(text, encoding="utf-8")
    except RuntimeError as error:
        sys.exit(str(error))
