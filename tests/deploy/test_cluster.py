"""Overlays and chart on an API server with admission (Pod Security `restricted`) and Kubernetes' own controllers.

`make k8s-apply CRAGMESH_KUBERNETES=FOLDER`, a folder with etcd, kube-apiserver and kube-controller-manager; YAML files
in its folder `crds` are applied first, and with them what they define.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.cluster import Cluster, control_plane, wait
from tests.deploy.conftest import OVERLAYS, ROOT, Manifest, lasting, of_kind, pods, run, tool
from tests.deploy.manifests import CHART, helm
from tests.deploy.test_chart import render

PROGRAMS = os.environ.get("CRAGMESH_KUBERNETES", "")
SPACE = ("-n", "cragmesh")
Rendered = dict[str, list[Manifest]]

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="CRAGMESH_KUBERNETES names no folder with a control plane")


@pytest.fixture(scope="module")
def crds() -> list[Path]:
    return sorted((Path(PROGRAMS) / "crds").glob("*.yaml"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, crds: list[Path]) -> Iterator[Cluster]:
    with control_plane(Path(PROGRAMS).absolute(), tool("kubectl"), tmp_path_factory.mktemp("cluster")) as running:
        for file in crds:
            running.kubectl("apply", "--server-side", "-f", str(file))
        yield running


@pytest.fixture
def empty(cluster: Cluster) -> Cluster:
    """The cluster without what another test left."""
    cluster.kubectl("delete", "namespace", "cragmesh", "--ignore-not-found", "--timeout=120s")
    return cluster


def all_ready(cluster: Cluster, workloads: dict[str, Manifest]) -> bool:
    ready = {
        pod["metadata"]["labels"]["app.kubernetes.io/name"]
        for pod in cluster.items("pods", *SPACE)
        if pod["status"]["phase"] == "Running"
    }
    return workloads.keys() <= ready


def generations(cluster: Cluster) -> dict[str, int]:
    """How often each object has changed, but for those whose number an autoscaler sets."""
    found = cluster.items("deployments,statefulsets,cronjobs,networkpolicies", *SPACE)
    scaled = {item["spec"]["scaleTargetRef"]["name"] for item in cluster.items("hpa", *SPACE)}
    return {
        f"{item['kind']} {item['metadata']['name']}": item["metadata"]["generation"]
        for item in found
        if item["kind"] != "Deployment" or item["metadata"]["name"] not in scaled
    }


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_admitted_rolled_scaled_and_deleted(empty: Cluster, rendered: Rendered, name: str) -> None:
    folder = ("-k", str(ROOT / "deploy" / "k8s" / name))
    said = empty.kubectl("apply", *folder)
    # Pod Security warns of a workload whose pods it would refuse; other warnings are of fields that are not known.
    assert "Warning" not in said
    wait(f"pods of {name}", lambda: all_ready(empty, lasting(rendered[name])))
    before = generations(empty)
    empty.kubectl("apply", *folder)
    assert generations(empty) == before
    empty.kubectl("rollout", "restart", "deployment", *SPACE)
    for workload in of_kind(rendered[name], "Deployment"):
        empty.kubectl("rollout", "status", f"deployment/{workload}", "--timeout=120s", *SPACE)
    empty.kubectl("scale", "deployment/gateway", "--replicas=3", *SPACE)
    empty.kubectl("rollout", "status", "deployment/gateway", "--timeout=120s", *SPACE)
    gateways = empty.items("pods", "-l", "app.kubernetes.io/name=gateway", *SPACE)
    assert len([pod for pod in gateways if "deletionTimestamp" not in pod["metadata"]]) == 3
    empty.kubectl("create", "job", "--from=cronjob/qdrant-backup", "backup-1", *SPACE)
    empty.kubectl("wait", "--for=condition=complete", "job/backup-1", "--timeout=120s", *SPACE)
    empty.kubectl("delete", *folder, "--timeout=120s")
    assert not empty.items("namespaces", "--field-selector=metadata.name=cragmesh")


def test_what_pod_security_forbids_is_refused(empty: Cluster, rendered: Rendered) -> None:
    empty.kubectl("apply", "-k", str(ROOT / "deploy" / "k8s" / "overlays" / "cpu"))
    template = pods(rendered["overlays/cpu"])["gateway"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "try"}, "spec": template["spec"]}
    assert "created" in empty.kubectl("create", "-f", "-", *SPACE, stdin=json.dumps(pod))
    spec = {**template["spec"], "hostNetwork": True}
    said = empty.kubectl("create", "-f", "-", *SPACE, stdin=json.dumps({**pod, "spec": spec}), check=False)
    assert 'violates PodSecurity "restricted:latest"' in said


def test_jobs_run_on_demand(empty: Cluster, rendered: Rendered) -> None:
    for folder in ("overlays/t4", "jobs"):
        assert "Warning" not in empty.kubectl("apply", "-k", str(ROOT / "deploy" / "k8s" / folder))
    for name in of_kind(rendered["jobs"], "CronJob"):
        empty.kubectl("create", "job", f"--from=cronjob/{name}", f"{name}-1", *SPACE)
        empty.kubectl("wait", "--for=condition=complete", f"job/{name}-1", "--timeout=120s", *SPACE)


def test_the_chart_is_installed_tested_upgraded_and_removed(empty: Cluster, tmp_path: Path, crds: list[Path]) -> None:
    values = tmp_path / "chart.json"
    on = {
        "ingress": {"enabled": True},
        "services": {"searcher": {"enabled": True}},
        "jobs": {"calibrator": {"enabled": True}},
    }
    with_crds = {
        "autoscaling": {"by": "keda"},
        "httpRoute": {"enabled": True, "gateway": {"className": "any"}},
        "monitoring": {"serviceMonitors": True, "alerts": True},
    }
    values.write_text(json.dumps(on | (with_crds if crds else {})))
    empty.kubectl("create", "namespace", "cragmesh")
    empty.kubectl("label", "namespace", "cragmesh", "pod-security.kubernetes.io/enforce=restricted")

    def chart(*arguments: str) -> None:
        done = run(str(helm()), *arguments, "--kubeconfig", str(empty.kubeconfig), *SPACE)
        assert done.returncode == 0, done.stderr

    chart("install", "cragmesh", str(CHART), "--values", str(values))
    wait("the chart's pods", lambda: all_ready(empty, lasting(render(tmp_path, on))))
    for kind in ("ScaledObject", "Gateway", "HTTPRoute", "ServiceMonitor", "PrometheusRule") if crds else ():
        assert empty.items(kind, *SPACE), kind
    chart("test", "cragmesh", "--timeout=2m")
    made = render(tmp_path, on, "--set", "image.tag=0.1.1")
    values.write_text(json.dumps(on))
    chart("upgrade", "cragmesh", str(CHART), "--values", str(values), "--set=image.tag=0.1.1")
    empty.kubectl("rollout", "status", "deployment/gateway", "--timeout=120s", *SPACE)
    images = {pod["spec"]["containers"][0]["image"] for pod in empty.items("pods", *SPACE)}
    assert "cragmesh/gateway:0.1.1" in images
    assert len(empty.items("deployments", *SPACE)) == len(of_kind(made, "Deployment"))
    chart("rollback", "cragmesh", "1")
    chart("uninstall", "cragmesh")
    wait("the end of all", lambda: not empty.items("deployments", *SPACE))
