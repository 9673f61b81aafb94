"""What all tests share, and how the workers of `make test` share them."""

import gc
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

HERE = Path(__file__).parent
# By the beginning of their path: the tests that one worker takes together, since they share what is costly to start;
# under the empty name each goes alone. The longest come first, so that no worker is left with one at the end. All other
# tests go file by file.
GROUPS = {
    "e2e/test_mesh.py": "e2e",
    "unit/lab/evaluator/test_run.py": "",
    "unit/lab/trainer/test_sft.py": "training",
    "deploy/test_load_limits.py": "",
    "deploy/test_compose.py": "manifests",
    "deploy/test_manifests.py": "manifests",
    "mesh/test_schemathesis.py": "schemathesis",
    "mesh/": "mesh",
    "unit/lab/trainer/synthesise/test_": "synthesise",
    "unit/retriever/collections/": "collections",
    "places/": "places",
}

# Read by the libraries that compute, when they are imported. A worker has one core: a second thread would wait for the
# other worker's.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
for variable in THREADS:
    os.environ.setdefault(variable, "1")

# Whatever the default is: what is tested on a model is tested on the small one.
os.environ["CRAGMESH_MODEL"] = "small"

# Until all is imported and collected: searching it for garbage, of which there is none, takes a tenth of the time.
gc.disable()

# What was calibrated on this machine weighs no answer of a test.
os.environ["CRAGMESH_CONFIDENCE_DIR"] = str(HERE / "no-confidences")

# A scripted generator counts what it is asked; the tests that warm a gateway say so.
os.environ.setdefault("CRAGMESH_WARM_UP_S", "0")

# A traceback of a logged error in colours, with every variable, takes seconds of computing.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)

# Whether an example is slow is for the benches to say: a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A suite that a script starts in the background is born deaf to Ctrl-C, and so are the processes that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker a whole group at a time."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0].removeprefix(f"{HERE.name}/")
        group = next((group for start, group in GROUPS.items() if path.startswith(start)), path)
        return group or nodeid


# pytest-xdist 3.8 has a distribution by marks, which writes them into names that pytest 9 no longer lets it change.
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup:
    config.option.loadscopereorder = False
    return ByGroup(config, log)


def pytest_collection_finish() -> None:
    # What is there stays; only what tests leave is looked at.
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest groups first, for the workers."""
    if not hasattr(config, "workerinput"):
        return
    starts = (*GROUPS, "")

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(HERE).as_posix()
        return next(number for number, start in enumerate(starts) if path.startswith(start))

    items.sort(key=place)
