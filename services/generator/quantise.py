"""From a model folder to one with int8 weights: run by vLLM's interpreter, as a script.

Each linear layer's weights become int8 with a scale for each output channel; activations are quantised for each token
when they are met (W8A8, "dynamic"), which takes no calibration data. Embeddings, norms and the vocabulary keep their
type. The format is compressed-tensors', which vLLM's CPU backend computes with VNNI or AMX, and the plugin with less.
Inputs are smoothed first.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from services.generator.files import MANIFEST
from services.generator.smoothing import Smoothing, smoothing

# What a folder of weights may hold beside safetensors and is of no use in another format.
OTHER_WEIGHTS = {".safetensors", ".bin", ".gguf", ".pt", ".pth", ".onnx"}
INDEX = "model.safetensors.index.json"
# Architectures whose `*_proj.weight` have a column for each output channel.
TRANSPOSED = {"gpt2", "openai-gpt"}
# The largest magnitude, the same on both sides of zero.
LEVELS = 127
SMALLEST_SCALE = 1e-8


def quantise(source: Path, out: Path) -> None:
    """Write `source`'s model to `out`, a folder that exists and is empty, in int8.

    Raises:
        ValueError: the folder has no safetensors, is quantised already, or has no layer to quantise.
    """
    shards = _shards(source)
    if not shards:
        raise ValueError(f"{source} holds no *.safetensors")
    config = json.loads((source / "config.json").read_text(encoding="utf-8-sig"))
    if is_quantised(source):
        raise ValueError(f"{source} is quantised already")
    if config.get("model_type") in TRANSPOSED:
        raise ValueError(f"{source} is a {config['model_type']}, whose layers are not written as others are")
    smooth = smoothing(source, config, sum(shard.stat().st_size for shard in shards))
    places: dict[str, str] = {}
    wide = ["lm_head"]
    for number, shard in enumerate(shards, start=1):
        print(f"{shard.name} ({number} of {len(shards)})", flush=True)
        tensors = dict(_int8(shard, smooth))
        _save(tensors, out / shard.name)
        places |= dict.fromkeys(tensors, shard.name)
        matrices = (name for name, tensor in tensors.items() if name.endswith(".weight") and tensor.dim() == 2)
        wide += [name.removesuffix(".weight") for name in matrices if f"{name}_scale" not in tensors]
    if not any(name.endswith("_scale") for name in places):
        raise ValueError(f"{source} has no layer named *_proj: its architecture is not known")
    if len(shards) > 1:
        (out / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}), encoding="utf-8")
    for path in kept(source):
        shutil.copyfile(path, out / path.name)
    if smooth.exponents:
        smooth.write(out)
    config["quantization_config"] = _scheme(wide)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def kept(source: Path) -> list[Path]:
    """What stands beside the weights and goes with them, by name; hidden files, as of git, do not."""
    return sorted(
        path
        for path in source.iterdir()
        if path.is_file()
        and not path.name.startswith(".")
        and path.suffix not in OTHER_WEIGHTS
        and path.name not in (INDEX, MANIFEST)
    )


def is_quantised(source: Path) -> bool:
    """Whether a model's weights are in few bits already."""
    return bool(json.loads((source / "config.json").read_text(encoding="utf-8-sig")).get("quantization_config"))


def _shards(source: Path) -> list[Path]:
    """The files of the weights that transformers reads; a folder may hold them in another layout too."""
    if (source / INDEX).is_file():
        places = json.loads((source / INDEX).read_text(encoding="utf-8"))["weight_map"]
        return [source / name for name in sorted({Path(name).name for name in places.values()})]
    return sorted(source.glob("model*.safetensors")) or sorted(source.glob("*.safetensors"))


def _int8(shard: Path, smooth: Smoothing) -> Iterator[tuple[str, Any]]:
    # Checked as vLLM's environment has it; the mesh's own environment may have neither.
    torch: Any = import_module("torch")
    safetensors: Any = import_module("safetensors")
    with safetensors.safe_open(shard, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - it is no mapping
            tensor = smooth.apply(name, file.get_tensor(name))
            if not name.endswith("_proj.weight"):
                yield name, tensor.contiguous()
                continue
            weight = tensor.float()
            scale = weight.abs().amax(1, keepdim=True).clamp(min=SMALLEST_SCALE) / LEVELS
            yield name, (weight / scale).round().clamp(-LEVELS, LEVELS).to(torch.int8)
            yield f"{name}_scale", scale


def _save(tensors: dict[str, Any], path: Path) -> None:
    import_module("safetensors.torch").save_file(tensors, path, metadata={"format": "pt"})


def _scheme(wide: Sequence[str]) -> dict[str, Any]:
    """What vLLM reads of the format: https://github.com/vllm-project/compressed-tensors.

    Args:
        wide: the modules that keep their type.
    """
    eight = {"num_bits": 8, "type": "int", "symmetric": True}
    weights = eight | {"strategy": "channel", "dynamic": False}
    activations = eight | {"strategy": "token", "dynamic": True}
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": list(dict.fromkeys(wide)),
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": activations}},
    }


if __name__ == "__main__":
    try:
        quantise(*map(Path, sys.argv[1:]))
    except ValueError as error:
        sys.exit(str(error))
