"""The number format is the fastest one that is exact enough, and says why."""

import sys
from pathlib import Path

import pytest
import torch

from services.kit import precision
from services.kit.cpu import Isa
from services.kit.precision import DtypeSetting, choose_precision

OTHER = "models/bge-base-en-v1.5"


def cpu(monkeypatch: pytest.MonkeyPatch, isa: Isa) -> None:
    monkeypatch.setattr(precision, "instruction_set", lambda limit="": isa)


@pytest.mark.parametrize("model", ["", OTHER])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "int8"])
def test_a_configured_format_is_taken(monkeypatch: pytest.MonkeyPatch, dtype: DtypeSetting, model: str) -> None:
    cpu(monkeypatch, Isa.AVX512_BF16)
    assert choose_precision(dtype, model=model, device="cpu").dtype == dtype


def test_fp16_on_a_cpu_is_refused() -> None:
    with pytest.raises(ValueError, match="fp16 is for GPUs"):
        choose_precision("fp16", device="cpu")


@pytest.mark.parametrize(("isa", "device"), [(Isa.BASE, "cpu"), (Isa.AMX, "cuda:0")])
def test_int8_needs_a_cpu_that_computes_it(monkeypatch: pytest.MonkeyPatch, isa: Isa, device: str) -> None:
    cpu(monkeypatch, isa)
    with pytest.raises(ValueError, match="int8 is for CPUs with AVX2"):
        choose_precision("int8", device=device)


def test_a_gpu_gets_fp16() -> None:
    chosen = choose_precision(device="cuda:0")
    assert (chosen.device, chosen.dtype, chosen.torch_dtype) == ("cuda:0", "fp16", torch.float16)


@pytest.mark.parametrize(
    ("isa", "dtype"),
    [(Isa.BASE, "fp32"), (Isa.AVX2, "int8"), (Isa.AVX512, "int8"), (Isa.AVX512_VNNI, "int8"), (Isa.AMX, "int8")],
)
def test_the_bundled_model_needs_no_torch(monkeypatch: pytest.MonkeyPatch, isa: Isa, dtype: str) -> None:
    cpu(monkeypatch, isa)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(precision, "GPU_DRIVERS", ())
    chosen = choose_precision(threads=3)
    assert (chosen.device, chosen.dtype, chosen.threads) == ("cpu", dtype, 3)
    assert isa in chosen.reason


def test_a_gpu_is_looked_for_where_there_is_a_driver_and_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(precision, "GPU_DRIVERS", (tmp_path / "none",))
    assert choose_precision().device == "cpu"
    monkeypatch.setattr(precision, "GPU_DRIVERS", (tmp_path,))
    assert choose_precision().device == "cuda:0"
    monkeypatch.setattr(precision, "has_torch", lambda: False)
    assert choose_precision().device == "cpu"


def test_an_instruction_set_can_be_left_out() -> None:
    assert choose_precision(device="cpu", limit="avx2").reason.endswith("(avx2)")
    assert choose_precision(model=OTHER, device="cpu", limit="avx2").dtype == "fp32"


@pytest.mark.parametrize(
    ("isa", "dtype"),
    [(Isa.AVX2, "fp32"), (Isa.AVX512_VNNI, "fp32"), (Isa.AVX512_BF16, "bf16"), (Isa.AMX, "bf16")],
)
def test_another_model_runs_in_bf16_where_the_cpu_computes_it(
    monkeypatch: pytest.MonkeyPatch, isa: Isa, dtype: str
) -> None:
    cpu(monkeypatch, isa)
    chosen = choose_precision(model=OTHER, device="cpu")
    assert chosen.dtype == dtype
    assert isa in chosen.reason


def test_another_model_without_torch_runs_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_torch", lambda: False)
    chosen = choose_precision(model=OTHER, device="cpu")
    assert chosen.dtype == "fp32"
    assert "torch is not installed" in chosen.reason
    with pytest.raises(ValueError, match="bf16 needs torch"):
        choose_precision("bf16", device="cpu")


def test_threads_are_set_for_the_process() -> None:
    before = torch.get_num_threads()
    try:
        choose_precision("fp32", model=OTHER, device="cpu", threads=1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_torch_has_no_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu(monkeypatch, Isa.AMX)
    with pytest.raises(ValueError, match="int8 is for BERT encoders"):
        _ = choose_precision("int8").torch_dtype
