"""Number formats of the base model while an adapter is taught."""

import importlib.util
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from lab.trainer import card, model, sft
from lab.trainer.errors import BadModel
from lab.trainer.recipe import Recipe
from lab.trainer.run import Progress
from services.kit.precision import choose_precision
from tests.unit.lab.trainer.tiny import NAME, examples, recipe


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, *, computes_bf16: bool) -> None:
    chosen = replace(choose_precision(model="any", threads=1), device="cuda:0")
    monkeypatch.setattr(model, "choose_precision", lambda **_: chosen)
    # As torch answers on a T4: bf16 is there, by emulation.
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or computes_bf16
    )


@pytest.mark.parametrize(("computes_bf16", "expected"), [(True, torch.bfloat16), (False, torch.float16)])
def test_a_gpu_never_emulates_bf16(monkeypatch: pytest.MonkeyPatch, computes_bf16: bool, expected: torch.dtype) -> None:
    on_a_gpu(monkeypatch, computes_bf16=computes_bf16)
    device, dtype, _ = model.number_format("any")
    assert (device.type, dtype) == ("cuda", expected)


def test_in_fp16_the_loss_is_scaled_and_the_adapter_learns(
    monkeypatch: pytest.MonkeyPatch, model_folder: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(model, "number_format", lambda *_, **__: (torch.device("cpu"), torch.float16, "fp16"))
    base = model.load(model_folder, name=NAME, threads=1)
    assert base.model.dtype is torch.float16
    result = sft.train(base, examples(60), recipe(epochs=2, score_examples=1), tmp_path / "run")
    losses = [point.loss for point in result.state.history if point.loss is not None]
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])
    assert all(parameter.dtype is torch.float32 for parameter in result.learner.parameters.values())


def test_a_run_in_fp16_that_goes_on_keeps_its_scale(
    monkeypatch: pytest.MonkeyPatch, model_folder: Path, tmp_path: Path
) -> None:
    # A scale that is to be found first, as that of a real model is.
    scaler = partial(torch.amp.GradScaler, init_scale=2.0**24)
    monkeypatch.setattr(torch.amp, "GradScaler", scaler)
    format_now = torch.float16
    monkeypatch.setattr(model, "number_format", lambda *_, **__: (torch.device("cpu"), format_now, str(format_now)))
    told: list[Progress] = []

    def run(name: str, stop: int = 0, *, resume: bool = False) -> sft.Result:
        def tell(now: Progress) -> None:
            told.append(now)
            if stop and now.phase == "training" and now.done == stop and not now.note:
                raise KeyboardInterrupt

        base = model.load(model_folder, name=NAME, threads=1)
        given = recipe(score_examples=1, dropout=0.0, checkpoint_steps=3, accumulation=1)
        return sft.train(base, examples(60), given, tmp_path / name, on_progress=tell, resume=resume)

    whole = run("whole").state
    assert whole.scaler["scale"] != 2.0**24
    with pytest.raises(KeyboardInterrupt):
        run("cut", stop=5)
    shutil.copytree(tmp_path / "cut", tmp_path / "elsewhere")
    resumed = run("cut", resume=True).state
    assert resumed.scaler == whole.scaler
    assert [point.loss for point in resumed.history] == pytest.approx(
        [point.loss for point in whole.history], nan_ok=True
    )
    format_now = torch.float32
    other = run("elsewhere", resume=True)
    assert any("begun in float16, going on in float32" in now.note for now in told)
    assert "begun in float16" in card.card("answer", other)


def test_four_bit_is_refused_in_words_without_cuda(model_folder: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(BadModel, match=r"on CUDA alone.*leave out --four-bit"):
        model.load(model_folder, name=NAME, four_bit=True)


def test_four_bit_names_the_extra_that_installs_it(monkeypatch: pytest.MonkeyPatch, model_folder: Path) -> None:
    on_a_gpu(monkeypatch, computes_bf16=True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadModel, match=r"pip install '\.\[four-bit\]'"):
        model.load(model_folder, name=NAME, four_bit=True)


def test_prompts_as_long_as_served_ones_fit_a_batch() -> None:
    assert Recipe.reading(Recipe().max_prompt_tokens) == {}
    longer = Recipe.model_validate(Recipe.reading(4_256))
    assert longer.max_prompt_tokens == 4_256
    assert longer.max_batch_tokens >= 4_256 + longer.max_completion_tokens
