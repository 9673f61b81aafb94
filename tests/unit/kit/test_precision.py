"""The number format is the fastest one that is exact enough, and says why."""

import pytest
import torch

from services.kit import precision
from services.kit.precision import Wanted, choose_precision


def capabilities(**flags: bool) -> dict[str, object]:
    return {"architecture": "x86_64", **flags}


def measured(monkeypatch: pytest.MonkeyPatch, fp32: float, bf16: float) -> None:
    monkeypatch.setattr(precision, "calibrate", lambda seconds: {"fp32": fp32, "bf16": bf16})


@pytest.mark.parametrize("wanted", ["fp32", "bf16"])
def test_a_configured_format_is_not_measured(wanted: Wanted) -> None:
    chosen = choose_precision(wanted, device="cpu")
    assert (chosen.dtype, chosen.measured) == (wanted, {})


def test_fp16_on_a_cpu_is_refused() -> None:
    with pytest.raises(ValueError, match="fp16 is for GPUs"):
        choose_precision("fp16", device="cpu")


def test_a_gpu_gets_fp16() -> None:
    chosen = choose_precision(device="cuda:0")
    assert (chosen.device, chosen.dtype, chosen.torch_dtype) == ("cuda:0", "fp16", torch.float16)


def test_a_cpu_without_bfloat16_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities(avx2=True))
    chosen = choose_precision(device="cpu")
    assert (chosen.dtype, chosen.measured) == ("fp32", {})


@pytest.mark.parametrize(("fp32", "bf16", "dtype"), [(9.0, 3.0, "bf16"), (3.1, 3.0, "fp32"), (3.0, 9.0, "fp32")])
def test_bfloat16_has_to_be_faster_than_noise(
    monkeypatch: pytest.MonkeyPatch, fp32: float, bf16: float, dtype: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities(avx512_bf16=True))
    measured(monkeypatch, fp32, bf16)
    chosen = choose_precision(device="cpu")
    assert chosen.dtype == dtype
    assert "avx512_bf16" in chosen.reason
    assert chosen.measured == {"fp32": fp32, "bf16": bf16}


def test_threads_are_set_for_the_process() -> None:
    before = torch.get_num_threads()
    try:
        choose_precision("fp32", device="cpu", threads=1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_calibration_times_both_formats_even_without_time() -> None:
    times = precision.calibrate(0.0)
    assert set(times) == {"fp32", "bf16"}
    assert all(0 < milliseconds < float("inf") for milliseconds in times.values())
