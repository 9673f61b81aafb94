"""The chart: what its values add and take away, and that deploy/k8s is what it renders."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from lab.capacity.plan import ON_CARDS, plan
from services.gateway.settings import GatewaySettings
from tests.deploy.conftest import (
    PROBE,
    ROOT,
    Manifest,
    container,
    lasting,
    of_kind,
    parse,
    pods,
    run,
    tool,
    validate,
    variables,
)
from tests.deploy.manifests import CHART, files, helm, template
from tests.deploy.test_manifests import CUSTOM, VERSIONS
from tests.deploy.test_observability import OPTIONAL_JOBS

ELSEWHERE = [{"to": [{"namespaceSelector": {}}], "ports": [{"protocol": "TCP", "port": 8080}]}]


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    if helm() is None:
        pytest.skip("there is no helm: make helm")


def render(folder: Path, values: dict[str, Any], *arguments: str) -> list[Manifest]:
    """The chart's manifests under values."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    return parse(template("--values", str(file), *arguments))


def policy(manifests: list[Manifest], name: str) -> Manifest:
    return dict(of_kind(manifests, "NetworkPolicy")[name]["spec"])


def test_what_kustomize_gives_is_what_the_chart_renders(rendered: dict[str, list[Manifest]]) -> None:
    kubernetes = ROOT / "deploy" / "k8s"
    made = files()
    assert {str(file.parent.relative_to(kubernetes)) for file in made} <= rendered.keys()
    for file, text in made.items():
        assert file.read_text() == text, "make manifests"
        chart = {(item["kind"], item["metadata"]["name"]): item for item in parse(text)}
        for item in rendered[str(file.parent.relative_to(kubernetes))]:
            if item["kind"] != "Namespace":
                assert item["metadata"].pop("namespace") == "cragmesh"
            assert item == chart.pop((item["kind"], item["metadata"]["name"]))
        assert not chart


def test_a_namespace_is_made_on_demand_and_never_written_into_what_is_in_it(tmp_path: Path) -> None:
    manifests = render(tmp_path, {}, "--namespace", "elsewhere")
    assert not of_kind(manifests, "Namespace")
    assert not [item for item in manifests if "namespace" in item["metadata"]]
    (made,) = of_kind(render(tmp_path, {"namespace": {"create": True}}, "--namespace", "elsewhere"), "Namespace")
    assert made == "elsewhere"


def test_all_that_can_be_switched_on_is_valid(tmp_path: Path) -> None:
    values = {
        "image": {"registry": "registry.example.com", "pullSecrets": ["pull"], "digests": {"kg": f"sha256:{'0' * 64}"}},
        "autoscaling": {"by": "keda"},
        "services": {"searcher": {"enabled": True}, "generator": {"autoscale": {"min": 1, "max": 4, "waiting": 4}}},
        "ingress": {"enabled": True, "className": "nginx", "annotations": {"a/b": "c"}},
        "httpRoute": {"enabled": True, "gateway": {"className": "envoy"}},
        "monitoring": {"labels": {"release": "stack"}, "serviceMonitors": True, "alerts": True, "dashboard": True},
        "jobs": {name: {"enabled": True} for name in ("calibrator", "evaluator", "graph-loader", "trainer")},
    }
    manifests = render(tmp_path, values, "--values", str(CHART / "values-t4.yaml"))
    for item in manifests:
        if item["kind"] not in CUSTOM:
            validate(item, VERSIONS[-1])
    assert not of_kind(manifests, "HorizontalPodAutoscaler")
    scaled = of_kind(manifests, "ScaledObject")
    assert scaled.keys() == {"gateway", "classifier", "kg", "generator"}
    assert "vllm:num_requests_waiting" in str(scaled["generator"])
    assert "replicas" not in of_kind(manifests, "Deployment")["generator"]["spec"]
    for item in [*of_kind(manifests, "ServiceMonitor").values(), *of_kind(manifests, "PrometheusRule").values()]:
        assert item["metadata"]["labels"]["release"] == "stack"
    board = json.loads(of_kind(manifests, "ConfigMap")["cragmesh-dashboard"]["data"]["cragmesh.json"])
    assert board["title"] == "Cragmesh"
    hosts = ",".join(["cragmesh.example.com"] * 2)
    assert of_kind(manifests, "ConfigMap")["mesh"]["data"]["CRAGMESH_HOSTS"] == hosts
    (route,) = of_kind(manifests, "HTTPRoute").values()
    (listener,) = of_kind(manifests, "Gateway")["gateway"]["spec"]["listeners"]
    assert [parent["name"] for parent in route["spec"]["parentRefs"]] == ["gateway"]
    assert (listener["protocol"], listener["hostname"]) == ("HTTPS", *route["spec"]["hostnames"])
    (entry,) = of_kind(manifests, "Ingress").values()
    assert entry["spec"]["tls"] == [{"hosts": ["cragmesh.example.com"], "secretName": "cragmesh-tls"}]
    for name, pod in pods(manifests).items():
        assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]
        assert pod["spec"]["serviceAccountName"] in of_kind(manifests, "ServiceAccount")
        image = container(pod)["image"]
        assert name in ("qdrant", "valkey") or image.startswith("registry.example.com/cragmesh/")
        assert ("@sha256:" in image) is (name in ("kg", "graph-loader"))


