"""The outcome of a statement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from proto.kg import KgEntity, KgStatus
from services.kg.language.catalogue import Function

Scalar: TypeAlias = str | int | float | bool | None
# How a name of a SELECT is resolved: it is stored as it is written there.
OF_SELECT = "sql"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A statement with its facts, or with what is wrong with it."""

    source: str  # the statement in canonical form
    status: KgStatus  # see `proto.kg.KgStatus`
    function: Function | None = None  # the one whose rows these are
    shown: tuple[str, ...] = ()  # names of the keys that the statement projects
    rows: tuple[Mapping[str, Scalar], ...] = ()  # at most MAX_ROWS, keys to values
    total: int = 0  # number of all rows, or the one that a source states
    value: Scalar = None  # the aggregate or combination; None when the statement has none
    aggregate: str = ""  # how `value` is computed
    entities: tuple[KgEntity, ...] = ()  # what its names were taken for
    windows: tuple[str, ...] = ()  # its times, in words
    conditions: tuple[str, ...] = ()  # those of a SELECT, in words
    notes: tuple[str, ...] = ()  # for the reader, in words
    message: str = ""  # the error, in words
    expected: tuple[str, ...] = ()  # names that would have been right
    # Totals over the whole window, where the domain makes them.
    summary: Mapping[str, Scalar] = field(default_factory=dict)
