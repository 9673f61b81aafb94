"""Models with random weights: they know nothing, but load and pool as real ones do."""

import shutil
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from services.kit.encoder import bundled_model


def tiny_model(folder: Path, *, dimension: int = 32, seed: int = 1) -> Path:
    """A BERT of two layers with the bundled tokenizer, as plain transformers files without a word on pooling."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=30_522,
        hidden_size=dimension,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * dimension,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(bundled_model() / name, folder / name)
    return folder
