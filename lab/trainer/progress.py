"""The progress of a training run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Phase = Literal["encoding", "measuring", "training"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A report of a run under way.

    Attributes:
        done: of `total`: prompts, examples or steps, by the phase.
        loss: of the last step, per example, in nats.
        tokens_per_s: computed in training lately, padding included.
        left_s: until the end of the run, None before it is known.
        note: a finding, for a line of its own.
    """

    phase: Phase
    done: int
    total: int
    epoch: float = 0.0
    loss: float = math.nan
    rate: float = 0.0
    tokens_per_s: float = 0.0
    left_s: float | None = None
    note: str = ""


OnProgress = Callable[[Progress], None]
