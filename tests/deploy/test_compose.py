"""Compose: the schema, what every container is denied, and that it says the same as Kubernetes and `.env.example`."""

import re
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_core import PydanticUndefined

from services.cli.services import embedded
from services.generator.launch import read_profile
from services.kit.probe import TIMEOUT_S
from services.kit.settings import MeshUrls
from tests.deploy.conftest import PROBE, ROOT, SERVICES, Manifest, container, of_kind, pods, run, tool, variables
from tests.deploy.known import EVERY, SETTINGS, all_names, bodies_mib, defaults, names, secrets

OURS = (*SERVICES, "searcher")
# What ends when its work is done.
JOBS = ("calibrate",)
# Read by Compose itself, or by what is not a service of ours.
_COMPOSE_ONLY = """
    EXTRAS GPU GRAFANA_IMAGE GRAFANA_PASSWORD GRAFANA_PORT MESH_INTERNAL PROMETHEUS_IMAGE PROMETHEUS_PORT PUBLISH
    PYTHON_IMAGE QDRANT_IMAGE SEARXNG_IMAGE TAG TORCH_CUDA_INDEX_URL TORCH_INDEX_URL VALKEY_IMAGE VALKEY_PASSWORD
    VLLM_IMAGE WHEELS_IMAGE
"""
COMPOSE_ONLY = {f"CRAGMESH_{name}" for name in _COMPOSE_ONLY.split()}
# Settings that `.env.example` does not show, and why.
NOT_SHOWN = {
    **dict.fromkeys(
        (f"CRAGMESH_{name}_PORT" for name in ("RETRIEVER", "RERANKER", "CLASSIFIER", "KG", "GENERATOR", "SEARCHER")),
        "named in one line with the gateway's",
    ),
    "JOB_COMPLETION_INDEX": "Kubernetes says it",
    "CRAGMESH_HOST": "containers listen to all, and a machine of one's own to nobody else",
    "CRAGMESH_GENERATOR_HOST": "the same",
    "CRAGMESH_GENERATOR_INTERPRETER": "an image says where its own is",
    "CRAGMESH_GENERATOR_RUNTIME_ADAPTERS": "whoever reaches the port could then name any folder: docs/security.md",
}
FILES = ("docker-compose.yml", "docker-compose.gpu.yml", "docker-compose.gpu1.yml")


def interpolated(text: str) -> dict[str, str]:
    """Variables that Compose fills in, each with its default."""
    return dict(re.findall(r"\$\{(CRAGMESH_\w+):-([^}]*)\}", text))


def mib(memory: str) -> int:
    return int(memory[:-1]) * {"m": 1, "g": 1024}[memory[-1]]


