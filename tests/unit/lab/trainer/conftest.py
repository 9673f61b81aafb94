from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.trainer.model import Base, load
from tests.unit.lab.trainer.tiny import NAME, save_model

Fresh = Callable[[], Base]


@pytest.fixture(scope="module", autouse=True)
def exact() -> Iterator[None]:
    """All compute in fp32, so that what is compared differs by nothing else, and draw masks for a tiny model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("services.kit.precision.computes_bf16", lambda _: False)
        patch.setattr("lab.trainer.lora.POOL", 1 << 16)
        yield


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="session")
def fresh(model_folder: Path) -> Fresh:
    """Reads the tiny model anew, since training changes the one that it gets."""
    return lambda: load(model_folder, name=NAME, threads=1)


@pytest.fixture
def base(fresh: Fresh) -> Base:
    return fresh()
