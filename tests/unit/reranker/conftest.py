"""Random models whose scores mean nothing, and whose loading and computing are real."""

import shutil
from pathlib import Path
from typing import Any

import torch

from services.kit.encoder import bundled_model

TINY: dict[str, Any] = {
    "vocab_size": 30_522,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def saved(model: Any, folder: Path) -> Path:
    """A model in a folder, with the bundled tokenizer."""
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(bundled_model() / name, folder)
    return folder


def saved_language_model(folder: Path) -> Path:
    """A causal language model."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(4)
    return saved(LlamaForCausalLM(LlamaConfig(**TINY, initializer_range=0.5)), folder)
