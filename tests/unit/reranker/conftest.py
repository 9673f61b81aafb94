"""Random models whose scores mean nothing, and whose loading and computing are real."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from services.reranker.app import create_app
from services.reranker.settings import RerankerSettings
from tests.unit.conftest import asking
from tests.unit.kit.tiny import TINY, saved


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal language model."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(4)
    model = LlamaForCausalLM(LlamaConfig(**TINY, initializer_range=0.5))
    return saved(model, tmp_path_factory.mktemp("language-model"))


def served(**settings: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return asking(create_app(RerankerSettings(threads=1, **settings)))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Session-wide here, since loading models is most of what these tests cost."""
    return "asyncio"
