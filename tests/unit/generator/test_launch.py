import json
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from services.generator import launch
from services.generator.errors import GeneratorError
from services.generator.installer import Command
from services.generator.launch import SERVER, command, read_profile
from services.generator.settings import PROFILES, SHIPPED, GeneratorSettings
from services.generator.sizes import SIZES
from services.kit.cpu import Isa, library_limits
from services.kit.settings import MeshUrls


@pytest.fixture(autouse=True)
def own_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test-isa` pretends another one."""
    for name in ("CRAGMESH_CPU_ISA", *library_limits("avx2")):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def small(tmp_path: Path) -> Path:
    """The small model, prepared."""
    return with_model(tmp_path)


def settings(folder: Path, **given: Any) -> GeneratorSettings:
    paths = {"interpreter": Path(sys.executable), "models_dir": folder, "adapters_dir": folder / "adapters"}
    return GeneratorSettings.model_validate(paths | {"shipped_adapters": False} | given)


def with_model(folder: Path, name: str = "SmolLM2-135M-Instruct") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "config.json").write_text("{}")
    return folder / name


def after(argv: tuple[str, ...], option: str) -> str:
    return argv[argv.index(option) + 1]


def test_the_local_model_is_served_with_the_profiles_arguments(tmp_path: Path, small: Path) -> None:
    made = command(settings(tmp_path))
    assert made.argv[:4] == (str(Path(sys.executable).absolute()), "-m", SERVER, "--config")
    assert after(made.argv, "--config") == str(PROFILES / "cpu.yaml")
    assert after(made.argv, "--model") == str(small)
    options = {"--port", "--host", "--shutdown-timeout", "--lora-modules", "--otlp-traces-endpoint"}
    assert not options & set(made.argv)
    assert "ONEDNN_MAX_CPU_ISA" not in made.env
    env = made.env
    assert (env["VLLM_NO_USAGE_STATS"], env["DO_NOT_TRACK"], env["HF_HUB_OFFLINE"]) == ("1", "1", "1")
    assert env["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "0"


@pytest.mark.parametrize(
    ("given", "words", "env"),
    [
        # vLLM puts the profile's arguments first, so that these win.
        ({"host": "10.0.0.1", "port": 9000}, "--host 10.0.0.1 --port 9000", ""),
        ({"shutdown_timeout_s": 0}, "--shutdown-timeout 0", ""),
        # Two busy processes on two cores do not spin.
        (
            {"threads": 2, "kv_cache_gib": 0.75},
            "--kv-cache-memory-bytes 805306368",
            "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=1000 VLLM_CPU_OMP_THREADS_BIND=nobind",
        ),
        (
            {"otlp_traces_endpoint": "http://collector:4318/v1/traces"},
            "--otlp-traces-endpoint http://collector:4318/v1/traces",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
        ),
        ({"hub": True, "profile": "t4"}, "--model meta-llama/Meta-Llama-3-8B-Instruct", "HF_HUB_OFFLINE=0"),
        # A CPU that pretends to be older is one to every library.
        (
            {"cpu_isa": "avx2"},
            f"-m {launch.MASKED_SERVER}",
            "ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 FBGEMM_ENABLE_INSTRUCTIONS=AVX2 CRAGMESH_CPU_ISA=avx2",
        ),
    ],
)
def test_a_setting_is_told_to_vllm_and_only_where_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], words: str, env: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    made, plain = command(settings(tmp_path, **given)), command(settings(tmp_path))
    assert f" {words} " in f" {' '.join(made.argv)} "
    assert f" {words} " not in f" {' '.join(plain.argv)} "
    assert words.startswith("-m ") or made.argv.index("--config") < made.argv.index(words.split()[0])
    assert dict(pair.split("=") for pair in env.split()).items() <= made.env.items()


@pytest.mark.parametrize(
    ("isa", "int8", "wanted", "name", "reason"),
    [
        (Isa.AVX2, False, "auto", "fp32", "bfloat16 is emulated (avx2)"),
        (Isa.AVX512_VNNI, False, "auto", "fp32", "bfloat16 is emulated (avx512_vnni)"),
        (Isa.AVX512_BF16, False, "auto", "bf16", "bfloat16 is computed (avx512_bf16)"),
        (Isa.AMX, False, "auto", "bf16", "bfloat16 is computed (amx)"),
        (Isa.BASE, True, "auto", "fp32", "no AVX2 for int8"),
        (Isa.AVX2, True, "auto", "int8", "int8 by fbgemm is the fastest on this CPU (avx2)"),
        (Isa.AVX512, True, "auto", "int8", "int8 by fbgemm is the fastest on this CPU (avx512)"),
        (Isa.AVX512_VNNI, True, "auto", "int8", "int8 by onednn is the fastest on this CPU (avx512_vnni)"),
        (Isa.AMX, True, "auto", "int8", "int8 by onednn is the fastest on this CPU (amx)"),
        (Isa.AVX2, True, "bf16", "bf16", "as configured"),
        (Isa.AMX, True, "fp32", "fp32", "as configured"),
        (Isa.AVX512_VNNI, True, "int8", "int8", "as configured"),
    ],
)
def test_the_number_format_follows_the_cpu_and_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small: Path,
    isa: Isa,
    int8: bool,
    wanted: str,
    name: str,
    reason: str,
) -> None:
    monkeypatch.setattr(launch, "instruction_set", {"avx2": isa}.__getitem__)
    if int8:
        with_model(tmp_path, f"{small.name}-int8")
    made = command(settings(tmp_path, precision=wanted, cpu_isa="avx2"))
    assert after(made.argv, "--dtype") == ("bfloat16" if name == "bf16" else "float32")
    assert after(made.argv, "--model") == str(small) + ("-int8" if name == "int8" else "")
    told = json.loads(made.env[launch.READINESS])
    assert (told["model"], told["device"], told["precision"]) == (small.name, "cpu", name)
    assert reason in told["detail"]


@pytest.mark.parametrize("size", [SIZES["medium"], SIZES["large"]], ids=["medium", "large"])
def test_a_named_size_is_served_by_its_own_name(tmp_path: Path, size: Any) -> None:
    model = with_model(tmp_path, size.model)
    made = command(settings(tmp_path, embedded=size.name))
    assert after(made.argv, "--model") == str(model)
    assert after(made.argv, "--served-model-name") == size.model
    assert json.loads(made.env[launch.READINESS])["model"] == size.model


def test_what_auto_took_is_served_and_told(tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="CRAGMESH_MODEL=auto has not chosen yet"):
        command(settings(tmp_path, embedded="auto"))
    chosen = {"size": "medium", "reason": "there is room", "machine": "this"}
    with_model(tmp_path, SIZES["medium"].model)
    (tmp_path / "embedded.json").write_text(json.dumps(chosen))
    made = command(settings(tmp_path, embedded="auto"))
    told = json.loads(made.env[launch.READINESS])
    assert told["model"] == "Qwen2.5-Coder-0.5B-Instruct"
    assert told["detail"].endswith("; auto took medium: there is room")


def test_int8_is_refused_where_nothing_else_is_left_and_nothing_multiplies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "instruction_set", lambda _limit: Isa.BASE)
    large = SIZES["large"]
    with pytest.raises(GeneratorError, match=r"\(base\) has no AVX2"):
        command(settings(tmp_path, precision="int8"))
    with_model(tmp_path, f"{large.model}-int8")
    with pytest.raises(GeneratorError, match=rf"\(base\) has no AVX2.*{large.hub}.*prepare --original`"):
        command(settings(tmp_path, embedded="large"))
    # A hub has the others.
    assert after(command(settings(tmp_path, embedded="large", hub=True)).argv, "--model") == large.hub
    original = with_model(tmp_path, large.model)
    made = command(settings(tmp_path, embedded="large"))
    assert after(made.argv, "--model") == str(original)
    assert made.env[launch.INT8_VOCABULARY] == "0"