def test_every_label_of_the_convention_is_on_every_object_and_pod(tmp_path: Path) -> None:
    manifests = render(tmp_path, {}, "--set", "image.tag=1.2.3,monitoring.serviceMonitors=true")
    wanted = {f"app.kubernetes.io/{name}" for name in ("name", "instance", "component", "part-of", "version")}
    for item in [*manifests, *pods(manifests).values()]:
        assert item["metadata"]["labels"].keys() == wanted
        assert item["metadata"]["labels"]["app.kubernetes.io/version"] == "1.2.3"


def test_a_generator_elsewhere_has_a_way_to_it(tmp_path: Path) -> None:
    values = {
        "services": {"generator": {"enabled": False}},
        "config": {"CRAGMESH_GENERATOR_URL": "http://router.inference:8080"},
        "network": {"external": {"generator": ELSEWHERE}},
    }
    manifests = render(tmp_path, values)
    assert "generator" not in lasting(manifests)
    config = of_kind(manifests, "ConfigMap")["mesh"]["data"]
    assert config["CRAGMESH_GENERATOR_URL"] == "http://router.inference:8080"
    policies = of_kind(manifests, "NetworkPolicy")
    asking = {name for name in policies if ELSEWHERE[0] in policies[name]["spec"].get("egress", [])}
    assert asking == {"gateway", "classifier", "kg"}


def test_an_egress_proxy_is_reached_by_the_searcher_alone(tmp_path: Path) -> None:
    proxy = [{"to": [{"ipBlock": {"cidr": "10.0.4.7/32"}}], "ports": [{"protocol": "TCP", "port": 3128}]}]
    network = {"external": {"proxy": proxy, "web": []}}
    manifests = render(tmp_path, {"services": {"searcher": {"enabled": True}}, "network": network})
    policies = of_kind(manifests, "NetworkPolicy")
    assert [name for name in policies if proxy[0] in policies[name]["spec"].get("egress", [])] == ["searcher"]
    ways = policy(manifests, "searcher")["egress"]
    assert not [entry for rule in ways for entry in rule["ports"] if entry["port"] in (80, 443)]


def test_batches_reach_their_database_where_the_gateway_is_said_to_talk_to_it(tmp_path: Path) -> None:
    usual = yaml.safe_load((CHART / "values.yaml").read_text())["services"]["gateway"]["talksTo"]
    secrets = {"CRAGMESH_BATCHES_DATABASE": "cragmesh-batches/url"}
    values = {
        "services": {"gateway": {"secrets": secrets, "talksTo": [*usual, "database"]}},
        "network": {"external": {"database": ELSEWHERE}},
    }
    manifests = render(tmp_path, values)
    assert "valueFrom" in variables(pods(manifests)["gateway"])["CRAGMESH_BATCHES_DATABASE"]
    assert ELSEWHERE[0] in policy(manifests, "gateway")["egress"]
    assert ELSEWHERE[0] not in policy(render(tmp_path, {"network": values["network"]}), "gateway")["egress"]


def _labels(rule: Manifest) -> list[Manifest]:
    peers = rule.get("from", []) + rule.get("to", [])
    return [peer["podSelector"]["matchLabels"] for peer in peers if "podSelector" in peer]


