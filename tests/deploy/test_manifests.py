"""Kubernetes: each overlay as kustomize renders it, against the strict schema and against what we ask of every pod."""

import re
from ipaddress import ip_address, ip_network
from typing import Any

import kubernetes_validate
import pytest
import yaml

from services.cli.services import embedded
from services.generator.launch import read_profile
from services.generator.settings import GeneratorSettings
from services.kit.telemetry import Metrics
from tests.deploy.conftest import (
    KUSTOMIZATIONS,
    OVERLAYS,
    ROOT,
    SERVICES,
    Manifest,
    container,
    lasting,
    of_kind,
    pods,
    run,
    tool,
    validate,
    variables,
)
from tests.deploy.known import EVERY, SETTINGS, all_names, bodies_mib, names

# The oldest that has the sleep action of preStop without a gate, one between, and the newest that the schemas know.
VERSIONS = ("1.30", "1.34", "1.37")
# Of the Prometheus operator, KEDA, KubeRay and the Gateway API, whose schemas are not Kubernetes' own.
CUSTOM = {"PrometheusRule", "ServiceMonitor", "ScaledObject", "RayJob", "Gateway", "HTTPRoute"}
Rendered = dict[str, list[Manifest]]


@pytest.fixture(params=OVERLAYS)
def name(request: pytest.FixtureRequest) -> str:
    """An overlay."""
    return str(request.param)


def services_of(name: str) -> tuple[str, ...]:
    """The services that an overlay deploys, the gateway first and the generator last."""
    return (*SERVICES[:-1], "searcher", SERVICES[-1]) if name == "overlays/search" else SERVICES


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_every_manifest_is_valid_and_has_no_unknown_field(rendered: Rendered, name: str, version: str) -> None:
    manifests = [manifest for manifest in rendered[name] if manifest["kind"] not in CUSTOM]
    for manifest in manifests:
        validate(manifest, version)
    assert manifests or name == "monitoring"


