"""A made-up world that the tests of one process share."""

import random
from collections.abc import Iterator

import pytest

from lab.trainer.synthesise.engine import Engine
from lab.trainer.synthesise.phrasing import Phrasing
from services.kg.domains import CATALOGUE


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with Engine(Phrasing(random.Random("tests")), CATALOGUE) as one:
        yield one
