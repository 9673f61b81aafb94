"""Proof of made-up programs: each is executed on the world that its question is about, and must find what it shall."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.trainer.synthesise.programs.drawn import Drawn
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.load import load
from services.kg.outcome import Outcome
from services.kg.store.engine import open_store

EXECUTE_S = 5.0
# Of numbers that were computed in another order.
TOLERANCE = 1e-6


@contextmanager
def executor(rows: Iterable[dict[str, Any]]) -> Iterator[Executor]:
    """Runs programs on a graph of these rows, which lasts as long as the context."""
    with tempfile.TemporaryDirectory(prefix="cragmesh-world-") as folder:
        path = Path(folder) / "world.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        url = f"sqlite:///{folder}/kg.sqlite"
        engine = open_store(url, read_only=False)
        try:
            load(path, engine)
        finally:
            engine.dispose()
        engine = open_store(url)
        try:
            yield Executor(engine, NameIndex(engine, CATALOGUE), CATALOGUE)
        finally:
            engine.dispose()


def proven(run: Executor, drawn: Drawn) -> bool:
    """Whether the program is understood and finds all that its question asks for, in each of its statements."""
    record = drawn.record
    outcomes = run.execute(record.program, domain=record.domain, query_time=record.query_time, seconds=EXECUTE_S)
    if not drawn.gold:
        return record.program == "none" and [one.status for one in outcomes] == ["no_program"]
    return all(one.status == "ok" for one in outcomes) and holds(outcomes, drawn.gold)


def holds(outcomes: Sequence[Outcome], gold: Sequence[object]) -> bool:
    """Whether all values are among those found: of the shown keys, the totals where they were counted, the value."""
    found: list[object] = []
    for outcome in outcomes:
        found.append(outcome.value)
        found += [row.get(key) for row in outcome.rows for key in outcome.shown]
        found += [row.get("entity") for row in outcome.rows]
    return all(any(_same(one, other) for other in found if other is not None) for one in gold)


def _same(gold: object, found: object) -> bool:
    if isinstance(gold, int | float) and isinstance(found, int | float):
        return abs(gold - found) <= TOLERANCE * max(1.0, abs(gold))
    one, other = str(gold).casefold(), str(found).casefold()
    # A company's officers are stated with their office; lists of genres and times of day come as one text.
    return one == other or (len(one) > 3 and one in other)