def test_the_validator_sees_a_mistake(rendered: Rendered) -> None:
    deployment = of_kind(rendered["overlays/cpu"], "Deployment")["gateway"]
    wrong = {**deployment, "spec": {**deployment["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(wrong, VERSIONS[-1])


@pytest.mark.parametrize("name", [*OVERLAYS, "jobs"])
def test_every_pod_has_no_rights_and_bounded_resources(rendered: Rendered, name: str) -> None:
    assert pods(rendered[name])
    for workload, pod in pods(rendered[name]).items():
        spec, app = pod["spec"], container(pod)
        for each in (app, *spec.get("initContainers", [])):
            assert each["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, workload
            assert {"cpu", "memory"} <= each["resources"]["limits"].keys(), workload
            assert {"cpu", "memory"} <= each["resources"]["requests"].keys(), workload
        assert spec["serviceAccountName"] in of_kind(rendered[name], "ServiceAccount"), workload
        assert spec["automountServiceAccountToken"] is False, workload
        assert spec["securityContext"]["runAsNonRoot"] is True, workload
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, workload
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), workload
        assert all("hostPath" not in volume for volume in spec["volumes"]), workload
        tag = app["image"].partition(":")[2]
        assert tag, f"{workload} has no tag"
        assert tag != "latest", workload
        for volume in spec["volumes"]:
            if "emptyDir" in volume:
                assert volume["emptyDir"].get("sizeLimit"), f"{workload} can fill the node's disk"


def test_secrets_are_named_and_never_written(rendered: Rendered, name: str) -> None:
    assert not of_kind(rendered[name], "Secret")
    for workload, pod in pods(rendered[name]).items():
        for variable, entry in variables(pod).items():
            is_secret = any(word in variable for word in ("API_KEY", "PASSWORD", "TOKEN"))
            if is_secret and not variable.endswith("_FILE"):
                assert "secretKeyRef" in entry.get("valueFrom", {}), f"{workload}: {variable}"


def secrets(pod: Manifest) -> dict[str, tuple[str, str]]:
    """Variables of a pod that come from a secret: its name and key."""
    references = {name: entry.get("valueFrom", {}).get("secretKeyRef") for name, entry in variables(pod).items()}
    return {name: (reference["name"], reference["key"]) for name, reference in references.items() if reference}


def test_all_who_talk_to_each_other_know_the_same_secrets(rendered: Rendered, name: str) -> None:
    holders = {
        "CRAGMESH_MESH_TOKEN": set(services_of(name)[:-1]),
        "CRAGMESH_GENERATOR_API_KEY": {"gateway", "classifier", "kg", "generator"},
    }
    known = {workload: secrets(pod) for workload, pod in pods(rendered[name]).items()}
    for variable, workloads in holders.items():
        references = {workload: own[variable] for workload, own in known.items() if variable in own}
        assert references.keys() == workloads
        assert len(set(references.values())) == 1


@pytest.mark.parametrize("name", [*OVERLAYS, "jobs"])
def test_nothing_lets_adapters_be_loaded_from_outside(rendered: Rendered, name: str) -> None:
    assert GeneratorSettings.model_fields["runtime_adapters"].default is False
    for workload, pod in pods(rendered[name]).items():
        forbidden = {"CRAGMESH_GENERATOR_RUNTIME_ADAPTERS", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"}
        assert not variables(pod).keys() & forbidden, workload


def test_probes_give_each_service_its_start_and_its_patience(rendered: Rendered, name: str) -> None:
    starts = {service.name: service.start_timeout_s for service in embedded(EVERY)}
    for service in services_of(name):
        app = container(pods(rendered[name])[service])
        paths = {kind: app[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")}
        ours = {"startup": "/healthz", "readiness": "/readyz", "liveness": "/healthz"}
        assert paths == (dict.fromkeys(ours, "/health") if service == "generator" else ours)
        start = app["startupProbe"]
        assert start["periodSeconds"] * start["failureThreshold"] >= starts[service], service
        # A second, the default, flaps under load.
        assert all(app[f"{kind}Probe"]["timeoutSeconds"] >= 5 for kind in ours), service
        alive, ready = app["livenessProbe"], app["readinessProbe"]
        assert alive["periodSeconds"] * alive["failureThreshold"] > ready["periodSeconds"] * ready["failureThreshold"]


def test_a_pod_may_finish_what_it_has_begun(rendered: Rendered, name: str) -> None:
    (mesh,) = of_kind(rendered[name], "ConfigMap").values()
    drain = int(mesh["data"]["CRAGMESH_GRACEFUL_SHUTDOWN_S"])
    assert drain >= 30, "the longest request"
    for service in services_of(name):
        pod = pods(rendered[name])[service]
        pause = container(pod)["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod["spec"]["terminationGracePeriodSeconds"] > pause + drain, service
    engine = variables(pods(rendered[name])["generator"])
    assert engine["CRAGMESH_GENERATOR_SHUTDOWN_TIMEOUT_S"]["value"] == str(drain), "vLLM drains by its own setting"


@pytest.mark.parametrize("name", [*OVERLAYS, "jobs"])
def test_every_variable_is_one_that_its_service_reads(rendered: Rendered, name: str) -> None:
    maps = of_kind(rendered[name], "ConfigMap")
    for workload, pod in pods(rendered[name]).items():
        if workload in SETTINGS:
            assert {name for name in variables(pod) if name.startswith("CRAGMESH_")} <= names(workload), workload
        for source in container(pod).get("envFrom", []):
            shared = {key for key in maps[source["configMapRef"]["name"]]["data"] if key.startswith("CRAGMESH_")}
            assert shared <= all_names(), workload


def test_each_service_is_found_under_the_address_that_the_mesh_uses(rendered: Rendered, name: str) -> None:
    (mesh,) = of_kind(rendered[name], "ConfigMap").values()
    services = of_kind(rendered[name], "Service")
    for service in services_of(name)[1:]:
        (port,) = services[service]["spec"]["ports"]
        assert mesh["data"][f"CRAGMESH_{service.upper()}_URL"] == f"http://{service}:{port['port']}"
        (listening,) = container(pods(rendered[name])[service])["ports"]
        assert (listening["name"], listening["containerPort"]) == (port["targetPort"], port["port"])


def test_each_workload_is_spread_disrupted_gently_and_selected_by_its_own_labels(rendered: Rendered, name: str) -> None:
    budgets = of_kind(rendered[name], "PodDisruptionBudget")
    for workload, pod in lasting(rendered[name]).items():
        labels = pod["metadata"]["labels"].items()
        (spread,) = pod["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"].items() <= labels
        assert budgets[workload]["spec"]["selector"]["matchLabels"].items() <= labels
        assert of_kind(rendered[name], "Service")[workload]["spec"]["selector"].items() <= labels


def test_the_number_of_pods_is_said_once(rendered: Rendered, name: str) -> None:
    scalers = of_kind(rendered[name], "HorizontalPodAutoscaler").values()
    scaled = {scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers}
    workloads = of_kind(rendered[name], "Deployment") | of_kind(rendered[name], "StatefulSet")
    assert "gateway" in scaled
    assert scaled <= workloads.keys()
    # A number beside an autoscaler's is put back into force by every `kubectl apply`.
    assert {workload for workload, item in workloads.items() if "replicas" not in item["spec"]} == scaled


def test_the_autoscalers_metric_is_one_that_the_adapter_serves(rendered: Rendered) -> None:
    file = ROOT / "deploy" / "k8s" / "monitoring" / "prometheus-adapter.yaml"
    (served,) = yaml.safe_load(file.read_text())["rules"]["custom"]
    series = served["seriesQuery"].partition("{")[0]
    metrics = {
        metric["pods"]["metric"]["name"]
        for name in OVERLAYS
        for scaler in of_kind(rendered[name], "HorizontalPodAutoscaler").values()
        for metric in scaler["spec"]["metrics"]
    }
    assert metrics == {series} <= {family.name for family in Metrics("test").registry.collect()}
    resources = {label: item["resource"] for label, item in served["resources"]["overrides"].items()}
    assert resources == {"namespace": "namespace", "pod": "pod"}
    query = served["metricsQuery"].replace("<<.Series>>", series).replace("<<.GroupBy>>", "pod")
    rules = {
        "groups": [{"name": "a", "rules": [{"record": "a", "expr": query.replace("<<.LabelMatchers>>", 'pod="b"')}]}]
    }
    checked = run(tool("promtool"), "check", "rules", "/dev/stdin", stdin=yaml.safe_dump(rules))
    assert checked.returncode == 0, checked.stderr


def test_pods_that_may_be_on_two_nodes_share_only_claims_of_many_writers(rendered: Rendered, name: str) -> None:
    claims = of_kind(rendered[name], "PersistentVolumeClaim")
    for workload, deployment in of_kind(rendered[name], "Deployment").items():
        for volume in deployment["spec"]["template"]["spec"]["volumes"]:
            if "persistentVolumeClaim" in volume:
                claim = claims[volume["persistentVolumeClaim"]["claimName"]]
                assert claim["spec"]["accessModes"] == ["ReadWriteMany"], workload


def test_the_gateway_has_memory_for_the_bodies_that_it_takes(rendered: Rendered, name: str) -> None:
    limit = container(pods(rendered[name])["gateway"])["resources"]["limits"]["memory"]
    assert int(limit.removesuffix("Gi")) * 1024 >= bodies_mib()


def allowed(policies: list[Manifest], pod: Manifest, direction: str, other: Manifest | None, port: int) -> bool:
    """Whether the policies let `pod` take from (Ingress) or send to (Egress) `other`; None is anyone outside."""
    chosen = [
        policy["spec"]
        for policy in policies
        if direction in policy["spec"]["policyTypes"]
        and policy["spec"]["podSelector"].get("matchLabels", {}).items() <= pod["metadata"]["labels"].items()
    ]
    assert chosen, "nothing selects this pod, so all is allowed"
    peers = "from" if direction == "Ingress" else "to"
    return any(
        _ports(rule, pod, port) and _peers(rule.get(peers), other)
        for policy in chosen
        for rule in policy.get(direction.lower(), [])
    )


def _ports(rule: Manifest, pod: Manifest, port: int) -> bool:
    named: dict[Any, int] = {entry["name"]: entry["containerPort"] for entry in container(pod).get("ports", [])}
    return "ports" not in rule or any(named.get(entry["port"], entry["port"]) == port for entry in rule["ports"])


def _peers(peers: list[Manifest] | None, other: Manifest | None) -> bool:
    if peers is None:
        return True
    return other is not None and any(
        not {"namespaceSelector", "ipBlock"} & peer.keys()
        and peer["podSelector"]["matchLabels"].items() <= other["metadata"]["labels"].items()
        for peer in peers
    )


def test_only_who_must_talks_to_whom(rendered: Rendered, name: str) -> None:
    policies = [item for item in rendered[name] if item["kind"] == "NetworkPolicy"]
    edges = set()
    for there, target in lasting(rendered[name]).items():
        port = container(target)["ports"][0]["containerPort"]
        if allowed(policies, target, "Ingress", None, port):
            edges.add(("outside", there))
        edges |= {
            (here, there)
            for here, source in pods(rendered[name]).items()
            if here != there
            and allowed(policies, target, "Ingress", source, port)
            and allowed(policies, source, "Egress", target, port)
        }
    # The gateway's port is open to all, but no service may send there.
    assert edges == {
        ("outside", "gateway"),
        *(("gateway", service) for service in services_of(name)[1:]),
        ("classifier", "generator"),
        ("kg", "generator"),
        ("gateway", "valkey"),
        ("retriever", "qdrant"),
        ("qdrant-backup", "qdrant"),
    }


def test_only_who_searches_or_loads_models_reaches_the_web_and_nobody_inside(rendered: Rendered, name: str) -> None:
    blocks: dict[str, list[Manifest]] = {}
    for policy in of_kind(rendered[name], "NetworkPolicy").values():
        for allowance in policy["spec"].get("egress", []):
            anywhere = "to" not in allowance and {entry["port"] for entry in allowance["ports"]} != {5432}
            assert not anywhere, policy["metadata"]["name"]
            if ranges := [peer["ipBlock"] for peer in allowance.get("to", []) if "ipBlock" in peer]:
                blocks[policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/name"]] = ranges
                assert {entry["port"] for entry in allowance["ports"]} == {80, 443}
    assert blocks.keys() == {"overlays/cpu": set(), "overlays/search": {"searcher"}}.get(name, {"models"})
    for app in blocks:
        open_to = {address for address in (*INSIDE, *OUTSIDE) if passes(blocks[app], address)}
        assert open_to == set(OUTSIDE)


INSIDE = """
    10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 127.0.0.1 169.254.169.254 168.63.129.16 0.0.0.0 224.0.0.1 255.255.255.255
    ::1 fe80::1 fd00:ec2::254 64:ff9b::7f00:1 2002:7f00:1:: ff02::1
""".split()  # noqa: SIM905 - as a table
OUTSIDE = ("8.8.8.8", "93.184.216.34", "2606:4700:4700::1111")


def passes(blocks: list[Manifest], address: str) -> bool:
    """Whether an IP address lies in one of a policy's blocks."""
    judged = ip_address(address)
    return any(
        judged in ip_network(block["cidr"]) and not any(judged in ip_network(part) for part in block["except"])
        for block in blocks
    )


@pytest.mark.parametrize(
    ("name", "given"),
    [("overlays/t4", {"generator": 2, "retriever": 1, "reranker": 1}), ("overlays/gpu1", {"generator": 1})],
)
def test_cards_are_given_out_once_and_to_nodes_of_no_one_cloud(
    rendered: Rendered, name: str, given: dict[str, int]
) -> None:
    cards = {
        workload: int(container(pod)["resources"]["limits"].get("nvidia.com/gpu", 0))
        for workload, pod in pods(rendered[name]).items()
    }
    assert {workload: number for workload, number in cards.items() if number} == given
    for workload in given:
        spec = of_kind(rendered[name], "Deployment")[workload]["spec"]
        assert spec["replicas"] == 1
        assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
        assert "nodeSelector" not in spec["template"]["spec"]


@pytest.mark.parametrize("name", ["overlays/t4", "overlays/gpu1"])
def test_a_job_brings_the_models_that_are_asked_for(rendered: Rendered, name: str) -> None:
    (mesh,) = of_kind(rendered[name], "ConfigMap").values()
    (brought,) = (pod for workload, pod in pods(rendered[name]).items() if workload.startswith("models-"))
    folders = {each["command"][-1] for each in brought["spec"]["initContainers"]}
    profile = variables(pods(rendered[name])["generator"])["CRAGMESH_GENERATOR_PROFILE"]["value"]
    models = {mesh["data"][key] for key in mesh["data"] if key in ("CRAGMESH_ENCODER_MODEL", "CRAGMESH_RERANKER_MODEL")}
    models |= {str(read_profile(profile)["model"])}
    assert folders == {f"/models/{model.rpartition('/')[2]}" for model in models}


def test_every_service_is_watched(rendered: Rendered) -> None:
    monitors = of_kind(rendered["monitoring"], "ServiceMonitor")
    services = of_kind(rendered["overlays/search"], "Service")
    # Its server tells Prometheus nothing; a gateway logs when it is away.
    assert services.pop("valkey")
    for name, service in services.items():
        spec = monitors[name]["spec"]
        assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert [end["port"] for end in spec["endpoints"]] == [service["spec"]["ports"][-1]["name"]]


def test_clusters_have_the_alerts_that_are_tested(rendered: Rendered) -> None:
    (rule,) = of_kind(rendered["monitoring"], "PrometheusRule").values()
    alerts = yaml.safe_load((ROOT / "deploy" / "observability" / "alerts.yml").read_text())
    assert rule["spec"] == alerts
    names_of_jobs = {item["metadata"]["name"] for item in rendered["monitoring"] if item["kind"] == "ServiceMonitor"}
    patterns = set(re.findall(r'job=~?"([^"]+)"', str(alerts)))
    assert {job for jobs in patterns for job in jobs.split("|")} <= names_of_jobs
