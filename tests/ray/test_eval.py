"""A run whose questions the nodes of a Ray cluster ask: `make test-ray`."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.evaluator import runs
from lab.evaluator.store import Prediction, RunFolder
from tests.ray.cluster import Cluster
from tests.unit.lab.evaluator.conftest import FakeGateway, write_questions


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    gateway = FakeGateway()
    yield gateway
    gateway.stop()


def test_the_nodes_ask_what_one_process_would(tmp_path: Path, gateway: FakeGateway, nodes: Cluster) -> None:
    questions = write_questions(tmp_path / "questions.jsonl", 60)

    def run(order: runs.Order) -> list[Prediction]:
        asyncio.run(runs.run(order, None))
        predictions = (line.model_copy(update={"seconds": 0.0}) for line in order.folder.predictions())
        return sorted(predictions, key=lambda line: line.id)

    order = runs.Order(sources=(questions,), folder=RunFolder(tmp_path / "here"), gateway_url=gateway.url)
    here = run(order)
    there = run(replace(order, folder=RunFolder(tmp_path / "ray"), concurrency=8, engine="ray"))
    assert there == here
    assert set(gateway.asked.values()) == {2}
