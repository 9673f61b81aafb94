"""The cost of a wrong answer: a word for the setting, a number for the fit."""

from typing import Literal

Caution = Literal["low", "balanced", "high"]
# The cost of a wrong answer where a right one earns 1. In theory an answer pays from the probability c / (1 + c) on.
COSTS: dict[Caution, float] = {"low": 0.5, "balanced": 1.0, "high": 2.0}
# Default duration of `cragmesh calibrate --made-up`; messages about a missing fit name it.
CALIBRATION_MINUTES = 10


def line(cost: float) -> float:
    """The least probability of being right at which an answer pays, in theory."""
    return cost / (1 + cost)
