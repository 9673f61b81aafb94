"""The language and the rules on real questions, where CRAGMESH_EVAL_DATA names a folder that has them."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from lab.crag_data import load_folder
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.errors import UnknownKey
from services.kg.execute import Executor
from services.kg.generate.rules import RuleWriter
from services.kg.generate.spans import Spotter
from services.kg.language.bind import Binder
from services.kg.language.parse import parse_each
from services.kg.language.tree import Query, render
from services.kg.load import load
from services.kg.store.engine import open_store
from tests.bench.kg_eval import Bench, load_questions
from tests.unit.kg.graph import disposed

FOLDER = Path(os.environ.get("CRAGMESH_EVAL_DATA") or "/nonexistent")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="CRAGMESH_EVAL_DATA names no folder of real questions")


def programs() -> Iterator[tuple[str, str]]:
    for line in (FOLDER / "crag_api_gen.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["calls"]:
            yield row["domain"], "\n".join(row["calls"])


def test_worked_programs_are_read_and_bound() -> None:
    for domain, program in programs():
        binder = Binder(CATALOGUE, domain)
        for parsed in parse_each(program, CATALOGUE.spellings):
            assert isinstance(parsed.statement, Query), (program, parsed.error)
            (again,) = parse_each(render(parsed.statement))
            assert again.statement == parsed.statement
            try:
                binder.bind(parsed.statement)
            except UnknownKey:
                # Some ask for a key that no function of theirs has either.
                binder.skip()


@pytest.fixture(scope="module")
def real_graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    url = f"sqlite:///{tmp_path_factory.mktemp('real') / 'kg.sqlite'}"
    with disposed(open_store(url, read_only=False)) as engine:
        load(FOLDER / "public_tables", engine)
        load_folder(FOLDER / "kg_rows", engine)
    with disposed(open_store(url)) as store:
        yield store


def test_facts_of_real_questions_hold_the_answer(real_graph: Engine) -> None:
    """Right entity, window and value, without any model; a regression shows here before a model is asked."""
    names = NameIndex(real_graph, CATALOGUE)
    bench = Bench(
        Executor(real_graph, names, CATALOGUE),
        {"rules": RuleWriter(CATALOGUE, Spotter(real_graph, CATALOGUE))},
        real_graph,
        5.0,
    )

    async def ask_all() -> list[tuple[str, bool]]:
        results = [await bench.ask(question, "rules") for question in load_questions(FOLDER)]
        return [(result.verdict, result.unnamed) for result in results]

    results = asyncio.run(ask_all())
    assert sum(verdict == "answered" for verdict, _ in results) / len(results) > 0.85
    assert sum(unnamed for _, unnamed in results) / len(results) < 0.02
