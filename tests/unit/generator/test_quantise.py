"""The quantiser on a small model's folder, by the libraries that vLLM's interpreter has too."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from services.generator.quantise import quantise


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
def test_layers_become_int8_within_half_a_step_and_the_rest_stays(tmp_path: Path, shards: int) -> None:
    tensors = model(tmp_path / "model", shards=shards)
    out = tmp_path / "out"
    out.mkdir()
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


def test_what_cannot_be_quantised_is_refused_in_words(tmp_path: Path) -> None:
    folder, out = tmp_path / "model", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    (folder / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="no \\*\\.safetensors"):
        quantise(folder, out)
    save_file({"h.0.attn.c_attn.weight": torch.zeros(2, 2)}, folder / "model.safetensors")
    with pytest.raises(ValueError, match="architecture is not known"):
        quantise(folder, out)
    (folder / "config.json").write_text('{"quantization_config": {}}')
    with pytest.raises(ValueError, match="quantised already"):
        quantise(folder, out)
