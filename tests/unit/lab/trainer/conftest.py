from pathlib import Path

import pytest

from lab.trainer.model import Base, load
from tests.unit.lab.trainer.tiny import NAME, save_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def base(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Base:
    """The tiny model, read anew, in fp32: what is compared shall differ by nothing else."""
    monkeypatch.setattr("services.kit.precision.computes_bf16", lambda _: False)
    return load(model_folder, name=NAME, threads=1)
