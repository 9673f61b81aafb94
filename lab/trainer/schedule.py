"""The schedule of the learning rate, by steps or by time."""

import math


def rate(progress: float, warm_up: float) -> float:
    """The share of the full learning rate at a share of the run: a straight rise, then a cosine down to nothing."""
    progress = min(1.0, max(0.0, progress))
    if progress < warm_up:
        return progress / warm_up
    return 0.5 * (1 + math.cos(math.pi * (progress - warm_up) / (1 - warm_up)))


def progress(step: int, steps: int, spent_s: float, limit_s: float) -> float:
    """The progress of a run, 0..1: by its steps, or by its time where that is further.

    Args:
        step: steps done.
        steps: steps in all.
        spent_s: seconds since the first step.
        limit_s: seconds for all steps; 0 sets no limit.
    """
    by_steps = step / steps
    return max(by_steps, spent_s / limit_s) if limit_s > 0 else by_steps