def test_stores_of_their_own_charts_take_the_place_of_ours(tmp_path: Path) -> None:
    cluster = {"app.kubernetes.io/name": "qdrant", "app.kubernetes.io/instance": "qdrant"}
    values = {
        "qdrant": {"enabled": False, "cluster": cluster},
        "valkey": {"enabled": False},
        "network": {"external": {"qdrant": ELSEWHERE, "valkey": ELSEWHERE, "database": ELSEWHERE}},
        "services": {
            "kg": {"env": {"CRAGMESH_KG_DATABASE": None}, "secrets": {"CRAGMESH_KG_DATABASE": "cragmesh-kg/url"}},
        },
        "jobs": {"graph-loader": {"enabled": True}},
    }
    manifests = render(tmp_path, values)
    assert not {"qdrant", "valkey"} & pods(manifests).keys()
    assert "CRAGMESH_VALKEY_URL" not in of_kind(manifests, "ConfigMap")["mesh"]["data"]
    nodes = policy(manifests, "qdrant-cluster")
    assert nodes["podSelector"]["matchLabels"] == cluster
    peers = [{entry["port"] for entry in rule["ports"]} for rule in nodes["ingress"] if cluster in _labels(rule)]
    assert peers == [{6333, 6335}]
    for name in ("retriever", "qdrant-backup"):
        assert cluster in [labels for rule in policy(manifests, name)["egress"] for labels in _labels(rule)]
    alone = render(tmp_path, {"qdrant": {"enabled": False}})
    assert not {"qdrant", "qdrant-backup"} & pods(alone).keys()
    for name in ("retriever", "gateway", "kg"):
        assert ELSEWHERE[0] in policy(manifests, name)["egress"]
    # A loader without a database would fill a file that goes with its pod.
    for name, optional in (("kg", True), ("graph-loader", False)):
        database = variables(pods(manifests)[name])["CRAGMESH_KG_DATABASE"]
        assert database["valueFrom"]["secretKeyRef"] == {"name": "cragmesh-kg", "key": "url", "optional": optional}
    guide = (ROOT / "deploy" / "helm" / "values" / "postgresql.yaml").read_text()
    assert "create secret generic cragmesh-kg --from-literal=url=" in guide


@pytest.mark.parametrize(
    ("by", "gateway", "most"),
    [
        ("hpa", {}, "10"),
        ("keda", {"autoscale": {"min": 1, "max": 4, "waiting": 4}}, "4"),
        ("hpa", {"autoscale": None, "replicas": 3}, "3"),
        ("none", {}, "2"),
    ],
)
def test_gateways_share_without_a_store_by_the_most_that_there_may_be(
    tmp_path: Path, by: str, gateway: dict[str, Any], most: str
) -> None:
    manifests = render(tmp_path, {"autoscaling": {"by": by}, "services": {"gateway": gateway}})
    assert of_kind(manifests, "ConfigMap")["mesh"]["data"]["CRAGMESH_GATEWAYS"] == most
    for kind, field in (("HorizontalPodAutoscaler", "maxReplicas"), ("ScaledObject", "maxReplicaCount")):
        for scaler in of_kind(manifests, kind).keys() & {"gateway"}:
            assert str(of_kind(manifests, kind)[scaler]["spec"][field]) == most
    assert str(of_kind(manifests, "Deployment")["gateway"]["spec"].get("replicas", most)) == most


def test_gateways_find_valkey_and_a_secret_wins(tmp_path: Path) -> None:
    manifests = render(tmp_path, {})
    url = urlsplit(of_kind(manifests, "ConfigMap")["mesh"]["data"]["CRAGMESH_VALKEY_URL"])
    (port,) = of_kind(manifests, "Service")[str(url.hostname)]["spec"]["ports"]
    assert url.port == port["port"]
    # A container's own variables go before those of `envFrom`, and one whose optional secret is missing is left out.
    (own,) = (entry for entry in container(pods(manifests)["gateway"])["env"] if entry["name"] == "CRAGMESH_VALKEY_URL")
    assert own["valueFrom"]["secretKeyRef"] == {"name": "cragmesh-valkey", "key": "url", "optional": True}


@pytest.mark.parametrize("elsewhere", [(), ("generator",), ("reranker", "kg")])
def test_nobody_is_woken_for_a_service_that_is_elsewhere(tmp_path: Path, elsewhere: tuple[str, ...]) -> None:
    monitoring = {"serviceMonitors": True, "alerts": True}
    services = {name: {"enabled": False} for name in elsewhere}
    manifests = render(tmp_path, {"services": services, "monitoring": monitoring})
    (rules,) = (item["spec"] for item in of_kind(manifests, "PrometheusRule").values())
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    missed = {job for text in expressions for job in re.findall(r'absent\(up\{job="(\w+)"}\)', text)}
    assert missed == of_kind(manifests, "ServiceMonitor").keys() - OPTIONAL_JOBS
    assert 'up{job="generator"} == 0' in str(expressions)


