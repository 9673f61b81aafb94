"""The alerts as the Prometheus operator wants them: `python -m tests.deploy.rules` writes them anew.

kustomize cannot put a file into another document's field, so they are there twice; a test holds them equal.
"""

import yaml

from tests.deploy.conftest import ROOT

ALERTS = ROOT / "deploy" / "observability" / "alerts.yml"
FILE = ROOT / "deploy" / "k8s" / "monitoring" / "alerts.yaml"
HEAD = "# Made of deploy/observability/alerts.yml, where the reasons are, by `python -m tests.deploy.rules`.\n"


def rule() -> str:
    """The file's text."""
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    labels = {"app.kubernetes.io/name": "cragmesh"}
    document = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "cragmesh", "labels": labels},
        "spec": {"groups": groups},
    }
    return HEAD + yaml.safe_dump(document, sort_keys=False, width=1_000)


if __name__ == "__main__":
    FILE.write_text(rule(), encoding="utf-8")
