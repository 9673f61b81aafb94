"""Teaching the extractive reader: an adapter of the bundled MiniLM and a head, as `services/kit/reader.py` says.

The adapter's products (rank 16 on all linear layers) and the head are what ships, a few MB. `full` trains the layers'
weights themselves, and ships the best approximation of what changed at that rank (a truncated SVD).
"""

import json
import math
import random
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from peft import LoraConfig, get_peft_model
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from torch import Tensor
from torch.nn.functional import cross_entropy, pad
from transformers import BertModel

from lab.trainer import checkpoint, files, pairs
from lab.trainer.checkpoint import Checkpoint, Point, State, Stop, without_denormals
from lab.trainer.errors import BadCheckpoint, BadDataset, Diverged
from lab.trainer.lora import quicken
from lab.trainer.model import number_format
from lab.trainer.pairs import Pair
from lab.trainer.schedule import progress, rate
from lab.trainer.score import answer_words, token_f1
from lab.trainer.sft import OnProgress, Progress
from services.kit.encoder import bundled_model, fingerprint
from services.kit.precision import Precision, choose_precision
from services.kit.reader import (
    CARD,
    END,
    IMPOSSIBLE,
    MAX_SPAN_TOKENS,
    NOTHING,
    START,
    WEIGHTS,
    Card,
    Layout,
    Reader,
    Text,
    Tokens,
    Window,
    padded,
    reading,
    shares,
)

CHECKPOINTS = "checkpoints"
ADAPTER = "default"
# Every linear layer of the encoder; the pooler is not read.
TARGETS = ("query", "key", "value", "dense")
# Windows whose order is by length within, and by chance among each other.
POOLED_BATCHES = 32
SPEED_STEPS = 20
# Passages of a measured question: its own and others of its kind, as a prompt has them.
BESIDE = 4
TEMPERATURES = tuple(round(0.5 + 0.1 * step, 1) for step in range(36))
# The last part of a run with a time limit: measuring what was learnt.
MEASURE_SHARE = 0.1


class Recipe(BaseModel):
    """Settings of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = Field(16, ge=1, le=256)
    alpha: int = Field(32, ge=1, le=1_024)
    full: bool = False
    learning_rate: float = Field(1e-3, gt=0, le=1)
    # The head begins at nothing and learns faster than what it reads.
    head_rate: float = Field(3e-3, gt=0, le=1)
    warm_up: float = Field(0.05, ge=0, lt=1)
    max_grad_norm: float = Field(1.0, gt=0, le=100)
    batch: int = Field(16, ge=1, le=4_096)
    epochs: float = Field(1.0, gt=0, le=100)
    max_tokens: int = Field(256, ge=64, le=384)
    overlap: int = Field(64, ge=0, le=128)
    # Of the answerable questions, so many are asked of another passage too.
    distractors: float = Field(0.4, ge=0, le=1)
    # A title is what only some callers know.
    titles: float = Field(0.7, ge=0, le=1)
    held_out_share: float = Field(0.05, gt=0, le=0.5)
    held_out: int = Field(1_000, ge=2, le=100_000)
    checkpoint_steps: int = Field(200, ge=1)
    seed: int = Field(0, ge=0)
    threads: int = Field(0, ge=0, le=1_024)
    time_limit_s: float = Field(0.0, ge=0)

    def fixed(self) -> dict[str, object]:
        """What must be the same for a run to go on."""
        return self.model_dump(mode="json", exclude={"checkpoint_steps", "threads", "time_limit_s"})


@dataclass(frozen=True, slots=True)
class Example:
    """A window, and the place of the answer among its tokens; None where it is not in there."""

    window: Window
    opens: Tensor
    closes: Tensor
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run: its weights' folder, and what they are worth."""

    folder: Path
    card: Card
    steps: int
    stopped: Stop


