"""What unit tests of several services share."""

import pytest

from services.kit.encoder import Encoder
from services.kit.precision import Precision

FP32 = Precision("cpu", "fp32", "exact, for tests", threads=1)


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The MiniLM that ships in a package, loaded once."""
    encoder = Encoder(precision=FP32)
    encoder.load()
    return encoder
