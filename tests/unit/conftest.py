"""What unit tests of several services share."""

from collections.abc import Iterator

import pytest
import torch

from services.kit.encoder import Encoder
from services.kit.precision import Precision

FP32 = Precision("cpu", "fp32", "exact, for tests")


@pytest.fixture(scope="session")
def encoder() -> Iterator[Encoder]:
    """The MiniLM that ships in a package, loaded once."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    encoder = Encoder(precision=FP32)
    encoder.load()
    yield encoder
    torch.set_num_threads(threads)
