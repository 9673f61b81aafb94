"""What all tests share."""

import signal

import pytest
from hypothesis import settings

# Whether an example is slow is for the benches to say: a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A suite that a script starts in the background is born deaf to Ctrl-C, and so are the processes that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
