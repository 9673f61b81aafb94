"""Only where Ray is installed: `make test-ray`."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.ray.cluster import Cluster

collect_ignore_glob = [] if find_spec("ray") else ["test_*.py"]


@pytest.fixture(scope="session")
def nodes() -> "Iterator[Cluster]":
    from tests.ray.cluster import cluster

    with cluster() as started:
        yield started
