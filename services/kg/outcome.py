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
    """One statement and what came of it."""

    source: str  # the statement in canonical form
    status: KgStatus  # see `proto.kg.KgStatus`
    function: Function | None = None  # the one whose rows these are; "" when there is none
    shown: tuple[str, ...] = ()  # names of the keys that were asked for
    rows: tuple[Mapping[str, Scalar], ...] = ()  # at most MAX_ROWS, keys to values
    total: int = 0  # rows found in all, or what a source states
    value: Scalar = None  # the aggregate or combination; None when the statement has none
    aggregate: str = ""  # how `value` was made
    entities: tuple[Entity, ...] = ()  # what the names were taken for
    windows: tuple[str, ...] = ()  # the times that were meant, in words
    notes: tuple[str, ...] = ()  # what the reader must be told
    message: str = ""  # what was wrong, in words
    expected: tuple[str, ...] = ()  # names that would have been right
    # Totals over the whole window, where the domain makes them.
    summary: Mapping[str, Scalar] = field(default_factory=dict)
