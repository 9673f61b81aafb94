"""What all tests share, and how the workers of `make test` share them."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent
# By the beginning of their path: the tests that one worker takes together, since they share what is costly to start;
# under the empty name each goes alone. The longest come first, so that no worker is left with one at the end. All other
# tests go file by file.
GROUPS = {
    "e2e/test_mesh.py": "e2e",
    "unit/retriever/collections/test_interrupted.py": "",
    "unit/evaluator/test_run.py": "",
    "unit/trainer/test_sft.py": "training",
    "deploy/test_load_limits.py": "",
    "mesh/test_schemathesis.py": "schemathesis",
    "mesh/": "mesh",
    "unit/retriever/collections/": "collections",
}

# Read by the libraries that compute, when they are imported. A worker has one core: a second thread would wait for the
# other worker's.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Whether an example is slow is for the benches to say: a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A suite that a script starts in the background is born deaf to Ctrl-C, and so are the processes that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# Before xdist's own hook, which writes the groups into the tests' names.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name each test's group, and put the longest groups first."""
    if not config.getoption("loadgroup", False):
        return
    starts = tuple(GROUPS)

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(HERE).as_posix()
        return next((number for number, start in enumerate(starts) if path.startswith(start)), len(starts))

    for item in items:
        found = place(item)
        path = item.path.relative_to(HERE).as_posix()
        if group := GROUPS[starts[found]] if found < len(starts) else path:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=place)
