"""Supervised fine-tuning of one adapter: steps, measurements, checkpoints, and going on after a kill."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from pydantic import JsonValue
from torch import Tensor

from lab.trainer import adapter, checkpoint
from lab.trainer.attention import sharing
from lab.trainer.batches import collate
from lab.trainer.checkpoint import Checkpoint, Point, State, Stop, without_denormals
from lab.trainer.dataset import Example
from lab.trainer.errors import BadDataset, Diverged
from lab.trainer.measure import batch_loss, replies, validation_loss
from lab.trainer.model import Base, Learner, adapt, set_weights, weights
from lab.trainer.plan import Data, Step, plan, prepare
from lab.trainer.progress import OnProgress, Progress
from lab.trainer.recipe import Recipe
from lab.trainer.schedule import progress, rate
from lab.trainer.score import Scorer, Scores
from lab.trainer.scorers import scorer_of

CHECKPOINTS = "checkpoints"
# The end's measurement may take so much longer than the first, which shared the machine with nothing else of ours.
MEASURE_MARGIN = 1.3
# Steps over which the speed is averaged.
SPEED_STEPS = 20
# Steps in a row whose gradients overflow in fp16 while its scale is found; it starts at 65,536 and halves.
MAX_OVERFLOWS = 20


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run."""

    learner: Learner
    data: Data
    recipe: Recipe
    state: State
    best: dict[str, Tensor]
    stopped: Stop

    @property
    def start(self) -> str:
        """The adapter that the run went on from, by name and SHA-256; empty when it began with a new one."""
        return str(self.state.fixed["start"])

    @property
    def before(self) -> Point:
        """What the run began with, measured: the base model, or the adapter that it went on from."""
        return next(point for point in self.state.history if point.score is not None)

    @property
    def after(self) -> Point:
        """The adapter that is kept, measured."""
        measured = (point for point in self.state.history if point.score is not None)
        return next(point for point in measured if point.step == self.state.best_step)


def fixed(base: Base, data: Data, recipe: Recipe, start: Path | None) -> dict[str, JsonValue]:
    """What must be the same for a run to go on.

    Raises:
        BadModel: the adapter to begin with cannot be read.
    """
    began = f"{start.resolve().name} {adapter.digest(start)}" if start else ""
    model = {"base": base.name, "weights": base.fingerprint, "four_bit": base.four_bit}
    return {**model, "data": data.sha256, "start": began, **recipe.fixed()}  # type: ignore[dict-item]


