"""The small graph in a store of its own, as the service opens it: read-only."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.store.engine import open_store
from tests.unit.kg.graph import disposed, fill

POSTGRES = os.environ.get("CRAGMESH_TEST_POSTGRES", "")


DIALECTS = ["sqlite", "postgresql"]


def database(dialect: str, file: Path) -> str:
    """The URL of a database of that dialect: a file, or the server that is named for tests."""
    if dialect == "sqlite":
        return f"sqlite:///{file}"
    if not POSTGRES:
        pytest.skip("CRAGMESH_TEST_POSTGRES names no server")
    return POSTGRES


@pytest.fixture(scope="session", params=DIALECTS)
def small_graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    url = database(request.param, tmp_path_factory.mktemp("graph") / "small.sqlite")
    with disposed(create_engine(url)) as engine:
        fill(engine)
    with disposed(open_store(url)) as store:
        yield store


@pytest.fixture(scope="session")
def executor(small_graph: Engine) -> Executor:
    return Executor(small_graph, NameIndex(small_graph, CATALOGUE), CATALOGUE)


@pytest.fixture
def scratch(tmp_path: Path) -> str:
    """URL of a store that is not there yet."""
    return f"sqlite:///{tmp_path / 'scratch.sqlite'}"
