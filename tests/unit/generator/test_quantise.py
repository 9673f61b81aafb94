"""The quantiser on a small model's folder, by the libraries that vLLM's interpreter has too."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from services.generator.quantise import quantise
from services.generator.smoothing import FILE, TEXTS


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def model(folder: Path, *, shards: int = 1) -> dict[str, torch.Tensor]:
    """A folder with the layers of a small Llama, in as many files."""
    generator = torch.Generator().manual_seed(1)
    tensors = {
        f"model.layers.{layer}.{name}": torch.randn(shape, generator=generator).to(torch.bfloat16)
        for layer in range(2)
        for name, shape in {
            "self_attn.q_proj.weight": (16, 8),
            "mlp.down_proj.weight": (8, 24),
            "input_layernorm.weight": (8,),
        }.items()
    }
    tensors["model.embed_tokens.weight"] = torch.randn(32, 8, generator=generator).to(torch.bfloat16)
    # A row of zeros has no scale of its own.
    tensors["model.layers.0.self_attn.q_proj.weight"][3] = 0
    folder.mkdir()
    names = sorted(tensors)
    for number in range(shards):
        save_file({name: tensors[name] for name in names[number::shards]}, folder / f"model-{number}.safetensors")
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"the same once more")
    return tensors


@pytest.mark.parametrize("shards", [1, 2])
def test_layers_become_int8_within_half_a_step_and_the_rest_stays(tmp_path: Path, out: Path, shards: int) -> None:
    tensors = model(tmp_path / "model", shards=shards)
    quantise(tmp_path / "model", out)
    made = {name: tensor for path in out.glob("*.safetensors") for name, tensor in load_file(path).items()}
    for name, tensor in tensors.items():
        if not name.endswith("_proj.weight"):
            assert torch.equal(made[name], tensor), name
            continue
        scale = made[f"{name}_scale"]
        assert made[name].dtype == torch.int8
        assert scale.shape == (len(tensor), 1)
        assert bool(((made[name] * scale - tensor.float()).abs() <= scale / 2 + 1e-7).all()), name
    config = json.loads((out / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert config["quantization_config"]["quant_method"] == "compressed-tensors"
    assert {path.suffix for path in out.iterdir()} == {".json", ".safetensors"}
    index = out / "model.safetensors.index.json"
    assert index.is_file() == (shards > 1)
    if shards > 1:
        places = json.loads(index.read_text())["weight_map"]
        assert places.keys() == made.keys()
        assert all(name in load_file(out / file) for name, file in places.items())


def test_what_cannot_be_quantised_is_refused_in_words(tmp_path: Path, out: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="no \\*\\.safetensors"):
        quantise(folder, out)
    save_file({"h.0.attn.c_attn.weight": torch.zeros(2, 2)}, folder / "model.safetensors")
    with pytest.raises(ValueError, match="architecture is not known"):
        quantise(folder, out)
    (folder / "config.json").write_text('{"quantization_config": {"bits": 4}}')
    with pytest.raises(ValueError, match="quantised already"):
        quantise(folder, out)


def test_layers_that_stay_wide_are_named_and_weights_of_another_layout_are_not_read(tmp_path: Path, out: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    name = "model.layers.0.self_attn.q_proj.weight"
    tensors = {name: torch.ones(4, 4), "model.layers.0.mlp.fc1.weight": torch.ones(4, 4)}
    save_file(tensors, folder / "model.safetensors")
    save_file({"layers.0.attention.wq.weight": torch.ones(4, 4)}, folder / "consolidated.safetensors")
    (folder / "config.json").write_text("{}")
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs")
    quantise(folder, out)
    scheme = json.loads((out / "config.json").read_text())["quantization_config"]
    assert scheme["ignore"] == ["lm_head", "model.layers.0.mlp.fc1"]
    assert sorted(path.name for path in out.iterdir()) == ["config.json", "model.safetensors"]
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ValueError, match="not written as others are"):
        quantise(folder, out)


def llama(folder: Path) -> dict[str, torch.Tensor]:
    """A small Llama with a tokenizer, two channels of whose norms' outputs are far larger than the others."""
    torch.manual_seed(3)
    sizes: dict[str, Any] = {"vocab_size": 256, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2))
    with torch.no_grad():
        for layer in model.model.layers:
            for norm in (layer.input_layernorm, layer.post_attention_layernorm):
                norm.weight[[3, 17]] = 60.0
            for reader in (layer.self_attn.q_proj, layer.self_attn.v_proj, layer.mlp.gate_proj, layer.mlp.up_proj):
                reader.weight[:, [3, 17]] /= 60.0
    model.save_pretrained(folder)
    words = sorted(set(TEXTS.read_text(encoding="utf-8").split()))[:250]
    vocabulary = {word: number for number, word in enumerate(["[unk]", *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[unk]"))  # noqa: S106 - a token of a vocabulary
    tokenizer.pre_tokenizer = WhitespaceSplit()
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, unk_token="[unk]").save_pretrained(folder)  # noqa: S106
    return dict(model.state_dict())


def test_outliers_of_the_inputs_go_to_the_weights_exactly(tmp_path: Path, out: Path) -> None:
    tensors = llama(tmp_path / "model")
    quantise(tmp_path / "model", out)
    made = load_file(out / "model.safetensors")
    said = json.loads((out / FILE).read_text())
    assert len(said["exponents"]) == 4
    assert len(said["reads"]) == 2 * 5
    for norm, exponents in said["exponents"].items():
        assert min(exponents[3], exponents[17]) >= 2 + max(exponents[:3]), norm
        scales = torch.exp2(torch.tensor(exponents, dtype=torch.float32))
        assert torch.equal(made[f"{norm}.weight"] * scales, tensors[f"{norm}.weight"]), norm
        for name in (name for name, read in said["reads"].items() if read == norm):
            back = made[f"{name}.weight"] * made[f"{name}.weight_scale"] / scales
            step = made[f"{name}.weight_scale"] / scales
            assert bool(((back - tensors[f"{name}.weight"]).abs() <= step / 2 + 1e-7).all()), name


def test_an_unknown_architecture_is_quantised_as_it_is(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text('{"model_type": "gemma"}')
    quantise(tmp_path / "model", out)
    assert not (out / FILE).exists()
    assert "not smoothed: gemma" in capsys.readouterr().out
