"""The doctor over what nvidia-smi prints for each card, in the form of its CSV query."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from services.generator import doctor
from services.generator.__main__ import main
from services.generator.doctor import LIST, Report, attention, examine, require, run_smi
from services.generator.errors import GeneratorError
from services.generator.settings import GeneratorSettings

UUID = "GPU-8a56a4bc-e184-a047-2620-be19fdf913d5"
T4 = f"0, {UUID}, Tesla T4, 15360, 14914, 580.95.05, 7.5, [N/A]\n"
FOUR_T4S = "".join(
    f"{index}, GPU-{index}{UUID[5:]}, Tesla T4, 15360, 14914, 580.95.05, 7.5, [N/A]\n" for index in range(4)
)
L4 = f"0, {UUID}, NVIDIA L4, 23034, 22563, 580.82.07, 8.9, [N/A]\n"
H100 = f"0, {UUID}, NVIDIA H100 80GB HBM3, 81559, 81008, 580.95.05, 9.0, Disabled\n"
B200 = f"0, {UUID}, NVIDIA B200, 183359, 182632, 580.95.05, 10.0, Disabled\n"
V100 = f"0, {UUID}, Tesla V100-SXM2-16GB, 16384, 15937, 580.95.05, 7.0, [N/A]\n"
RTX_2060 = f"0, {UUID}, NVIDIA GeForce RTX 2060, 6144, 5790, 580.95.05, 7.5, [N/A]\n"
UNIFIED = f"0, {UUID}, NVIDIA GB10, [N/A], [N/A], 580.95.05, 12.1, [N/A]\n"
MIG = H100.replace("81559, 81008", "[Insufficient Permissions], [Insufficient Permissions]").replace("Dis", "En")
SLICES = f"""GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID})
  MIG 3g.40gb     Device  0: (UUID: MIG-3c25b2f5-5dd4-5a3b-9a8f-0e1a2f0a0c11)
  MIG 1g.10gb     Device  1: (UUID: MIG-8d0c6c3e-9f0a-5f0e-8a55-5f6c3f1d2b22)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
  MIG 2g.10gb     Device  0: (UUID: MIG-77777777-9f0a-5f0e-8a55-5f6c3f1d2b22)