def seconds(duration: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(s|m)", duration).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60}[unit]


def test_the_files_follow_the_compose_specification() -> None:
    result = run(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", *FILES)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("recipe", ["services/Dockerfile", "services/generator/Dockerfile"])
def test_the_recipes_have_nothing_that_a_linter_sees(recipe: str) -> None:
    result = run(tool("hadolint"), recipe)
    assert result.returncode == 0, result.stdout


def test_every_service_of_the_mesh_starts_by_default_and_the_rest_on_demand(compose: Manifest) -> None:
    default = {name for name, service in compose["services"].items() if "profiles" not in service}
    assert default == {service.name for service in embedded(MeshUrls())} == set(SERVICES)


def test_every_container_of_ours_has_no_rights_and_bounds(compose: Manifest) -> None:
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["restart"] == ("no" if name in JOBS else "unless-stopped"), name
        limits, reserved = (service["deploy"]["resources"][part] for part in ("limits", "reservations"))
        assert float(reserved["cpus"]) <= float(limits["cpus"]), name
        assert mib(reserved["memory"]) <= mib(limits["memory"]), name
        assert ("healthcheck" in service) is (name not in JOBS), name
        if name in (*OURS, *JOBS, "qdrant", "valkey"):
            assert service["read_only"] is True, name
        if name in (*OURS, *JOBS):
            assert service["user"] == "10001:10001", name
        else:
            assert re.search(r":-[\w./-]+:v?\d[\w.-]+}$", service["image"]), f"{name} has no pinned tag"


def test_only_the_gateway_and_the_dashboards_are_published_and_on_loopback(compose: Manifest) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published.keys() == {"gateway", "prometheus", "grafana"}
    for ports in published.values():
        assert all(port.startswith("${CRAGMESH_PUBLISH:-127.0.0.1}:") for port in ports)
    ways_out = {name for name, network in compose["networks"].items() if not network.get("internal")}
    reaching = {name for name, service in compose["services"].items() if ways_out & {*service["networks"]}}
    assert reaching == {*published, "searcher", "searxng"}, "docs/search.md and docs/security.md name them"
    assert compose["services"]["searcher"]["networks"] == ["mesh", "outside"]
    inside = {name for name, service in compose["services"].items() if service["networks"] == ["mesh"]}
    assert inside == {*SERVICES[1:], *JOBS, "qdrant", "valkey"}
    assert compose["networks"]["mesh"]["internal"] == "${CRAGMESH_MESH_INTERNAL:-true}"


@pytest.mark.parametrize(("service", "folder"), [("retriever", "/data"), ("kg", "/data"), ("gateway", "/feedback")])
def test_what_outlives_a_container_is_on_a_volume_that_may_be_written(
    compose: Manifest, service: str, folder: str
) -> None:
    image = (ROOT / "services/Dockerfile").read_text()
    made = re.search(r"install --directory --owner=10001 --group=10001 (.*)", image)
    assert made is not None
    assert folder in made[1].split()
    named = [volume.split(":") for volume in compose["services"][service]["volumes"]]
    (name,) = [volume[0] for volume in named if volume[1] == folder and volume[2:] != ["ro"]]
    assert name in compose["volumes"]


def test_start_periods_are_those_of_the_command_line(compose: Manifest) -> None:
    for service in embedded(EVERY):
        check = compose["services"][service.name]["healthcheck"]
        assert seconds(check["start_period"]) == service.start_timeout_s, service.name
        path = "/health" if service.name == "generator" else "/readyz"
        (url, *_) = (word for word in check["test"] if word.startswith("http"))
        assert url == f"http://127.0.0.1:{service.port}{path}"


def test_the_gateway_waits_for_nobody_to_be_healthy(compose: Manifest) -> None:
    after = next(service.after for service in embedded(MeshUrls()) if service.name == "gateway")
    assert compose["services"]["gateway"]["depends_on"] == list(after)


def test_secrets_reach_only_who_reads_them(compose: Manifest) -> None:
    secret_names = secrets() | {name for name in COMPOSE_ONLY if name.endswith("PASSWORD")}
    assert len(secret_names) > 5
    for name in OURS:
        # What is not named comes with the file.
        assert compose["services"][name]["env_file"] == [{"path": ".env", "required": False}]
        given = environment(compose["services"][name])
        assert {secret for secret in secret_names if given.get(secret) != ""} == secret_names & names(name), name
        for secret in secret_names & names(name):
            assert given[secret].startswith(f"${{{secret}:-"), f"{name}: {secret}"
    for name in compose["services"].keys() - set(OURS):
        assert "env_file" not in compose["services"][name], name


def test_the_gateway_has_memory_for_the_bodies_that_it_takes(compose: Manifest) -> None:
    assert mib(compose["services"]["gateway"]["deploy"]["resources"]["limits"]["memory"]) >= bodies_mib()


def test_the_probe_is_found_where_the_wheel_is_installed(compose: Manifest) -> None:
    for name in set(OURS) - {"generator"}:
        assert compose["services"][name]["healthcheck"]["test"][:-1] == ["CMD", *PROBE], name


def test_a_probe_gives_up_before_its_check_does(compose: Manifest, compose_gpus: list[Manifest]) -> None:
    for document, name in product((compose, *compose_gpus), OURS):
        check = document["services"].get(name, {}).get("healthcheck", {})
        if "test" in check:
            patience = check["test"][-1]
            allowed = seconds(check.get("timeout") or compose["services"][name]["healthcheck"]["timeout"])
            assert allowed - 1 <= (int(patience) if patience.isdigit() else TIMEOUT_S) < allowed, name


def test_a_build_is_told_what_its_recipe_asks_for(compose: Manifest) -> None:
    for name, service in compose["services"].items():
        if "build" in service:
            recipe = (ROOT / service["build"]["dockerfile"]).read_text()
            # Several recipes share what they are told.
            own = service["build"]["args"].keys() - compose["x-build-args"].keys()
            assert own <= set(re.findall(r"^ARG (\w+)", recipe, re.MULTILINE)), name
    args = compose["services"]["generator"]["build"]["args"]
    assert args["HUB"] == "${CRAGMESH_GENERATOR_HUB:-0}", "a hub's name is a model too"


def test_images_hold_torch_only_where_it_is_asked_for_and_that_for_cpus(
    compose: Manifest, compose_gpus: list[Manifest]
) -> None:
    assert compose["x-build-args"]["TORCH_INDEX_URL"].endswith(":-https://download.pytorch.org/whl/cpu}")
    for name in SERVICES[:-1]:
        extras = "" if name == "gateway" else "${CRAGMESH_EXTRAS:-}"
        assert compose["services"][name]["build"]["args"]["EXTRAS"] == extras, name
    for name, files in product(("retriever", "reranker"), compose_gpus):
        args = {"EXTRAS": "torch", "TORCH_INDEX_URL": "${CRAGMESH_TORCH_CUDA_INDEX_URL:-}"}
        assert files["services"][name]["build"]["args"] == args, name


def environment(service: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in service.get("environment", {}).items() if key.startswith("CRAGMESH_")}


def test_every_variable_is_one_that_something_reads(compose: Manifest, compose_gpus: list[Manifest]) -> None:
    for document in (compose, *compose_gpus):
        for service in document["services"].values():
            assert environment(service).keys() <= all_names() | COMPOSE_ONLY
    for name in FILES:
        assert interpolated((ROOT / name).read_text()).keys() <= all_names() | COMPOSE_ONLY


def example() -> dict[str, str]:
    """What `.env.example` shows of each variable."""
    return dict(re.findall(r"^#?(CRAGMESH_\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))


def test_every_setting_is_in_env_example_or_has_a_reason_not_to_be() -> None:
    assert all_names() - example().keys() == NOT_SHOWN.keys()


def test_env_example_names_what_exists_and_shows_true_defaults() -> None:
    lines = example()
    assert lines.keys() <= all_names() | COMPOSE_ONLY
    compose_defaults = {
        key: value for name in reversed(FILES) for key, value in interpolated((ROOT / name).read_text()).items()
    }
    assert {name for name in compose_defaults if name in COMPOSE_ONLY} <= lines.keys()
    known = defaults()
    for name, shown in lines.items():
        if name in COMPOSE_ONLY:
            assert shown == compose_defaults[name], name
            continue
        default = known[name]
        if default is PydanticUndefined:
            # Found out at start, from the machine or the checkout.
            continue
        assert shown == as_written(default).rstrip("/"), f"{name}: {default!r}"


def as_written(default: object) -> str:
    match default:
        case None:
            return ""
        case bool():
            return str(int(default))
        case float():
            return f"{default:g}"
        case tuple():
            return ",".join(map(str, default))
        case Path() if default.is_relative_to(ROOT):
            return str(default.relative_to(ROOT))
        case _:
            return str(default)


def test_each_line_of_env_example_can_be_uncommented(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, shown in example().items():
        monkeypatch.setenv(name, shown)
    for settings in {kind for kinds in SETTINGS.values() for kind in kinds}:
        given = settings().model_dump()
        assert {name for name, value in given.items() if value == Path()} == set()


def test_compose_and_kubernetes_agree(
    compose: Manifest, compose_gpu: Manifest, rendered: dict[str, list[Manifest]]
) -> None:
    plain, cards = rendered["overlays/cpu"], rendered["overlays/t4"]
    for name in SERVICES:
        repository = compose["services"][name]["image"].partition(":")[0]
        assert container(pods(plain)[name])["image"].partition(":")[0] == repository
        with_cards = compose_gpu["services"].get(name, {}).get("image", repository).partition(":")[0]
        assert container(pods(cards)[name])["image"].partition(":")[0] == with_cards
    (mesh,) = of_kind(plain, "ConfigMap").values()
    network = environment(compose["services"]["retriever"])
    for key, value in mesh["data"].items():
        # On demand here.
        if key.endswith("_URL") and key != "CRAGMESH_VALKEY_URL":
            assert network[key] in (value, f"${{{key}:-{value}}}"), key
    (mesh,) = of_kind(cards, "ConfigMap").values()
    for name in ("gateway", "retriever", "reranker", "classifier", "kg"):
        for key, value in environment(compose_gpu["services"][name]).items():
            assert interpolated(value) == {key: mesh["data"][key]}, key
    profile = interpolated(compose_gpu["services"]["generator"]["environment"]["CRAGMESH_GENERATOR_PROFILE"])
    assert [*profile.values()] == [variables(pods(cards)["generator"])["CRAGMESH_GENERATOR_PROFILE"]["value"]]


def test_in_production_the_language_model_writes_programs_and_labels(rendered: dict[str, list[Manifest]]) -> None:
    """With the least time that its prompts need: the gateway's default is for the SVM alone."""
    (mesh,) = of_kind(rendered["overlays/t4"], "ConfigMap").values()
    assert mesh["data"]["CRAGMESH_KG_BASE_MODEL_WRITES"] == "1"
    assert mesh["data"]["CRAGMESH_CLASSIFIER_MODE"] == "auto"
    assert float(mesh["data"]["CRAGMESH_CLASSIFY_CAP_S"]) >= 2


def test_the_four_cards_are_given_out_once(compose_gpu: Manifest) -> None:
    cards: list[str] = []
    for service in compose_gpu["services"].values():
        for device in service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", []):
            cards += device["device_ids"]
    assert sorted(cards) == ["0", "1", "2", "3"]
    assert names("generator") >= set(environment(compose_gpu["services"]["generator"]))


def test_the_table_of_production_models_is_what_the_t4_files_set(rendered: dict[str, list[Manifest]]) -> None:
    rows = re.findall(r"^\| (\w+) \| \d+ \|.*\| ([^|]+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    shown = dict(rows)
    (mesh,) = of_kind(rendered["overlays/t4"], "ConfigMap").values()
    for name, key in (("retriever", "CRAGMESH_ENCODER_MODEL"), ("reranker", "CRAGMESH_RERANKER_MODEL")):
        assert shown[name].rpartition("/")[2] == mesh["data"][key].rpartition("/")[2]
    for name, key in (("classifier", "CRAGMESH_CLASSIFIER_MODE"), ("kg", "CRAGMESH_KG_BASE_MODEL_WRITES")):
        assert f"`{key}={mesh['data'][key]}`" in shown[name]
    assert str(read_profile("t4")["served-model-name"]).endswith(shown["generator"])


def test_one_card_is_shared_by_three_and_its_profile_leaves_room(compose_gpus: list[Manifest]) -> None:
    (one,) = (document for document in compose_gpus if "x-card" in document)
    devices = [
        service["deploy"]["resources"]["reservations"]["devices"]
        for service in one["services"].values()
        if "deploy" in service
    ]
    assert len(devices) == 3
    assert all(device == [one["x-card"]["devices"][0]] for device in devices)
    generator = one["services"]["generator"]["environment"]
    assert generator["CRAGMESH_GENERATOR_PROFILE"] == "${CRAGMESH_GENERATOR_PROFILE:-gpu1}"
    profile = read_profile("gpu1")
    # deploy/README.md: 1.2 GiB for the encoder and 2.6 for the reranker, of what CUDA gives of a T4.
    assert float(str(profile["gpu-memory-utilization"])) * 14.6 + 1.2 + 2.6 < 14.6
    assert int(str(profile["kv-cache-memory-bytes"])) >= 128 * 1024 * int(str(profile["max-model-len"]))


def test_what_a_gpu_generator_compiles_lies_where_it_may_be_loaded(
    compose: Manifest, compose_gpus: list[Manifest]
) -> None:
    for document in compose_gpus:
        generator = document["services"]["generator"]
        mounted = dict(mount.split(":") for mount in (*compose["x-service"]["tmpfs"], *generator["tmpfs"]))
        loadable = [folder for folder, options in mounted.items() if "exec" in options.split(",")]
        caches = {
            name: value for name, value in generator["environment"].items() if name.endswith(("_DIR", "_ROOT", "_PATH"))
        }
        assert {"TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT"} <= caches.keys()
        for name, value in caches.items():
            assert any(value.startswith(f"{folder}/") for folder in loadable), name


def test_grafana_has_no_password_that_everybody_knows(compose: Manifest) -> None:
    grafana = compose["services"]["grafana"]
    assert grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD"] == "${CRAGMESH_GRAFANA_PASSWORD:-}"  # noqa: S105
    shell, flag, script = grafana["entrypoint"]
    printing = script.replace("$$", "$").replace("exec /run.sh", "printenv GF_SECURITY_ADMIN_PASSWORD")
    unset = {run("env", "GF_SECURITY_ADMIN_PASSWORD=", shell, flag, printing).stdout.strip() for _ in range(2)}
    assert len(unset) == 2
    assert min(map(len, unset)) >= 32
    assert run("env", "GF_SECURITY_ADMIN_PASSWORD=mine", shell, flag, printing).stdout.strip() == "mine"


def test_qdrants_server_and_client_are_within_one_minor_version(
    compose: Manifest, rendered: dict[str, list[Manifest]]
) -> None:
    """Further apart, they promise each other nothing."""
    served = {compose["services"]["qdrant"]["image"].partition(":-")[2].rstrip("}")}
    served |= {container(pods(rendered[name])["qdrant"])["image"] for name in ("overlays/cpu", "overlays/t4")}
    (image,) = served
    server = [int(part) for part in re.findall(r":v(\d+)\.(\d+)\.", image)[0]]
    client = [int(part) for part in version("qdrant-client").split(".")[:2]]
    assert server[0] == client[0]
    assert abs(server[1] - client[1]) <= 1


def test_qdrant_asks_for_the_key_and_keeps_snapshots_apart(compose: Manifest) -> None:
    qdrant = compose["services"]["qdrant"]
    key = compose["services"]["retriever"]["environment"]["CRAGMESH_QDRANT_API_KEY"]
    assert qdrant["environment"]["QDRANT__SERVICE__API_KEY"] == key
    mounted = dict(reversed(volume.split(":")) for volume in qdrant["volumes"])
    snapshots = qdrant["environment"]["QDRANT__STORAGE__SNAPSHOTS_PATH"]
    assert mounted[snapshots] != mounted["/qdrant/storage"]
    assert set(mounted.values()) <= compose["volumes"].keys()


def test_prometheus_reads_qdrant_where_no_key_is_asked_for(
    compose: Manifest, rendered: dict[str, list[Manifest]]
) -> None:
    port = compose["services"]["qdrant"]["environment"]["QDRANT__SERVICE__METRICS_PORT"]
    scraped = yaml.safe_load((ROOT / "deploy" / "observability" / "prometheus.yml").read_text())["scrape_configs"]
    (job,) = (job for job in scraped if job["job_name"] == "qdrant")
    assert [str(target["port"]) for target in job["dns_sd_configs"]] == [port]
    assert port != "6333"
    qdrant = container(pods(rendered["overlays/cpu"])["qdrant"])
    assert {"name": "QDRANT__SERVICE__METRICS_PORT", "value": port} in qdrant["env"]
    assert {"name": "metrics", "containerPort": int(port)} in qdrant["ports"]


@pytest.mark.parametrize("password", ["", "abc123"])
def test_valkey_asks_for_the_password_and_tells_it_to_no_list_of_processes(
    compose: Manifest, rendered: dict[str, list[Manifest]], password: str
) -> None:
    valkey, pod = compose["services"]["valkey"], container(pods(rendered["overlays/t4"])["valkey"])
    assert valkey["image"].endswith(f":-{pod['image']}}}")
    shell, flag, script = (argument.replace("$$", "$") for argument in valkey["command"])
    assert [shell, flag, script] == pod["command"]
    config = run("env", f"VALKEY_PASSWORD={password}", shell, flag, script.replace("valkey-server -", "cat", 1)).stdout
    options = dict(line.split(" ", 1) for line in config.splitlines())
    assert options["requirepass"] == f'"{password}"'
    assert options["save"] == '""'
    assert int(options["maxmemory"].removesuffix("mb")) < mib(valkey["deploy"]["resources"]["limits"]["memory"])
