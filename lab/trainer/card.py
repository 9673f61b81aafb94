"""The run card: an adapter's data, settings and scores, as Markdown with a picture of the curves."""

import importlib.metadata
import io
import platform
import resource
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import torch
from matplotlib.figure import Figure

from lab.trainer.checkpoint import Point
from lab.trainer.sft import Result

CARD, CURVES = "README.md", "curves.png"
PACKAGES = ("torch", "transformers", "peft", "tokenizers", "safetensors")
STOPS = {
    "": "not finished",
    "epochs": "all epochs were done",
    "time": "its time was over",
    "patience": "the validation loss no longer fell",
}
# Steps that the drawn training loss is averaged over: single steps of four batches are noise.
SMOOTHED = 10
MIB = 2**20


def peak_mib() -> int:
    """The most memory that this process has held, in MiB: on a GPU of the device, else resident."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() // MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024


def files(name: str, result: Result) -> dict[str, bytes]:
    """The card and its picture, by file name."""
    return {CARD: card(name, result).encode(), CURVES: curves(result.state.history)}


def summary(result: Result) -> str:
    """One line: the best step, and its scores."""
    before, after = result.before, result.after
    return (
        f"kept step {after.step} of {result.state.step} ({STOPS[result.state.stopped]}): "
        f"score {_share(before.score, 'score')} before, {_share(after.score, 'score')} after; "
        f"validation loss {before.validation_loss:.4f} before, {after.validation_loss:.4f} after; "
        f"peak {peak_mib():,} MiB"
    )


def card(name: str, result: Result) -> str:
    """The card as Markdown."""
    state, data, recipe = result.state, result.data, result.recipe
    base = result.learner.base
    sources = Counter(item.example.source for item in data.train)
    kinds = Counter(item.example.kind for item in data.train)
    versions = (f"{package} {importlib.metadata.version(package)}" for package in PACKAGES)
    trained_s = max(1e-9, state.spent_s - state.begun_s)
    begun = "" if state.number_format == base.number_format else f", begun in {state.number_format}"
    facts = [
        ("base model", base.name),
        ("task", data.train[0].example.task),
        ("examples", f"{len(data.train)} to learn from, {len(data.validation)} to measure by, whole groups apart"),
        ("sources", ", ".join(f"{source} ({count})" for source, count in sources.most_common(8))),
        ("replies", ", ".join(f"{count / len(data.train):.0%} {kind}" for kind, count in kinds.most_common())),
        ("left out for length", f"{data.long_prompts} prompts, {data.long_completions} replies"),
        ("data (sha256)", f"`{data.sha256}`"),
        ("kept", f"step {state.best_step} of {state.step}, by the task score, then by the validation loss"),
        ("ended", STOPS[state.stopped]),
        *([("goes on from", f"`{result.start}`")] if result.start else []),
        ("time", f"{state.spent_s / 60:.1f} min, {trained_s / 60:.1f} of them from the first step on"),
        ("tokens", f"{state.tokens:,} computed, {state.tokens / trained_s:,.0f} a second, measurements included"),
        ("peak memory", f"{peak_mib():,} MiB"),
        ("number format", base.precision + begun),
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("versions", ", ".join([f"Python {platform.python_version()}", *versions])),
    ]
    settings = ", ".join(
        f"{key} {'/'.join(value) if isinstance(value, tuple) else value}"
        for key, value in (recipe.fixed() | recipe.model_dump()).items()
    )
    start = "the adapter that it goes on from" if result.start else "the base model"
    before, after = result.before, result.after
    names = dict.fromkeys([*(before.score or {}), *(after.score or {})])
    rows = [(key, _share(before.score, key), _share(after.score, key)) for key in names]
    rows.append(("validation loss", f"{before.validation_loss:.4f}", f"{after.validation_loss:.4f}"))
    return "\n".join(
        [
            f"# {name}",
            "",
            f"A LoRA adapter of {base.name}, written by `cragmesh train sft`.",
            "",
            "|  |  |",
            "|---|---|",
            *(f"| {key} | {value} |" for key, value in facts),
            "",
            f"On {len(data.scored)} examples kept back, answered greedily; before is {start}:",
            "",
            "| measure | before | after |",
            "|---|---|---|",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
            f"![training and validation loss, learning rate, score]({CURVES})",
            "",
            f"Settings: {settings}.",
            "",
        ]
    )


def _share(scores: dict[str, float] | None, key: str) -> str:
    return f"{scores[key]:+.3f}" if scores and key in scores else "-"


def curves(history: Sequence[Point]) -> bytes:
    """Losses, learning rate and score over the steps, as PNG."""
    figure = Figure(figsize=(8, 6), layout="constrained")
    losses, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    trained = [(point.step, point.loss, point.rate or 0.0) for point in history if point.loss is not None]
    if trained:
        smoothed = [
            sum(loss for _, loss, _ in trained[max(0, index - SMOOTHED + 1) : index + 1]) / min(SMOOTHED, index + 1)
            for index in range(len(trained))
        ]
        losses.plot([step for step, _, _ in trained], smoothed, label=f"training, mean of {SMOOTHED} steps")
        below.plot([step for step, _, _ in trained], [rate for _, _, rate in trained], "k:", label="learning rate")
    measured = [(point.step, point.validation_loss) for point in history if point.validation_loss is not None]
    losses.plot([step for step, _ in measured], [loss for _, loss in measured], "o-", label="validation")
    losses.set_yscale("log")
    losses.set_ylabel("loss of an example (nats)")
    losses.legend()
    below.set_xlabel("step")
    below.set_ylabel("learning rate")
    scored = [(point.step, point.score["score"]) for point in history if point.score and "score" in point.score]
    if scored:
        right = below.twinx()
        right.plot([step for step, _ in scored], [score for _, score in scored], "s-", color="tab:green")
        right.set_ylabel("task score", color="tab:green")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110, metadata={"Software": None})
    return content.getvalue()