class Model(torch.nn.Module):
    """The encoder with its adapter, in the number format that trains fastest here, and the head in fp32."""

    def __init__(self, folder: Path, recipe: Recipe, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(recipe.seed)
        encoder: Any = BertModel.from_pretrained(
            folder,
            # Made-up data does not run out: nothing has to be forgotten on purpose, and a resumed run draws no masks.
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        # Nobody reads it; left out at once, transformers would report its weights as unexpected.
        encoder.pooler = None
        self.full = recipe.full
        self.scale = recipe.alpha / recipe.rank
        self.rank = recipe.rank
        if recipe.full:
            self.encoder = encoder.to(torch.float32)
            for name, parameter in encoder.named_parameters():
                parameter.requires_grad = (
                    name.startswith("encoder.") and name.endswith(".weight") and parameter.ndim == 2
                )
            self.before = {name: one.detach().clone() for name, one in encoder.named_parameters() if one.requires_grad}
        else:
            config = LoraConfig(r=recipe.rank, lora_alpha=recipe.alpha, target_modules=list(TARGETS), lora_dropout=0.0)
            with warnings.catch_warnings():
                # peft asks transformers by a name that the latter has since changed.
                warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
                self.encoder = get_peft_model(encoder.to(dtype), config, autocast_adapter_dtype=True)
            quicken(self.encoder, 0.0)
        width = encoder.config.hidden_size
        self.head = torch.nn.Linear(width, 3)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, windows: Sequence[Window]) -> Tensor:
        """The head's values, shape (windows, longest, 3)."""
        ids, mask, types = (torch.from_numpy(part).to(self.head.weight.device) for part in padded(windows))
        states = self.encoder(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        values: Tensor = self.head(states.float())
        return values

    def trained(self) -> dict[str, torch.nn.Parameter]:
        """What is learnt, by name."""
        return {name: one for name, one in self.named_parameters() if one.requires_grad}

    def tensors(self) -> dict[str, Tensor]:
        """The weights as `Reader` reads them."""
        found = {f"head.{name}": one.detach().clone() for name, one in self.head.named_parameters()}
        if self.full:
            now = dict(self.encoder.named_parameters())
            for name, before in self.before.items():
                change = now[name].detach().cpu() - before
                left, values, right = torch.linalg.svd(change, full_matrices=False)
                root = values[: self.rank].sqrt()
                plain = name.removesuffix(".weight")
                found[f"{plain}.a"] = (root[:, None] * right[: self.rank]).half()
                found[f"{plain}.b"] = (left[:, : self.rank] * root).half()
            return {name: one.contiguous() for name, one in found.items()}
        for name, one in self.encoder.named_parameters():
            plain = name.removeprefix("base_model.model.")
            if plain.endswith(f".lora_A.{ADAPTER}.weight"):
                found[f"{plain.removesuffix(f'.lora_A.{ADAPTER}.weight')}.a"] = one.detach().half()
            elif plain.endswith(f".lora_B.{ADAPTER}.weight"):
                found[f"{plain.removesuffix(f'.lora_B.{ADAPTER}.weight')}.b"] = (one.detach() * self.scale).half()
        return {name: one.contiguous() for name, one in found.items()}


def encode(layout: Layout, items: Sequence[Pair], recipe: Recipe) -> list[Example]:
    """One window of each pair: with the answer in it, or any where the passage does not say.

    An answer that is too long for a span is left out.
    """
    texts = layout.tokens([text for pair in items for text in (pair.question, pair.title, pair.passage)])
    chooser = random.Random(f"windows:{recipe.seed}")  # noqa: S311 - repeatable is the point
    nothing = layout.tokens([""])[0]
    found: list[Example] = []
    for index, pair in enumerate(items):
        question, title, passage = texts[3 * index : 3 * index + 3]
        windows = layout.windows(question, title if chooser.random() < recipe.titles else nothing, passage)
        place = _place(passage, pair) if pair.answer else None
        if not windows or (pair.answer and place is None):
            continue
        if place is not None:
            holding = [one for one in windows if _inside(one, place)]
            if not holding:
                continue
            window = chooser.choice(holding)
            inside = window.first - window.at
            found.append(_example(window, passage, (place[0] + inside, place[1] + inside)))
        else:
            found.append(_example(chooser.choice(windows), passage, None))
    return found


def _place(passage: Tokens, pair: Pair) -> tuple[int, int] | None:
    """First and last token of the answer, whole words; None where it has no token or too many."""
    end = pair.start + len(pair.answer)
    over = np.flatnonzero((passage.ends > pair.start) & (passage.starts < end))
    if not len(over):
        return None
    first, last = int(over[0]), int(over[-1])
    while first > 0 and not passage.opens[first]:
        first -= 1
    while last < len(passage) - 1 and not passage.closes[last]:
        last += 1
    return (first, last) if last - first < MAX_SPAN_TOKENS else None


def _inside(window: Window, place: tuple[int, int]) -> bool:
    return window.at <= place[0] and place[1] < window.at + len(window) - window.first - 1


def _example(window: Window, passage: Tokens, span: tuple[int, int] | None) -> Example:
    tokens = slice(window.at, window.at + len(window) - window.first - 1)
    sides = (window.first, 1)
    flags = [pad(torch.from_numpy(one[tokens]), sides) for one in (passage.opens, passage.closes)]
    return Example(window, flags[0], flags[1], span)


def loss(model: Model, batch: Sequence[Example]) -> Tensor:
    """Mean over the examples of the surprise, in nats, at the span or at "does not say", among all of both."""
    values = model([example.window for example in batch])
    longest = values.shape[1]
    opens, closes = (
        torch.stack([pad(flags, (0, longest - len(flags))) for flags in side])
        for side in ([example.opens for example in batch], [example.closes for example in batch])
    )
    opens, closes = opens.to(values.device), closes.to(values.device)
    begin = values[:, :, START].masked_fill(~opens, IMPOSSIBLE)
    end = pad(values[:, :, END].masked_fill(~closes, IMPOSSIBLE), (0, MAX_SPAN_TOKENS - 1), value=IMPOSSIBLE)
    spans = begin[:, :, None] + end.unfold(1, MAX_SPAN_TOKENS, 1)
    every = torch.cat([values[:, :1, NOTHING], spans.flatten(1)], dim=1)
    targets = [
        0 if example.span is None else 1 + example.span[0] * MAX_SPAN_TOKENS + example.span[1] - example.span[0]
        for example in batch
    ]
    return cross_entropy(every, torch.tensor(targets, device=every.device))


def batches(examples: Sequence[Example], size: int, *, seed: int, epoch: int) -> list[list[Example]]:
    """Batches of about equal length in a random order, the same for a seed and an epoch."""
    chooser = random.Random(f"{seed}:{epoch}")  # noqa: S311 - repeatable is the point
    order = list(range(len(examples)))
    chooser.shuffle(order)
    found: list[list[Example]] = []
    for start in range(0, len(order), size * POOLED_BATCHES):
        pool = sorted(order[start : start + size * POOLED_BATCHES], key=lambda index: len(examples[index].window))
        found += [[examples[index] for index in pool[at : at + size]] for at in range(0, len(pool), size)]
    chooser.shuffle(found)
    return found


def train(
    items: Sequence[Pair],
    recipe: Recipe,
    folder: Path,
    target: Path,
    *,
    resume: bool = False,
    base: Path | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Result:
    """Teach a reader and write its weights.

    Args:
        folder: checkpoints are kept in it.
        target: the weights' folder, replaced whole.
        resume: go on from the last checkpoint there, which must be of the same training; without one begin.
        base: folder of the encoder; the bundled one when None.

    Raises:
        TrainerError: why it ended before the last step. The last checkpoint is whole.
    """
    began = time.monotonic()
    base = base or bundled_model()
    parts = pairs.split(items, share=recipe.held_out_share, seed=recipe.seed)
    learnt = [*parts.train, *pairs.distractors(parts.train, share=recipe.distractors, seed=recipe.seed)]
    chooser = random.Random(recipe.seed)  # noqa: S311 - repeatable is the point
    held_out = chooser.sample(parts.held_out, min(len(parts.held_out), recipe.held_out))
    layout = Layout(base, max_tokens=recipe.max_tokens, overlap=recipe.overlap)
    examples = encode(layout, learnt, recipe)
    if not examples or not any(pair.answer for pair in held_out) or len(held_out) < 2:
        raise BadDataset(f"of {len(items)} pairs too few are left to learn from or to measure by: give more")
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    device, dtype, _ = number_format(str(base), threads=recipe.threads)
    if dtype is torch.float16:
        # So small a model gains nothing by a loss that must be scaled.
        dtype = torch.float32
    model = Model(base, recipe, dtype).to(device)
    fixed: dict[str, JsonValue] = {
        "base": fingerprint(base),
        "data": pairs.fingerprint(items),
        **recipe.fixed(),  # type: ignore[dict-item]
    }
    run = _Run(
        model, examples, encode(layout, held_out, recipe), recipe, folder / CHECKPOINTS, fixed, on_progress, began
    )
    if checkpoint.goes_on(run.folder, resume=resume):
        run.restore()
    with without_denormals():
        stopped = run.go()
    card = Card(base=fingerprint(base), made_from=pairs.sources(items))
    write(target, model, card)
    on_progress(Progress("measuring", 0, len(held_out)))
    card = measured(target, held_out, card, base, threads=recipe.threads, on_progress=on_progress)
    write(target, model, card)
    return Result(target, card, run.step, stopped)


def check_target(folder: Path, run: Path) -> None:
    """Refuse to replace what are no reader's weights, whole as they would be.

    Args:
        run: the run's own folder, whose checkpoints must outlive the writing.

    Raises:
        BadTarget: the folder has no reader's files, or the run lies in it.
    """
    files.check_target(folder, run, marker=CARD, written="weights", lack="holds no reader")


def report(result: Result) -> list[str]:
    """Lines for people: what the weights are worth on passages that were kept back."""
    found, card = result.card.held_out, result.card

    def line(prefix: str, words: str) -> str:
        return (
            f"{words}: exact {found[f'{prefix}_exact']:.3f}, F1 {found[f'{prefix}_f1']:.3f} of the answerable; whether "
            f"it is said at all {found[f'{prefix}_says']:.3f}; above the threshold right "
            f"{found[f'{prefix}_right']:.3f}, wrong {found[f'{prefix}_wrong']:.3f} of all"
        )

    return [
        f"{result.steps} steps; temperature {card.temperature:.1f}, threshold {card.threshold:.2f}; measured on "
        f"{found['pairs']:.0f} pairs of other passages",
        line("own", "one passage"),
        line("beside", f"beside up to {BESIDE} others of its kind"),
    ]


def write(target: Path, model: Model, card: Card) -> None:
    """Replace the weights' folder, whole or not at all."""
    content = {
        WEIGHTS: safetensors.torch.save(model.tensors()),
        CARD: (json.dumps(card.model_dump(), indent=2, sort_keys=True) + "\n").encode(),
    }
    files.write_folder(target, content)


@dataclass(slots=True)
class _Run:
    model: Model
    examples: list[Example]
    held_out: list[Example]
    recipe: Recipe
    folder: Path
    fixed: dict[str, JsonValue]
    on_progress: OnProgress
    began: float
    step: int = 0
    tokens: int = 0
    spent_before_s: float = 0.0
    begun_s: float = 0.0
    history: list[Point] = field(default_factory=list)
    speeds: list[tuple[int, float]] = field(default_factory=list)
    names: list[str] = field(init=False)
    optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        trained = self.model.trained()
        self.names = list(trained)
        head = [name for name in self.names if name.startswith("head.")]
        # In the order of the names, so that the optimiser's state can be told by them.
        self.names = [*(name for name in self.names if name not in head), *head]
        split = len(self.names) - len(head)
        self.optimizer = torch.optim.AdamW(
            [
                {"params": [trained[name] for name in self.names[:split]], "lr": self.recipe.learning_rate},
                {"params": [trained[name] for name in self.names[split:]], "lr": self.recipe.head_rate},
            ],
            weight_decay=0.0,
        )

    @property
    def per_epoch(self) -> int:
        return math.ceil(len(self.examples) / self.recipe.batch)

    @property
    def steps(self) -> int:
        return max(1, round(self.per_epoch * self.recipe.epochs))

    @property
    def spent_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.began

    @property
    def progress(self) -> float:
        limit_s = self.recipe.time_limit_s * (1 - MEASURE_SHARE)
        return progress(self.step, self.steps, self.spent_s - self.begun_s, max(1.0, limit_s) if limit_s else 0.0)

    def go(self) -> Stop:
        if not self.step:
            self.begun_s = self.spent_s
        stopped: Stop = ""
        for batch in self._upcoming():
            if self.recipe.time_limit_s and self.progress >= 1:
                stopped = "time"
                break
            self._learn(batch)
            if self.step % self.recipe.checkpoint_steps == 0:
                self._note()
                self._save("")
        stopped = stopped or "epochs"
        self._note()
        self._save(stopped)
        return stopped

    def _upcoming(self) -> Iterator[list[Example]]:
        while self.step < self.steps:
            epoch, done = divmod(self.step, self.per_epoch)
            for batch in batches(self.examples, self.recipe.batch, seed=self.recipe.seed, epoch=epoch)[done:]:
                if self.step >= self.steps:
                    return
                yield batch

    def _learn(self, batch: Sequence[Example]) -> None:
        began = time.monotonic()
        share = rate(max(self.progress, (self.step + 1) / (self.steps + 1)), self.recipe.warm_up)
        rates = (self.recipe.learning_rate, self.recipe.head_rate)
        for group, height in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = height * share
        value = loss(self.model, batch)
        value.backward()  # type: ignore[no-untyped-call]
        trained = [one for group in self.optimizer.param_groups for one in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(trained, self.recipe.max_grad_norm)
        if not (math.isfinite(value.item()) and math.isfinite(float(norm))):
            raise Diverged(f"the loss of step {self.step + 1} is no number: choose a smaller --learning-rate")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        size = len(batch) * max(len(example.window) for example in batch)
        self.tokens += size
        self.speeds = [*self.speeds[1 - SPEED_STEPS :], (size, time.monotonic() - began)]
        self.history.append(
            Point(step=self.step, epoch=self._epoch(), loss=value.item(), rate=self.recipe.learning_rate * share)
        )
        self._tell(value.item())

    def _note(self) -> None:
        """Measure the loss on what was kept back."""
        with torch.inference_mode():
            groups = batches(self.held_out, self.recipe.batch, seed=0, epoch=0)
            total = sum(loss(self.model, group).item() * len(group) for group in groups)
        found = total / len(self.held_out)
        self.history.append(Point(step=self.step, epoch=self._epoch(), validation_loss=found))
        lately = [point.loss for point in self.history[-self.recipe.checkpoint_steps - 1 :] if point.loss is not None]
        self._tell(note=f"step {self.step}: loss {np.mean(lately):.3f} lately, {found:.3f} on what was kept back")

    def _epoch(self) -> float:
        return self.step / self.per_epoch

    def _tell(self, value: float = math.nan, note: str = "") -> None:
        tokens, seconds = sum(one for one, _ in self.speeds), sum(one for _, one in self.speeds)
        trained_s, done = self.spent_s - self.begun_s, self.progress
        self.on_progress(
            Progress(
                "training",
                self.step,
                self.steps,
                self._epoch(),
                value,
                self.optimizer.param_groups[0]["lr"],
                tokens / seconds if seconds else 0.0,
                trained_s * (1 - done) / done if done > 0 else None,
                note,
            )
        )

    def _save(self, stopped: Stop) -> None:
        state = State(
            fixed=self.fixed,
            step=self.step,
            spent_s=self.spent_s,
            begun_s=self.begun_s,
            measure_s=0.0,
            tokens=self.tokens,
            history=tuple(self.history),
            stopped=stopped,
        )
        trained = self.model.trained()
        tensors = {f"reader.{name}": trained[name].detach().clone().contiguous() for name in self.names}
        moments = checkpoint.optimizer_tensors(self.optimizer, self.names)
        checkpoint.save(
            self.folder, Checkpoint(state, tensors | {f"optimizer.{name}": one for name, one in moments.items()})
        )

    def restore(self) -> None:
        """Go on from the last checkpoint.

        Raises:
            BadCheckpoint: there is none, or it is of another training.
        """
        last = checkpoint.last(self.folder, lambda why: self._tell(note=why))
        checkpoint.check(last.state, self.fixed)
        saved, trained = last.part("reader"), self.model.trained()
        if set(saved) != set(trained):
            raise BadCheckpoint(f"the checkpoint of step {last.state.step} is of another model")
        with torch.no_grad():
            for name, tensor in saved.items():
                trained[name].copy_(tensor)
        checkpoint.restore_optimizer(self.optimizer, self.names, last.part("optimizer"))
        self.step, self.tokens = last.state.step, last.state.tokens
        self.spent_before_s, self.begun_s = last.state.spent_s, last.state.begun_s
        self.history = list(last.state.history)


def measured(
    folder: Path,
    held_out: Sequence[Pair],
    card: Card,
    base: Path,
    *,
    threads: int = 0,
    on_progress: OnProgress = lambda _: None,
) -> Card:
    """The card with temperature and threshold fitted on one half of the pairs, and what they give on the other.

    Measured as it is served: by ONNX Runtime, in the number format that this CPU gets.
    """
    precision = choose_precision("auto", device="cpu", threads=threads)
    half = len(held_out) // 2
    sets = _sets(held_out)
    reader = _Scored(folder, precision, base, on_progress, 2 * len(held_out))
    own = [reader.values(pair.question, [pair]) for pair in held_out]
    beside = [reader.values(pair.question, passages) for pair, passages in zip(held_out, sets, strict=True)]
    fit = [*zip(held_out[:half], own[:half], strict=True)]
    temperature = min(TEMPERATURES, key=lambda one: _surprise(fit, one))
    replies = [_reply(values, temperature) for values in beside]
    threshold = _threshold(held_out[:half], replies[:half])
    single = [_reply(values, temperature) for values in own]
    found = {
        **_scores(held_out[half:], single[half:], threshold, "own"),
        **_scores(held_out[half:], replies[half:], threshold, "beside"),
        "surprise": _surprise([*zip(held_out[half:], own[half:], strict=True)], temperature),
        "pairs": float(len(held_out) - half),
    }
    return card.model_copy(
        update={
            "temperature": temperature,
            "threshold": threshold,
            "held_out": {name: round(value, 4) for name, value in found.items()},
        }
    )


Values = list[tuple[Tokens, list[tuple[Window, np.ndarray]], str]]


class _Scored:
    """A reader's raw values, from which any temperature's probabilities follow."""

    def __init__(self, folder: Path, precision: Precision, base: Path, on_progress: OnProgress, total: int) -> None:
        self._reader = Reader(folder, precision, base)
        self._on_progress, self._total, self._done = on_progress, total, 0

    def values(self, question: str, passages: Sequence[Pair]) -> Values:
        self._done += 1
        self._on_progress(Progress("measuring", self._done, self._total))
        texts = [Text(pair.passage, pair.title) for pair in passages]
        return [
            (tokens, found, text.text)
            for text, (tokens, found) in zip(texts, self._reader.values(question, texts), strict=True)
        ]


def _sets(held_out: Sequence[Pair]) -> list[list[Pair]]:
    """For each pair its passage among others of its kind that do not hold its answer."""
    chooser = random.Random(0)  # noqa: S311 - repeatable is the point
    sets = []
    for pair in held_out:
        near = [
            other
            for other in chooser.sample(held_out, min(len(held_out), 8 * BESIDE))
            if other.kind == pair.kind
            and other.passage != pair.passage
            and not (pair.answer and pair.answer.lower() in other.passage.lower())
        ]
        passages = [pair, *near[:BESIDE]]
        chooser.shuffle(passages)
        sets.append(passages)
    return sets


@dataclass(frozen=True, slots=True)
class Reply:
    """The best span of several passages; its probability, and that of none."""

    text: str
    probability: float
    nothing: float


def _reply(values: Values, temperature: float) -> Reply:
    readings = [reading(tokens, found, 1, temperature) for tokens, found, _ in values]
    probabilities, nothing = shares(readings)
    best = max(range(len(values)), key=lambda index: max(probabilities[index], default=0.0))
    if not readings[best].spans:
        return Reply("", 0.0, nothing)
    span = readings[best].spans[0]
    return Reply(values[best][2][span.start : span.end], probabilities[best][0], nothing)


def _surprise(items: Sequence[tuple[Pair, Values]], temperature: float) -> float:
    """Mean surprise, in nats, at whether the passage says it: of "does not say", or of a span over the answer."""
    total = 0.0
    for pair, values in items:
        tokens, found, _ = values[0]
        one = reading(tokens, found, 5, temperature)
        probabilities, nothing = shares([one])
        end = pair.start + len(pair.answer)
        near = [
            p for span, p in zip(one.spans, probabilities[0], strict=True) if span.start < end and span.end > pair.start
        ]
        total -= math.log(max(1e-6, sum(near) if pair.answer else nothing))
    return total / max(1, len(items))


def _threshold(held_out: Sequence[Pair], replies: Sequence[Reply]) -> float:
    """The least probability from which on answers gain most, a wrong one costing what a right one earns."""
    order = sorted(zip(replies, held_out, strict=True), key=lambda item: -item[0].probability)
    gain, best, line = 0, 0, 1.0
    for reply, pair in order:
        gain += 1 if pair.answer and token_f1(reply.text, pair.answer) >= 0.5 else -1
        if gain > best:
            best, line = gain, reply.probability
    return round(min(0.9, max(0.3, line)), 4)


def _scores(held_out: Sequence[Pair], replies: Sequence[Reply], threshold: float, prefix: str) -> dict[str, float]:
    answerable = [(pair, reply) for pair, reply in zip(held_out, replies, strict=True) if pair.answer]
    silent = [reply.probability < threshold for reply in replies]
    rights = [silence != bool(pair.answer) for pair, silence in zip(held_out, silent, strict=True)]
    given = [(pair, reply) for pair, reply, one in zip(held_out, replies, silent, strict=True) if not one]
    right = sum(bool(pair.answer) and token_f1(reply.text, pair.answer) >= 0.5 for pair, reply in given)
    count = max(1, len(held_out))
    return {
        f"{prefix}_exact": _mean([answer_words(reply.text) == answer_words(pair.answer) for pair, reply in answerable]),
        f"{prefix}_f1": _mean([token_f1(reply.text, pair.answer) for pair, reply in answerable]),
        f"{prefix}_says": _mean(rights),
        f"{prefix}_right": right / count,
        f"{prefix}_wrong": (len(given) - right) / count,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
