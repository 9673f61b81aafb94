"""Models with random weights: they know nothing, but load and compute as real ones do."""

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

from services.kit.encoder import bundled_model

WIDTH = 32
TINY: dict[str, Any] = {
    "vocab_size": 30_522,
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def saved(model: Any, folder: Path) -> Path:
    """A model in a folder as plain transformers files, with the bundled tokenizer."""
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(bundled_model() / name, folder / name)
    return folder


def tiny_model(folder: Path, *, dimension: int = WIDTH, seed: int = 1) -> Path:
    """A BERT without a word on pooling."""
    torch.manual_seed(seed)
    sizes = TINY | {"hidden_size": dimension, "intermediate_size": 2 * dimension}
    return saved(BertModel(BertConfig(**sizes, max_position_embeddings=128)), folder)