"""
LLAMA = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
# Of the published files, in bytes.
AWQ, HALF = 5_730_000_000, 16_060_000_000


def examined(tmp_path: Path, printed: str, profile: str = "gpu1", **options: Any) -> Report:
    """The doctor's report where nvidia-smi prints this.

    Args:
        options: of the settings, but for `weights` (bytes), `config`, `cuda` and `environment`.
    """
    weights, config = options.pop("weights", 0), options.pop("config", LLAMA)
    cuda, environment = options.pop("cuda", True), options.pop("environment", {})
    name = {"gpu1": "llama-3-8b-instruct-awq", "t4": "Meta-Llama-3-8B-Instruct"}.get(profile, "own")
    folder = tmp_path / "models" / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    if weights:
        with (folder / "model.safetensors").open("wb") as file:
            file.truncate(weights)
    settings = GeneratorSettings.model_validate({"models_dir": tmp_path / "models", "profile": profile} | options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "run_smi", lambda command: SLICES if command == LIST else printed)
        patch.setattr(doctor, "has_cuda", lambda: cuda)
        for name in ("CUDA_VISIBLE_DEVICES", doctor.COMPATIBILITY):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        return examine(settings)


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (T4, "Tesla T4, 15.0 GiB (14.6 free), driver 580.95.05, compute capability 7.5, attention by TRITON_ATTN"),
        (L4, "NVIDIA L4, 22.5 GiB (22.0 free), driver 580.82.07, compute capability 8.9, attention by FLASH_ATTN"),
        (H100, "80GB HBM3, 79.6 GiB (79.1 free), driver 580.95.05, compute capability 9.0, attention by FLASH_ATTN"),
        (B200, "compute capability 10.0, attention by FLASHINFER"),
        (MIG, "NVIDIA H100 80GB HBM3, MIG 3g.40gb, 37.3 GiB (37.3 free), driver 580.95.05, compute capability 9.0"),
        (L4.replace("580.82.07", "550.90.07"), "driver 550.90.07, compute capability 8.9"),
        (UNIFIED, "NVIDIA GB10, memory not told, driver 580.95.05, compute capability 12.1, attention by FLASH_ATTN"),
    ],
)
def test_a_card_that_serves_is_described(tmp_path: Path, printed: str, says: str) -> None:
    # An old driver may serve by forward compatibility.
    compatible = {doctor.COMPATIBILITY: "1"} if "550" in printed else {}
    report = examined(tmp_path, printed, weights=AWQ, environment=compatible)
    assert report.refusals == []
    assert report.lines[0] == "profile gpu1: casperhansen/llama-3-8b-instruct-awq in float16 on one card"
    assert report.lines[1].endswith("65% of a card's memory free, some 9.1 GiB of it")
    assert says in report.lines[2]


@pytest.mark.parametrize(
    ("printed", "options", "refusal"),
    [
        (T4.replace("580.95.05", "535.183.01"), {}, "driver 535.183.01 is too old for CUDA 13: install 580 or newer"),
        (V100, {}, "Tesla V100-SXM2-16GB has compute capability 7.0: vLLM needs 7.5"),
        (RTX_2060, {"weights": AWQ}, "9.1 GiB are needed, and 65% of NVIDIA GeForce RTX 2060 are 3.9"),
        (T4.replace("14914", "4096"), {}, "4.0 GiB of Tesla T4 are free, and vLLM starts with 9.8: another process"),
        (T4, {"precision": "bf16"}, "Tesla T4 computes no bfloat16: `dtype: half` in the profile"),
        (T4, {"profile": "t4"}, "2 cards are needed, and there are 1"),
        (MIG, {"profile": "t4"}, "no more than one slice (MIG)"),
        (FOUR_T4S, {"environment": {"CUDA_VISIBLE_DEVICES": ""}}, "1 cards are needed, and there are 0"),
        (FOUR_T4S, {"profile": "t4", "environment": {"CUDA_VISIBLE_DEVICES": "3"}}, "and there are 1"),
        (T4, {"cuda": False}, "CUDA is not here (libcuda.so.1): NVIDIA_DRIVER_CAPABILITIES must have `compute`"),
        ('Field "compute_cap" is not a valid field to query.\n', {}, 'Field "compute_cap" is not a valid field'),
    ],
)
def test_what_cannot_work_is_refused_in_words(
    tmp_path: Path, printed: str, options: dict[str, Any], refusal: str
) -> None:
    refusals = examined(tmp_path, printed, **options).refusals
    assert len(refusals) == 1
    assert refusal in refusals[0]


def test_eight_billion_weights_in_half_need_two_t4s(tmp_path: Path) -> None:
    own = tmp_path / "one-card.yaml"
    own.write_text("model: some/own\ndtype: half\ngpu-memory-utilization: 0.9\nmax-model-len: 8192\n")
    assert "17.3 GiB are needed" in examined(tmp_path, T4, str(own), weights=HALF).refusals[0]
    report = examined(tmp_path, FOUR_T4S, "t4", weights=HALF)
    assert report.refusals == []
    assert report.lines[1].endswith("some 9.3 GiB of it")
    assert len(report.lines) == 6


@pytest.mark.parametrize(
    ("config", "refused"), [({"torch_dtype": "bfloat16"}, True), ({"dtype": "float16"}, False), ({}, False)]
)
def test_where_the_profile_leaves_it_open_the_weights_have_a_format(
    tmp_path: Path, config: dict[str, str], refused: bool
) -> None:
    own = tmp_path / "open.yaml"
    own.write_text("model: some/own\n")
    assert bool(examined(tmp_path, T4, str(own), config=config).refusals) is refused


@pytest.mark.parametrize(("written", "gib"), [("8k", 17.2), ("8K", 17.3), ("auto", 16.3), ("-1", 16.3)])
def test_lengths_are_read_as_vllm_reads_them(tmp_path: Path, written: str, gib: float) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(f"model: some/own\ndtype: half\nmax_model_len: {written}\n")
    assert f"some {gib} GiB" in examined(tmp_path, T4, str(own), weights=HALF).lines[1]


def test_cards_are_counted_in_the_order_that_cuda_is_given(tmp_path: Path) -> None:
    cards = H100 + V100.replace("0, GPU", "1, GPU-1")
    report = examined(tmp_path, cards, environment={"CUDA_VISIBLE_DEVICES": "1,0"})
    assert "V100" in report.refusals[0]


def test_a_slice_may_be_named(tmp_path: Path) -> None:
    report = examined(tmp_path, MIG, weights=AWQ, environment={"CUDA_VISIBLE_DEVICES": "MIG-8d0c6c3e"})
    assert "and 65% of NVIDIA H100 80GB HBM3, MIG 1g.10gb are 6.1: take a smaller model" in report.refusals[0]


@pytest.mark.parametrize(
    ("printed", "status", "says"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, "couldn't communicate"),
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95", 18, "restart the"),
        ("No devices were found", 6, "No devices were found"),
    ],
)
def test_a_broken_driver_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, status: int, says: str
) -> None:
    def broken(_: Sequence[str]) -> str:
        return run_smi(("sh", "-c", 'printf "%s" "$1"; exit "$2"', "sh", printed, str(status)))

    monkeypatch.setattr(doctor, "run_smi", broken)
    report = examine(GeneratorSettings(profile="gpu1", models_dir=tmp_path))
    assert len(report.refusals) == 1
    assert says in report.refusals[0]


def test_no_driver_and_a_driver_that_hangs_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GeneratorError, match="no NVIDIA driver, or the container was started without its cards"):
        run_smi(("nvidia-smi-that-is-not-there",))

    def hang(command: Sequence[str], **_: Any) -> Any:
        raise subprocess.TimeoutExpired(list(command), 30)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(GeneratorError, match="lost a card"):
        run_smi(("nvidia-smi",))


def test_a_profile_for_the_cpu_needs_no_card(tmp_path: Path) -> None:
    assert examined(tmp_path, "", "cpu", embedded="small").refusals == []


def test_float32_has_a_backend_of_its_own() -> None:
    assert attention(9.0, "float32") == "TRITON_ATTN"


def test_the_launcher_asks_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "examine", lambda _: Report([], ["no card"]))
    with pytest.raises(GeneratorError, match="the profile gpu1 cannot be served here: no card"):
        require(GeneratorSettings(profile="gpu1"))
    monkeypatch.setattr("sys.argv", ["generator", "serve", "--profile", "gpu1"])
    with pytest.raises(SystemExit, match="cannot be served here"):
        main()
    assert capsys.readouterr().out == ""
