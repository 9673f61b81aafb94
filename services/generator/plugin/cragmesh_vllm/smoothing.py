"""Adapters on a smoothed model: their A is scaled as the weights of the layer beside it were.

`services/generator/smoothing.py` says what smoothing is, and leaves `smoothing.json` in the model's folder.
"""

import json
import os
from pathlib import Path
from typing import Any

import torch
from vllm.lora.lora_model import LoRAModel

# By the launcher: `smoothing.json` of the model that is served, or nothing.
SMOOTHING = "CRAGMESH_SMOOTHING"


def smooth_adapters() -> None:
    """Have every adapter fit the smoothed model when its tensors are loaded; on others nothing changes."""
    path = os.environ.get(SMOOTHING)
    load = LoRAModel.from_lora_tensors.__func__
    if not path or getattr(load, "smooths", False):
        return
    said = json.loads(Path(path).read_text(encoding="utf-8"))
    scales = {norm: torch.exp2(torch.tensor(of, dtype=torch.float32)) for norm, of in said["exponents"].items()}

    def load_smoothed(cls: type, *args: Any, **kwargs: Any) -> Any:
        adapter = load(cls, *args, **kwargs)
        for name, layer in adapter.loras.items():
            if norm := said["reads"].get(name):
                layer.lora_a = (layer.lora_a * scales[norm]).to(layer.lora_a.dtype)
        return adapter

    load_smoothed.smooths = True  # type: ignore[attr-defined]
    LoRAModel.from_lora_tensors = classmethod(load_smoothed)
