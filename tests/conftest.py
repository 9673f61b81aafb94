"""What all tests share."""

import pytest
from hypothesis import settings

# Whether an example is slow is for the benches to say: a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
