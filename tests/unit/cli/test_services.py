"""The table of services: what is started, where, and with which environment."""

import os
import sys
from pathlib import Path

import pytest
import typer

from services.cli.services import Launch, NotPrepared, Service, embedded
from services.gateway.settings import GatewaySettings
from services.generator.sizes import SIZES
from services.kit.settings import MeshUrls


def table(monkeypatch: pytest.MonkeyPatch, **environment: str) -> dict[str, Service]:
    for name in list(os.environ):
        if name.startswith("CRAGMESH_"):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return {service.name: service for service in embedded(MeshUrls())}


def launched(service: Service) -> Launch:
    assert service.launch
    return service.launch()


def test_all_are_started_here_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    services = table(monkeypatch)
    assert {name: service.port for name, service in services.items()} == {
        "generator": 8005,
        "retriever": 8001,
        "reranker": 8002,
        "classifier": 8003,
        "kg": 8004,
        "gateway": 8000,
    }
    assert all(service.launch for service in services.values())
    assert set(services["gateway"].after) == {"generator", "retriever", "reranker", "classifier", "kg"}


def test_a_local_url_moves_the_port_and_a_port_alone_also_its_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    service = table(monkeypatch, CRAGMESH_RETRIEVER_URL="http://localhost:9001/")["retriever"]
    launch = launched(service)
    assert launch.argv[1:] == ("-m", "services.retriever")
    assert launch.env["CRAGMESH_RETRIEVER_PORT"] == "9001"
    assert service.url == "http://localhost:9001"
    services = table(monkeypatch, CRAGMESH_GENERATOR_PORT="9005", CRAGMESH_RERANKER_PORT="9002")
    assert (services["generator"].port, services["reranker"].port) == (9005, 9002)
    environment = launched(services["gateway"]).env
    assert environment["CRAGMESH_GENERATOR_URL"] == "http://127.0.0.1:9005"
    assert environment["CRAGMESH_RERANKER_URL"] == "http://127.0.0.1:9002"


def test_a_searcher_is_started_where_its_url_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    services = table(monkeypatch, CRAGMESH_SEARCHER_URL="http://127.0.0.1:8006")
    assert services["searcher"].port == 8006
    assert services["searcher"].launch
    assert launched(services["gateway"]).env["CRAGMESH_SEARCHER_URL"] == "http://127.0.0.1:8006"
    assert "searcher" not in table(monkeypatch, CRAGMESH_SEARCHER_URL="")


def test_vllm_is_launched_with_its_own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = tmp_path / "SmolLM2-135M-Instruct"
    model.mkdir()
    (model / "config.json").write_text("{}")
    generator = table(
        monkeypatch,
        CRAGMESH_MODEL="small",
        CRAGMESH_GENERATOR_INTERPRETER=sys.executable,
        CRAGMESH_GENERATOR_MODELS_DIR=str(tmp_path),
    )["generator"]
    launch = launched(generator)
    assert launch.argv[0] == sys.executable
    assert str(model) in launch.argv
    assert launch.env["OMP_WAIT_POLICY"] == "PASSIVE"
    assert generator.ready_path == "/readyz"


@pytest.mark.parametrize("name", SIZES)
def test_the_gateway_is_told_what_the_embedded_model_reads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    size = SIZES[name]
    gateway = table(monkeypatch, CRAGMESH_MODEL=name, CRAGMESH_DECODE_TOKENS_PER_S="3")["gateway"]
    environment = launched(gateway).env
    assert environment["CRAGMESH_MAX_CONTEXT_TOKENS"] == str(size.max_context_tokens)
    assert float(environment["CRAGMESH_PREFILL_TOKENS_PER_S"]) == size.prefill_tokens_per_s
    # What the shell says stays.
    assert "CRAGMESH_DECODE_TOKENS_PER_S" not in environment
    elsewhere = table(monkeypatch, CRAGMESH_MODEL=name, CRAGMESH_GENERATOR_URL="http://elsewhere")["gateway"]
    assert "CRAGMESH_MAX_CONTEXT_TOKENS" not in launched(elsewhere).env


def test_the_small_models_speed_is_the_gateways_own_guess() -> None:
    small, gateway = SIZES["small"], GatewaySettings()
    assert gateway.max_context_tokens == small.max_context_tokens
    assert gateway.prefill_tokens_per_s == small.prefill_tokens_per_s
    assert gateway.decode_tokens_per_s == small.decode_tokens_per_s


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("INTERPRETER", "no/python", "make generator"),
        ("MODELS_DIR", "no/models", "make generator"),
        ("PROFILE", "abacus", "there is no profile 'abacus'"),
    ],
)
def test_what_the_generator_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"CRAGMESH_GENERATOR_INTERPRETER": sys.executable, f"CRAGMESH_GENERATOR_{name}": value}
    generator = table(monkeypatch, **settings)["generator"]
    with pytest.raises(NotPrepared, match=message):
        launched(generator)


@pytest.mark.parametrize("service", ["generator", "gateway"])
def test_a_wrong_setting_of_the_generator_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], service: str
) -> None:
    wrong = table(monkeypatch, CRAGMESH_GENERATOR_PROFILE="A B")[service]
    with pytest.raises(typer.Exit):
        launched(wrong)
    assert "CRAGMESH_GENERATOR_PROFILE: " in capsys.readouterr().err


def test_what_runs_elsewhere_is_not_started_and_a_generators_url_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(monkeypatch, CRAGMESH_RERANKER_URL="http://reranker.mesh:80")["reranker"].launch is None
    generator = table(monkeypatch, CRAGMESH_GENERATOR_URL="http://127.0.0.1:9/v1", CRAGMESH_GENERATOR_API_KEY="secret")[
        "generator"
    ]
    assert generator.launch is None
    assert (generator.url, generator.ready_path) == ("http://127.0.0.1:9", "/v1/models")
    assert generator.headers == {"authorization": "Bearer secret"}


def test_the_shell_wins_over_our_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("CRAGMESH_THREADS", "3")
    environment = launched(embedded(MeshUrls())[-1]).env
    assert environment["GOMP_SPINCOUNT"] == "1000"
    assert environment["OMP_NUM_THREADS"] == "3"
    assert "HF_HUB_OFFLINE" not in environment
