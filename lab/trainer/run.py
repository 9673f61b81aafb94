"""A training run, whatever it trains: its schedule, its clock, its progress and its checkpoints."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor
from torch.nn import Parameter

from lab.trainer import checkpoint
from lab.trainer.checkpoint import Checkpoint, Point, State
from lab.trainer.errors import BadCheckpoint, Diverged
from lab.trainer.recipe import ReaderRecipe, Recipe

CHECKPOINTS = "checkpoints"
# Steps over which the speed is averaged.
SPEED_STEPS = 20
# Steps in a row whose gradients overflow in fp16 while its scale is found; it starts at 65,536 and halves.
MAX_OVERFLOWS = 20

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


def rate(progress: float, warm_up: float) -> float:
    """The share of the full learning rate at a share of the run: a straight rise, then a cosine down to nothing."""
    progress = min(1.0, max(0.0, progress))
    if progress < warm_up:
        return progress / warm_up
    return 0.5 * (1 + math.cos(math.pi * (progress - warm_up) / (1 - warm_up)))


def progress(step: int, steps: int, spent_s: float, limit_s: float) -> float:
    """The progress of a run, 0..1: by its steps, or by the seconds since the first where a limit makes that further."""
    by_steps = step / steps
    return max(by_steps, spent_s / limit_s) if limit_s > 0 else by_steps


@contextmanager
def without_denormals() -> Iterator[None]:
    """Round values too small for a normal float to zero: they cost a hundred times the time."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@dataclass(slots=True, kw_only=True)
class Run:
    """A run under way.

    Args:
        folder: of its checkpoints.
        began: when, by the monotonic clock; later when it goes on.
        steps: in all.
        parameters: what is trained by name, in the optimiser's order.
        scaler: of the loss.
        heights: full learning rates of the optimiser's groups.
    """

    recipe: Recipe | ReaderRecipe
    folder: Path
    state: State
    on_progress: OnProgress
    began: float
    steps: int
    parameters: dict[str, Parameter]
    optimizer: torch.optim.AdamW
    scaler: torch.amp.GradScaler = field(default_factory=lambda: torch.amp.GradScaler("cpu", enabled=False))
    speeds: list[tuple[int, float]] = field(default_factory=list)
    heights: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.heights = [group["lr"] for group in self.optimizer.param_groups]

    @property
    def epoch(self) -> float:
        """Epochs that are done."""
        raise NotImplementedError

    @property
    def steps_s(self) -> float:
        """Seconds for all steps; 0 sets no limit."""
        raise NotImplementedError

    @property
    def spent_s(self) -> float:
        return self.state.spent_s + time.monotonic() - self.began

    @property
    def progress(self) -> float:
        return progress(self.state.step, self.steps, self.spent_s - self.state.begun_s, self.steps_s)

    def descend(self, loss: float, tokens: int, began: float) -> None:
        """The end of a step, which began then: its gradients are clipped and applied.

        Args:
            loss: mean over its examples.

        Raises:
            Diverged: the loss or the gradients are no numbers.
        """
        state = self.state
        # By the step to come, so that the first one already learns something.
        share = rate(max(self.progress, (state.step + 1) / (self.steps + 1)), self.recipe.warm_up)
        for group, height in zip(self.optimizer.param_groups, self.heights, strict=True):
            group["lr"] = height * share
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.recipe.max_grad_norm)
        if not (math.isfinite(loss) and self._bounded(float(norm))):
            raise Diverged(
                f"the loss of step {state.step + 1} is no number: choose a smaller --learning-rate; the last "
                f"checkpoint in {self.folder} is whole"
            )
        # Passes a step over whose gradients overflowed, and halves the scale.
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        state.step += 1
        state.tokens += tokens
        self.speeds = [*self.speeds[1 - SPEED_STEPS :], (tokens, time.monotonic() - began)]
        learning_rate = self.optimizer.param_groups[0]["lr"]
        state.history.append(Point(step=state.step, epoch=self.epoch, loss=loss, rate=learning_rate))
        self.tell(loss)

    def _bounded(self, norm: float) -> bool:
        """Whether a gradient's norm is a number, or one of few in a row that overflowed in fp16."""
        state = self.state
        state.overflows = 0 if math.isfinite(norm) else state.overflows + 1
        return not state.overflows or (self.scaler.is_enabled() and state.overflows <= MAX_OVERFLOWS)

    def tell(self, loss: float = math.nan, note: str = "") -> None:
        state, done = self.state, self.progress
        tokens, seconds = (sum(column) for column in zip(*self.speeds, strict=True)) if self.speeds else (0, 0.0)
        left_s = (self.spent_s - state.begun_s) / done * (1 - done) + state.measure_s if state.step and done else None
        self.on_progress(
            Progress(
                "training",
                state.step,
                self.steps,
                self.epoch,
                loss,
                self.optimizer.param_groups[0]["lr"],
                tokens / seconds if seconds else 0.0,
                left_s,
                note,
            )
        )

    def count_time(self) -> None:
        """Add this process's seconds to the state's."""
        self.state.spent_s, self.began = self.spent_s, time.monotonic()

    def save(self, tensors: dict[str, Tensor]) -> None:
        """Write a checkpoint of these tensors and the optimiser's.

        Raises:
            WriteFailed: the disk took no more; the checkpoints before it stay as they were.
        """
        self.count_time()
        moments = checkpoint.optimizer_tensors(self.optimizer, list(self.parameters))
        checkpoint.save(self.folder, Checkpoint(self.state, tensors | moments))

    def begin(self, *, resume: bool) -> None:
        """Go on from the last checkpoint; begin where there is none.

        Raises:
            BadCheckpoint: there are some, and the run is not to go on from them; none can be read; or they are of
                another training.
            BadModel: their tensors do not fit this model.
        """
        if not checkpoint.checkpoints(self.folder):
            return
        if not resume:
            raise BadCheckpoint(f"{self.folder} has checkpoints: go on with --resume, or choose another folder")
        saved = checkpoint.last(self.folder, on_bad=lambda problem: self.tell(note=f"passed over: {problem}"))
        checkpoint.check(saved.state, self.state.fixed)
        checkpoint.restore_optimizer(self.optimizer, list(self.parameters), saved.part("optimizer"))
        self.state, self.began = saved.state, time.monotonic()
        self.restore(saved)
        # More time may have been given since; whatever else ended it still holds.
        if self.state.stopped == "time" and self.progress < 1:
            self.state.stopped = ""
        self.tell(note=f"going on from step {self.state.step} of {self.steps}")

    def restore(self, saved: Checkpoint) -> None:
        """Take over what is learnt from a checkpoint, whose state is the run's already."""
        raise NotImplementedError