def test_a_plan_over_the_values_of_t4s_takes_the_cards_that_it_prices(tmp_path: Path) -> None:
    deployment = plan(100, 10**7)
    file = tmp_path / "mesh.json"
    file.write_text(json.dumps(deployment.values()))
    manifests = parse(template("--values", str(CHART / "values-t4.yaml"), "--values", str(file)))
    workloads = of_kind(manifests, "Deployment")
    cards = {
        name: workloads[name]["spec"]["replicas"] * int(container(pod)["resources"]["limits"].get("nvidia.com/gpu", 0))
        for name, pod in pods(manifests).items()
        if name in deployment.replicas
    }
    assert {name for name, number in cards.items() if number} == ON_CARDS
    assert sum(cards.values()) == deployment.cards
    assert "tolerations" not in pods(manifests)["retriever"]["spec"]
    (line,) = re.findall(r"^# +(qdrant: .*)$", (ROOT / "deploy/helm/values/qdrant.yaml").read_text(), re.MULTILINE)
    assert deployment.values()["qdrant"] == yaml.safe_load(line)["qdrant"]
    peers = [labels for rule in policy(manifests, "retriever")["egress"] for labels in _labels(rule)]
    assert deployment.values()["qdrant"]["cluster"] in peers
    largest = plan(1e6, 10**7).replicas["gateway"]
    assert GatewaySettings(gateways=largest).gateways == largest


def test_names_monitoring_and_clients_are_whose_the_cluster_has(tmp_path: Path) -> None:
    cache = {"ipBlock": {"cidr": "169.254.20.10/32"}}
    clients = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
    network = {"dns": {"to": [cache], "ports": [5353]}, "monitoring": {"namespace": ""}, "clients": clients}
    manifests = render(tmp_path, {"network": network})
    (names,) = policy(manifests, "names")["egress"]
    assert names["to"] == [cache]
    assert {entry["port"] for entry in names["ports"]} == {5353}
    assert "monitoring" not in of_kind(manifests, "NetworkPolicy")
    (asking,) = policy(manifests, "gateway")["ingress"]
    assert asking["from"][0] == clients[0]
    assert asking["from"][-1]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "cragmesh-test"
    assert not of_kind(render(tmp_path, {"network": {"enabled": False}}), "NetworkPolicy")


def test_models_come_as_an_image_without_a_claim(tmp_path: Path) -> None:
    reference = "registry.example.com/models:1"
    manifests = render(tmp_path, {"models": {"from": "image", "image": {"reference": reference}}})
    assert "models" not in of_kind(manifests, "PersistentVolumeClaim")
    for name in ("retriever", "generator"):
        (volume,) = (found for found in pods(manifests)[name]["spec"]["volumes"] if found["name"] == "models")
        assert volume["image"]["reference"] == reference
        validate(of_kind(manifests, "Deployment")[name], VERSIONS[-1])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"services": {"generator": {"replica": 2}}}, "additional properties 'replica' not allowed"),
        ({"services": {"gatway": {"enabled": True, "port": 1}}}, "gatway"),
        ({"services": {"kg": {"port": 9004}}}, "/services/kg/port"),
        ({"image": {"tag": "latest"}}, "/image/tag"),
        ({"models": {"from": "image"}}, "/models/image/reference"),
        ({"models": {"load": {"enabled": True, "hub": {"a": "b/c"}}}}, "/models/from"),
        ({"qdrant": {"apiKey": "cragmesh-qdrant"}}, "/qdrant/apiKey"),
        ({"httpRoute": {"enabled": True}}, "httpRoute.gateway.className or httpRoute.parentRefs"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_by_name(tmp_path: Path, values: dict[str, Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        render(tmp_path, values)


def test_helm_tests_the_gateway_with_a_pod_of_no_rights(rendered: dict[str, list[Manifest]]) -> None:
    shown = run(str(helm()), "template", "cragmesh", str(CHART), "--show-only", "templates/tests/ready.yaml")
    pod = yaml.safe_load(shown.stdout)
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert container(pod)["command"] == [*PROBE, "http://gateway:8000/readyz"]
    gateway = pods(rendered["overlays/cpu"])["gateway"]
    assert pod["spec"]["securityContext"] == gateway["spec"]["securityContext"]
    assert container(pod)["securityContext"] == container(gateway)["securityContext"]
    assert "app.kubernetes.io/part-of" not in pod["metadata"]["labels"], "the mesh's own policy would hold it"


def test_the_chart_is_linted_and_packs_what_it_links_to(tmp_path: Path) -> None:
    program = str(helm())
    for overlay in ("t4", "gpu1"):
        linted = run(program, "lint", "--strict", str(CHART), "--values", str(CHART / f"values-{overlay}.yaml"))
        assert linted.returncode == 0, linted.stdout
    assert run(program, "package", str(CHART), "--destination", str(tmp_path)).returncode == 0
    (packed,) = tmp_path.glob("*.tgz")
    alerts = run(tool("tar"), "-xOzf", str(packed), "cragmesh/files/alerts.yml").stdout
    assert alerts == (ROOT / "deploy" / "observability" / "alerts.yml").read_text()
