"""Adapters on disk, as vLLM's `--lora-modules` takes them: `adapter_config.json` and `adapter_model.safetensors`."""

import hashlib
import json
import math
from pathlib import Path
from typing import cast

import safetensors
import safetensors.torch
import torch
from peft import LoraConfig
from torch import Tensor

from lab.trainer import files
from lab.trainer.errors import BadModel
from lab.trainer.model import Learner, misfit

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
# peft puts an adapter's name into those of its parameters, and leaves it out in files.
_OWN = ".default."


def check_target(folder: Path, run: Path) -> None:
    """Raise `BadTarget` where an adapter would replace another folder than an adapter's, or the run's own."""
    files.check_target(folder, run, marker=CONFIG, written="adapter", lack="is no adapter")


def write(folder: Path, learner: Learner, tensors: dict[str, Tensor], others: dict[str, bytes]) -> None:
    """Replace an adapter's folder, whole or not at all.

    The weights are written in bf16, the format in which the base model is served: half the size, and what vLLM would
    round them to.

    Raises:
        WriteFailed: the disk took no more; what was there stays.
    """
    narrow = {name.replace(_OWN, "."): tensor.to(torch.bfloat16).contiguous() for name, tensor in tensors.items()}
    config = learner.adapted.peft_config["default"].to_dict()
    config |= {"inference_mode": True, "base_model_name_or_path": learner.base.name, "modules_to_save": None}
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in config.items()}
    text = json.dumps(plain, indent=2, sort_keys=True, default=str) + "\n"
    weights = safetensors.torch.save(narrow, metadata={"format": "pt"})
    files.write_folder(folder, {CONFIG: text.encode(), TENSORS: weights, **others})


def digest(folder: Path) -> str:
    """SHA-256 of an adapter's weights.

    Raises:
        BadModel: they cannot be read.
    """
    try:
        return hashlib.sha256((folder / TENSORS).read_bytes()).hexdigest()
    except OSError as error:
        raise BadModel(f"{folder}: no adapter that can be read: {error}") from error


def read(folder: Path, learner: Learner) -> dict[str, Tensor]:
    """An adapter's tensors in fp32, by their names in the model, with B for the learner's scale.

    Raises:
        BadModel: it cannot be read, is for another base model, or of another shape.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        tensors = safetensors.torch.load_file(folder / TENSORS)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise BadModel(f"{folder}: no adapter that can be read: {error}") from error
    made_for = str(config.get("base_model_name_or_path") if isinstance(config, dict) else "")
    if made_for != learner.base.name:
        raise BadModel(f"{folder} is for {made_for or 'an unnamed model'}, and the base model is {learner.base.name}")
    if problem := misfit(tensors, {name.replace(_OWN, "."): one for name, one in learner.parameters.items()}):
        raise BadModel(f"{folder} does not fit {learner.base.name}: {problem}")
    try:
        rank = math.sqrt(config["r"]) if config.get("use_rslora") else config["r"]
        scale = config["lora_alpha"] / rank / _scale(learner)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise BadModel(f"{folder}: no adapter that can be read: {CONFIG} has no lora_alpha and r") from None
    read = {name: tensors[name.replace(_OWN, ".")].float() for name in learner.parameters}
    return {name: tensor * scale if ".lora_B." in name else tensor for name, tensor in read.items()}


def _scale(learner: Learner) -> float:
    config = cast(LoraConfig, learner.adapted.peft_config["default"])
    return config.lora_alpha / config.r
