"""Execution of programs on a made-up world, stored as the knowledge graph is, and their facts in its words."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, create_engine, text

from lab.trainer.synthesise.drawing import Slots, Thing, fill
from lab.trainer.synthesise.world import World
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.outcome import Outcome, Scalar
from services.kg.store.engine import open_store
from services.kg.verbalize import verbalize

EXECUTE_S = 5.0
# What a request to the graph's service allows by default.
MAX_TOKENS = 1_000
_SLOT = re.compile(r":(\w+(?:\.\w+)?)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement's outcome, and its text as the graph's service gives it."""

    outcome: Outcome
    text: str


@dataclass(slots=True)
class Graph:
    """A world to ask.

    Args:
        engine: of the database that holds it.
    """

    world: World
    engine: Engine
    executor: Executor
    _pools: dict[tuple[str, tuple[Any, ...]], list[Thing]] = field(default_factory=dict)

    def execute(self, program: str, domain: str, when: datetime) -> list[Statement]:
        """The statements of a program, in its order."""
        outcomes = self.executor.execute(program, domain=domain, query_time=when, seconds=EXECUTE_S)
        catalogue = self.executor.catalogue
        today = catalogue.asked(when, domain).date()
        texts = verbalize(outcomes, catalogue.domains, today, max_tokens=MAX_TOKENS)
        return [Statement(outcome, text) for outcome, text in zip(outcomes, texts, strict=True)]

    def pool(self, sql: str, slots: Slots) -> list[Thing]:
        """The rows of a pool's SQL, in which `:slot` and `:slot.column` stand for what was drawn before."""
        names = list(dict.fromkeys(_SLOT.findall(sql)))
        drawn = (fill(f"{{{name}}}", slots) for name in names)
        values = tuple(one if isinstance(one, str | int | float | None) else str(one) for one in drawn)
        if (sql, values) not in self._pools:
            bound = {f"p{number}": value for number, value in enumerate(values)}
            query = _SLOT.sub(lambda match: f":p{names.index(match[1])}", sql)
            with self.engine.connect() as connection:
                rows = connection.execute(text(query), bound).mappings().all()
            self._pools[sql, values] = [Thing(dict(row)) for row in rows]
        return self._pools[sql, values]


@contextmanager
def stored(world: World) -> Iterator[Graph]:
    """The world as a graph, which lasts as long as the context."""
    with tempfile.TemporaryDirectory(prefix="cragmesh-world-") as folder:
        url = f"sqlite:///{folder}/kg.sqlite"
        writing = create_engine(url)
        with writing.begin() as connection:
            world.store(connection)
        writing.dispose()
        engine = open_store(url)
        try:
            yield Graph(world, engine, Executor(engine, NameIndex(engine, world.catalogue), world.catalogue))
        finally:
            engine.dispose()


def shown(outcome: Outcome) -> list[Scalar]:
    """The values of the keys that a statement asks for."""
    values = (row.get(key) for row in outcome.rows for key in outcome.shown)
    return [value for value in values if value is not None]
