"""How dear a wrong answer is: a word for the setting, a number for the fit."""

from typing import Literal

Caution = Literal["low", "balanced", "high"]
# What a wrong answer costs where a right one earns 1. In theory an answer pays from the probability c / (1 + c) on.
COSTS: dict[Caution, float] = {"low": 0.5, "balanced": 1.0, "high": 2.0}
# What `cragmesh calibrate --made-up` takes unless it is told otherwise; said wherever nothing is fitted.
CALIBRATION_MINUTES = 10


def line(cost: float) -> float:
    """The least probability of being right at which an answer pays, in theory."""
    return cost / (1 + cost)


def shifted(threshold: float, cost: float) -> float:
    """A threshold that was fitted at a cost of 1, moved to another: the odds that pay grow with the cost."""
    return cost * threshold / (1 - threshold + cost * threshold)