@pytest.mark.parametrize(("isa", "kernel"), [(Isa.AVX2, "fbgemm"), (Isa.AVX512_VNNI, "onednn")])
def test_the_vocabulary_is_in_int8_with_the_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isa: Isa, kernel: str
) -> None:
    monkeypatch.setattr(launch, "instruction_set", lambda _limit: isa)
    int8 = with_model(tmp_path, f"{SIZES['large'].model}-int8")
    made = command(settings(tmp_path, embedded="large"))
    assert after(made.argv, "--model") == str(int8)
    assert (made.env[launch.INT8_VOCABULARY], made.env[launch.INT8_KERNEL]) == ("1", kernel)


def test_a_profile_that_names_its_type_keeps_it(tmp_path: Path) -> None:
    with_model(tmp_path, "Meta-Llama-3-8B-Instruct")
    with_model(tmp_path, "Meta-Llama-3-8B-Instruct-int8")
    made = command(settings(tmp_path, profile="t4"))
    told = json.loads(made.env[launch.READINESS])
    assert (after(made.argv, "--dtype"), told["precision"], told["device"]) == ("half", "fp16", "cuda")
    quantised = command(settings(tmp_path, precision="int8", profile="t4")).argv
    assert after(quantised, "--model").endswith("-int8")
    assert after(quantised, "--dtype") == "half"


