"""Random models whose scores mean nothing, and whose loading and computing are real."""

import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from services.kit.encoder import bundled_model
from services.reranker.app import create_app
from services.reranker.settings import RerankerSettings
from tests.unit.conftest import asking

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


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal language model."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(4)
    return saved(
        LlamaForCausalLM(LlamaConfig(**TINY, initializer_range=0.5)), tmp_path_factory.mktemp("language-model")
    )


def served(**settings: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return asking(create_app(RerankerSettings(threads=1, **settings)))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Session-wide here, since loading models is most of what these tests cost."""
    return "asyncio"