def train(
    base: Base,
    examples: Sequence[Example],
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = False,
    start: Path | None = None,
    scorer: Scorer | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Result:
    """Train an adapter.

    Args:
        folder: checkpoints are kept in it.
        resume: go on from the last checkpoint there, which must be of the same training; without one begin.
        start: an adapter to begin with instead of a new one.
        scorer: the task score; that of the examples' task when None.
        on_progress: told of every step, measurement and finding.

    Raises:
        TrainerError: why it ended before the last step. The last checkpoint is whole.
    """
    began = time.monotonic()
    tasks = {example.task for example in examples}
    if len(tasks) != 1:
        raise BadDataset(f"one adapter learns one task, and the examples are of {', '.join(sorted(tasks)) or 'none'}")
    data = prepare(examples, base, recipe, on_progress)
    learner = adapt(base, recipe)
    if start:
        set_weights(learner, adapter.read(start, learner))
    run = _Run(
        learner,
        data,
        recipe,
        plan(data, recipe),
        folder / CHECKPOINTS,
        fixed(base, data, recipe, start),
        scorer or scorer_of(tasks.pop()),
        on_progress,
        began,
    )
    if checkpoint.goes_on(run.folder, resume=resume):
        run.restore()
    with without_denormals():
        return run.go()


@dataclass(slots=True)
class _Run:
    learner: Learner
    data: Data
    recipe: Recipe
    steps: list[Step]
    folder: Path
    fixed: dict[str, JsonValue]
    scorer: Scorer
    on_progress: OnProgress
    began: float
    step: int = 0
    tokens: int = 0
    spent_before_s: float = 0.0
    begun_s: float = 0.0
    measure_s: float = 0.0
    best_step: int = -1
    best: dict[str, Tensor] = field(default_factory=dict)
    waited: int = 0
    history: list[Point] = field(default_factory=list)
    speeds: list[tuple[int, float]] = field(default_factory=list)
    stopped: Stop = ""
    overflows: int = 0
    number_format: str = field(init=False)
    scaler: torch.amp.GradScaler = field(init=False)
    parameters: list[torch.nn.Parameter] = field(init=False)
    optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        self.parameters = list(self.learner.parameters.values())
        base = self.learner.base
        self.number_format = base.number_format
        # What fp16 cannot hold of small gradients it holds of larger ones; other formats need no scale.
        self.scaler = torch.amp.GradScaler(base.device.type, enabled=base.model.dtype is torch.float16)
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=self.recipe.learning_rate, weight_decay=self.recipe.weight_decay
        )

    @property
    def spent_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.began

    @property
    def progress(self) -> float:
        """How far the run is, 0..1, by its steps or its time."""
        limit_s = self.recipe.time_limit_s
        left_for_steps = max(1.0, limit_s - MEASURE_MARGIN * self.measure_s - self.begun_s) if limit_s else 0.0
        return progress(self.step, len(self.steps), self.spent_s - self.begun_s, left_for_steps)

    def go(self) -> Result:
        if not self.history:
            self._measure(scored=True)
            self.begun_s = self.spent_s
        while self.step < len(self.steps) and not self.stopped:
            step = self.steps[self.step]
            rate_now = self._rate()
            loss = self._learn(step, rate_now)
            self.history.append(Point(step=self.step, epoch=step.epoch, loss=loss, rate=rate_now))
            self._tell(loss, rate_now)
            if self.step == len(self.steps):
                self.stopped = "epochs"
            elif self.recipe.time_limit_s and self.progress >= 1:
                self.stopped = "time"
            if step.ends_epoch or self.stopped:
                self._measure(scored=True)
            elif self.recipe.validation_steps and self.step % self.recipe.validation_steps == 0:
                self._measure(scored=False)
            if self.stopped or self.step % self.recipe.checkpoint_steps == 0:
                self._save()
        return Result(self.learner, self.data, self.recipe, self._state(), self.best, self.stopped)

    def _learn(self, step: Step, rate_now: float) -> float:
        """One step: gradients of all its batches, clipped, applied; the mean loss of its examples."""
        learner = self.learner
        learner.adapted.train()
        if learner.masks:
            learner.masks.draw()
        for group in self.optimizer.param_groups:
            group["lr"] = rate_now
        examples = sum(map(len, step.batches))
        began, tokens, total = time.monotonic(), 0, 0.0
        with sharing(learner.plain):
            for items in step.batches:
                batch = collate(items).to(learner.base.device)
                loss = batch_loss(learner, batch) / examples
                self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
                total += loss.item()
                tokens += batch.size
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.recipe.max_grad_norm)
        if not (math.isfinite(total) and self._bounded(float(norm))):
            raise Diverged(
                f"the loss of step {self.step + 1} is no number: choose a smaller --learning-rate; the last checkpoint "
                f"in {self.folder} is whole"
            )
        # Passes a step over whose gradients overflowed, and halves the scale.
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += tokens
        self.speeds = [*self.speeds[1 - SPEED_STEPS :], (tokens, time.monotonic() - began)]
        return total

    def _bounded(self, norm: float) -> bool:
        """Whether a gradient's norm is a number, or one of few in a row that overflowed in fp16."""
        self.overflows = 0 if math.isfinite(norm) else self.overflows + 1
        return not self.overflows or (self.scaler.is_enabled() and self.overflows <= MAX_OVERFLOWS)

    def _rate(self) -> float:
        # The step to come, so that the first one already learns something.
        ahead = max(self.progress, (self.step + 1) / (len(self.steps) + 1))
        return self.recipe.learning_rate * rate(ahead, self.recipe.warm_up)

    def _measure(self, *, scored: bool) -> None:
        began = time.monotonic()
        recipe, data = self.recipe, self.data
        total = len(data.validation) + (len(data.scored) if scored else 0)
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self.on_progress(Progress("measuring", done, total, self._epoch()))

        loss = validation_loss(
            self.learner, data.validation, max_tokens=recipe.max_batch_tokens, prefix=data.prefix, on_progress=advance
        )
        if not math.isfinite(loss):
            raise Diverged(f"the validation loss at step {self.step} is no number: choose a smaller --learning-rate")
        scores: Scores | None = None
        if scored:
            texts = replies(self.learner, data.scored, max_tokens=recipe.max_batch_tokens, on_progress=advance)
            scores = self.scorer([item.example for item in data.scored], texts)
            self.measure_s = max(self.measure_s, time.monotonic() - began)
        earlier = [point.validation_loss for point in self.history if point.validation_loss is not None]
        self.waited = 0 if not earlier or loss < min(earlier) else self.waited + 1
        point = Point(step=self.step, epoch=self._epoch(), validation_loss=loss, score=scores)
        if scores is not None and self.step and self._is_best(point):
            self.best_step, self.best = self.step, weights(self.learner)
        self.history.append(point)
        words = f"step {self.step}: validation loss {loss:.4f}"
        if scores is not None:
            words += ", " + ", ".join(f"{name} {value:+.3f}" for name, value in scores.items())
        self._tell(note=words)
        if recipe.patience and self.waited >= recipe.patience and not self.stopped:
            self.stopped = "patience"
            if not scored:
                self._measure(scored=True)

    def _is_best(self, point: Point) -> bool:
        best = next((one for one in self.history if one.score and one.step == self.best_step), None)
        return best is None or _worth(point) > _worth(best)

    def _epoch(self) -> float:
        return self.steps[self.step - 1].epoch if self.step else 0.0

    def _tell(self, loss: float = math.nan, rate_now: float = 0.0, note: str = "") -> None:
        tokens, seconds = sum(one for one, _ in self.speeds), sum(one for _, one in self.speeds)
        trained_s, done = self.spent_s - self.begun_s, self.progress
        self.on_progress(
            Progress(
                "training",
                self.step,
                len(self.steps),
                self._epoch(),
                loss,
                rate_now,
                tokens / seconds if seconds else 0.0,
                trained_s / done * (1 - done) + self.measure_s if self.step and done else None,
                note,
            )
        )

    def _state(self) -> State:
        return State(
            fixed=self.fixed,
            step=self.step,
            spent_s=self.spent_s,
            begun_s=self.begun_s,
            measure_s=self.measure_s,
            tokens=self.tokens,
            best_step=self.best_step,
            waited=self.waited,
            number_format=self.number_format,
            scaler=self.scaler.state_dict(),
            overflows=self.overflows,
            history=tuple(self.history),
            stopped=self.stopped,
        )

    def _save(self) -> None:
        tensors = {f"adapter.{name}": tensor for name, tensor in weights(self.learner).items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        tensors |= checkpoint.optimizer_tensors(self.optimizer, list(self.learner.parameters))
        tensors["rng.cpu"] = torch.get_rng_state()
        if self.learner.base.device.type == "cuda":
            tensors["rng.cuda"] = torch.cuda.get_rng_state(self.learner.base.device)
        checkpoint.save(self.folder, Checkpoint(self._state(), tensors))

    def restore(self) -> None:
        """Go on from the last checkpoint.

        Raises:
            BadCheckpoint: there is none that can be read, or it is of another training.
            BadModel: its tensors do not fit this model.
        """
        saved = checkpoint.last(self.folder, on_bad=lambda problem: self._tell(note=f"passed over: {problem}"))
        checkpoint.check(saved.state, self.fixed)
        set_weights(self.learner, saved.part("adapter"))
        checkpoint.restore_optimizer(self.optimizer, list(self.learner.parameters), saved.part("optimizer"))
        random_states = saved.part("rng")
        torch.set_rng_state(random_states["cpu"])
        if self.learner.base.device.type == "cuda" and "cuda" in random_states:
            torch.cuda.set_rng_state(random_states["cuda"], self.learner.base.device)
        state = saved.state
        if state.scaler and self.scaler.is_enabled():
            self.scaler.load_state_dict(state.scaler)
        if self.number_format != state.number_format:
            self._tell(note=f"begun in {state.number_format}, going on in {self.number_format}: the steps are others")
        self.overflows, self.number_format = state.overflows, state.number_format
        self.step, self.tokens, self.waited = state.step, state.tokens, state.waited
        self.spent_before_s, self.begun_s, self.measure_s = state.spent_s, state.begun_s, state.measure_s
        self.best_step, self.best = state.best_step, saved.part("best")
        self.history = list(state.history)
        self.began = time.monotonic()
        # More time may have been given since; whatever else ended it still holds.
        self.stopped = "" if state.stopped == "time" and self.progress < 1 else state.stopped
        self._tell(note=f"going on from step {self.step} of {len(self.steps)}")


def _worth(point: Point) -> tuple[float, float]:
    """What decides between two measured adapters: the score, then the loss."""
    return (point.score or {}).get("score", -math.inf), -(point.validation_loss or math.inf)