def test_vllm_finds_the_plugin_and_no_other(tmp_path: Path) -> None:
    env = command(settings(tmp_path)).env
    found = list(distributions(path=[env["PYTHONPATH"]]))
    points = {point.name: point for distribution in found for point in distribution.entry_points}
    assert {point.group for point in points.values()} == {"vllm.general_plugins", "vllm.endpoint_plugins"}
    assert sorted(points) == sorted(env["VLLM_PLUGINS"].split(","))


def test_the_key_that_callers_send_is_asked_for_and_is_on_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "VLLM_API_KEY" not in command(settings(tmp_path)).env
    monkeypatch.setenv("CRAGMESH_GENERATOR_API_KEY", "s3cret")
    made = command(settings(tmp_path))
    assert made.env["VLLM_API_KEY"] == "s3cret" == MeshUrls().generator_api_key
    assert "s3cret" not in " ".join(made.argv) + repr(settings(tmp_path))


def test_adapters_are_served_by_their_folders_names(tmp_path: Path) -> None:
    folder = tmp_path / "adapters"
    for name in ("kg-api", "answer"):
        adapter(folder, name)
    # Another's says nothing of its base.
    (folder / "kg-api/adapter_config.json").write_text("{}")
    (folder / "unfinished").mkdir()
    argv = command(settings(tmp_path)).argv
    assert argv[argv.index("--lora-modules") + 1 :] == (f"answer={folder / 'answer'}", f"kg-api={folder / 'kg-api'}")
    adapter(folder, "a=b")
    with pytest.raises(GeneratorError, match="adapter's name"):
        command(settings(tmp_path))


def adapter(folder: Path, name: str, base: str = "HuggingFaceTB/SmolLM2-135M-Instruct") -> Path:
    path = folder / name
    path.mkdir(parents=True)
    (path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    return path


@pytest.mark.parametrize(
    ("given", "served"),
    [
        ({"embedded": "small"}, ["answer=adapters/answer", "kg-api=shipped/kg-api", "mine=adapters/mine"]),
        ({"embedded": "large"}, ["answer=shipped/large/answer", "yes-no=shipped/large/yes-no"]),
        ({"profile": "t4"}, []),
        ({"shipped_adapters": False}, ["answer=adapters/answer", "mine=adapters/mine"]),
    ],
    ids=["small", "large", "another model", "not the shipped"],
)
def test_adapters_are_served_where_they_fit_and_the_operators_own_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], served: list[str]
) -> None:
    shipped, own, large = tmp_path / "shipped", tmp_path / "adapters", SIZES["large"]
    monkeypatch.setattr(launch, "SHIPPED", shipped)
    for name in (large.model, "Meta-Llama-3-8B-Instruct"):
        with_model(tmp_path, name)
    for folder, name in ((shipped, "kg-api"), (shipped, "answer"), (own, "answer"), (own, "mine")):
        adapter(folder, name)
    for name in ("answer", "yes-no"):
        adapter(shipped / "large", name, large.hub)
    argv = command(settings(tmp_path, **{"shipped_adapters": True, **given})).argv
    words = argv[argv.index("--lora-modules") + 1 :] if "--lora-modules" in argv else ()
    assert [word.replace(f"{tmp_path}/", "") for word in words] == served


