"""What came of a statement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from proto.kg import KgStatus
from services.kg.language.catalogue import Function

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Entity:
    """A name as it was written, and what it was taken for."""

    name: str
    kind: str
    entity_ids: tuple[str, ...]
    surface: str
    score: float
    how: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One statement and what came of it.

    Args:
        source: the statement in canonical form.
        status: see `proto.kg.KgStatus`.
        function: the one whose rows these are; "" when there is none.
        shown: names of the keys that were asked for.
        rows: at most MAX_ROWS, keys to values.
        total: rows found in all, or what a source states.
        value: the aggregate or combination; None when the statement has none.
        aggregate: how `value` was made.
        entities: what the names were taken for.
        windows: the times that were meant, in words.
        notes: what the reader must be told.
        message: what was wrong, in words.
        expected: names that would have been right.
        summary: totals over the whole window, where the domain makes them.
    """

    source: str
    status: KgStatus
    function: Function | None = None
    shown: tuple[str, ...] = ()
    rows: tuple[Mapping[str, Scalar], ...] = ()
    total: int = 0
    value: Scalar = None
    aggregate: str = ""
    entities: tuple[Entity, ...] = ()
    windows: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    message: str = ""
    expected: tuple[str, ...] = ()
    summary: Mapping[str, Scalar] = field(default_factory=dict)