@pytest.mark.parametrize("text", ["{}", "[]", "", "\xff"])
def test_a_shipped_adapter_that_does_not_say_whom_it_is_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "shipped/answer").mkdir(parents=True)
    (tmp_path / "shipped/answer/adapter_config.json").write_bytes(text.encode("latin-1"))
    monkeypatch.setattr(launch, "SHIPPED", tmp_path / "shipped")
    with pytest.raises(GeneratorError, match=r"answer/adapter_config\.json"):
        command(settings(tmp_path, shipped_adapters=True))


def test_what_is_shipped_can_be_served_by_the_profile_of_its_model() -> None:
    profile = read_profile("cpu")
    every = [
        (size.hub, name, path) for size in SIZES.values() for name, path in launch.shipped_adapters(size.hub).items()
    ]
    assert len(every) == len([*SHIPPED.rglob("adapter_config.json")])
    for hub, name, path in every:
        config = json.loads((path / "adapter_config.json").read_text())
        assert config["base_model_name_or_path"] == hub, name
        assert config["r"] <= int(str(profile["max-lora-rank"])), name
        assert not config["modules_to_save"], name
        # Of rank 8 for 1.5 B parameters, in two bytes each.
        assert (path / "adapter_model.safetensors").stat().st_size < 18_000_000, name


def test_two_t4s_share_llama_and_get_no_cpu_settings(tmp_path: Path) -> None:
    model = with_model(tmp_path, "Meta-Llama-3-8B-Instruct")
    made = command(settings(tmp_path, profile="t4"))
    assert after(made.argv, "--model") == str(model)
    assert after(made.argv, "--served-model-name") == model.name
    assert not {name for name in made.env if name.startswith(("OMP_", "VLLM_CPU_", "VLLM_ENABLE_V1"))}
    assert read_profile("t4")["tensor-parallel-size"] == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"models_dir": Path("none")}, r"services\.generator prepare"),
        ({"interpreter": Path("none/bin/python")}, r"services\.generator environment"),
        ({"precision": "int8"}, "prepare --int8 HuggingFaceTB/SmolLM2-135M-Instruct"),
        ({"profile": "tpu"}, "cpu, gpu1, t4, t4-70b"),
        ({"profile": "./none.yml"}, "there is no profile"),
    ],
)
def test_what_is_missing_is_named_with_what_makes_it(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(GeneratorError, match=says):
        command(settings(tmp_path, **given))


def test_a_profile_of_ones_own_is_a_file_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "own" / "two-cards.yml"
    file.parent.mkdir()
    file.write_text((PROFILES / "cpu.yaml").read_text())
    assert after(command(settings(tmp_path, profile=str(file))).argv, "--config") == str(file)


@pytest.mark.parametrize(
    "text", ["", "- a", "port: 1", "model: [a]", "model: a\nx: [1]", "model: a\nx: {y: []}", "a: : b"]
)
def test_a_profile_that_vllm_could_not_use_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(GeneratorError, match=r"bad\.yaml"):
        read_profile(str(tmp_path / "bad.yaml"))


def test_serving_replaces_this_process_and_keeps_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    calls: list[tuple[str, Command]] = []

    def execve(path: str, argv: tuple[str, ...], env: dict[str, str]) -> None:
        calls.append((path, Command(argv, env)))

    monkeypatch.setattr("os.execve", execve)
    given = settings(tmp_path)
    launch.serve(given)
    ((path, started),) = calls
    assert path == started.argv[0]
    assert started.argv == command(given).argv
    assert (started.env["KEPT"], started.env["OMP_WAIT_POLICY"]) == ("1", "PASSIVE")


def test_how_a_model_was_smoothed_is_told_to_the_plugin_and_that_it_was_not_to_everybody(tmp_path: Path) -> None:
    model = with_model(tmp_path, "SmolLM2-135M-Instruct-int8")
    without = command(settings(tmp_path, precision="int8")).env
    assert launch.SMOOTHING not in without
    assert "not smoothed" in json.loads(without[launch.READINESS])["detail"]
    (model / "smoothing.json").write_text("{}")
    smoothed = command(settings(tmp_path, precision="int8")).env
    assert smoothed[launch.SMOOTHING] == str(model / "smoothing.json")
    in_fp32 = command(settings(tmp_path, precision="fp32")).env
    assert launch.SMOOTHING not in in_fp32
    for made in (smoothed, in_fp32):
        assert "not smoothed" not in json.loads(made[launch.READINESS])["detail"]
