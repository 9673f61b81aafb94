"""Scores of a reader as it is served; its temperature is fitted on held-out pairs, its threshold on near ones."""

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.trainer.errors import BadModel
from lab.trainer.pairs import Pair
from lab.trainer.progress import OnProgress, Progress
from lab.trainer.score import answer_words, token_f1
from services.kit.files import write_whole
from services.kit.precision import choose_precision
from services.kit.reader import CARD, Card, NoReader, Reader, Text, Tokens, Window, reading, shares

# Passages of a measured question: its own and others of its kind, as a prompt has them.
BESIDE = 4
TEMPERATURES = tuple(round(0.5 + 0.1 * step, 1) for step in range(36))
# Of several passages, a reader's raw values, from which any temperature's probabilities follow.
Values = list[tuple[Tokens, list[tuple[Window, np.ndarray]], str]]


def measured(
    folder: Path,
    held_out: Sequence[Pair],
    near: Sequence[Pair],
    card: Card,
    base: Path,
    *,
    threads: int,
    on_progress: OnProgress,
) -> Card:
    """The card with its temperature fitted on one half of the held-out pairs and what the reader gives on the other.

    Args:
        near: see `near_scores`, which adds threshold and scores.
    """
    reader = served(folder, base, threads=threads)
    values_of = _counted(reader, 2 * len(held_out), on_progress)
    half = len(held_out) // 2
    own = [values_of(pair.question, [pair]) for pair in held_out]
    beside = [values_of(pair.question, passages) for pair, passages in zip(held_out, _sets(held_out), strict=True)]
    temperature = min(TEMPERATURES, key=lambda one: _surprise(held_out[:half], own[:half], one))
    threshold, scores = near_scores(reader, near, temperature, on_progress)
    scores |= {
        **_scores(held_out[half:], [_reply(values, temperature) for values in own[half:]], threshold, "own"),
        **_scores(held_out[half:], [_reply(values, temperature) for values in beside[half:]], threshold, "beside"),
        "surprise": _surprise(held_out[half:], own[half:], temperature),
        "pairs": float(len(held_out) - half),
    }
    return card.model_copy(update={"temperature": temperature, "threshold": threshold, "held_out": _rounded(scores)})


def near_scores(
    reader: Reader, near: Sequence[Pair], temperature: float, on_progress: OnProgress
) -> tuple[float, dict[str, float]]:
    """The threshold that gains most on every other passage of these, and what it gives on the rest.

    Args:
        near: pairs that the passage answers or only seems to (`near.doubtful`). What is made up by patterns is told
            apart by words in common, and a threshold of it lets through what only has these.
    """
    values_of = _counted(reader, len(near), on_progress)
    replies = [_reply(values_of(pair.question, [pair]), temperature) for pair in near]
    passages = list(dict.fromkeys(pair.passage for pair in near))
    fits = set(passages[::2])
    fitted, rest = (
        [(pair, reply) for pair, reply in zip(near, replies, strict=True) if (pair.passage in fits) is wanted]
        for wanted in (True, False)
    )
    threshold = _threshold(fitted)
    return threshold, _rounded(_scores([pair for pair, _ in rest], [reply for _, reply in rest], threshold, "near"))


def served(folder: Path, base: Path, *, threads: int) -> Reader:
    """The reader of a folder as it is served: by ONNX Runtime, in the number format that this CPU gets."""
    return Reader(folder, choose_precision("auto", device="cpu", threads=threads), base)


def refit(folder: Path, near: Sequence[Pair], base: Path, *, on_progress: OnProgress) -> Card:
    """Fit the threshold of the weights in a folder anew, and replace their card.

    Args:
        near: see `near_scores`.

    Raises:
        BadModel: the folder holds no reader of this encoder.
    """
    try:
        reader = served(folder, base, threads=0)
    except NoReader as error:
        raise BadModel(str(error)) from error
    threshold, scores = near_scores(reader, near, reader.card.temperature, on_progress)
    held_out = reader.card.held_out | scores
    card = reader.card.model_copy(update={"threshold": threshold, "held_out": held_out})
    write_whole(folder / CARD, content(card))
    return card


def content(card: Card) -> bytes:
    """A card as its file has it."""
    return (json.dumps(card.model_dump(), indent=2, sort_keys=True) + "\n").encode()


def _counted(reader: Reader, total: int, on_progress: OnProgress) -> Callable[[str, Sequence[Pair]], Values]:
    """`_values` by this reader, which tells of each of so many calls."""
    count = itertools.count(1)

    def values_of(question: str, passages: Sequence[Pair]) -> Values:
        on_progress(Progress("measuring", next(count), total))
        return _values(reader, question, passages)

    return values_of


def _values(reader: Reader, question: str, passages: Sequence[Pair]) -> Values:
    texts = [Text(pair.passage, pair.title) for pair in passages]
    values = reader.values(question, texts)
    return [(tokens, windows, text.text) for text, (tokens, windows) in zip(texts, values, strict=True)]


def _rounded(scores: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in scores.items()}


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
    readings = [reading(tokens, windows, 1, temperature) for tokens, windows, _ in values]
    probabilities, nothing = shares(readings)
    best = max(range(len(values)), key=lambda index: max(probabilities[index], default=0.0))
    if not readings[best].spans:
        return Reply("", 0.0, nothing)
    span = readings[best].spans[0]
    return Reply(values[best][2][span.start : span.end], probabilities[best][0], nothing)


def _surprise(pairs: Sequence[Pair], pair_values: Sequence[Values], temperature: float) -> float:
    """Mean surprise, in nats, at whether the passage says it: of "does not say", or of a span over the answer."""
    total = 0.0
    for pair, values in zip(pairs, pair_values, strict=True):
        tokens, windows, _ = values[0]
        one = reading(tokens, windows, 5, temperature)
        probabilities, nothing = shares([one])
        end = pair.start + len(pair.answer)
        near = [
            p for span, p in zip(one.spans, probabilities[0], strict=True) if span.start < end and span.end > pair.start
        ]
        total -= math.log(max(1e-6, sum(near) if pair.answer else nothing))
    return total / max(1, len(pairs))


def _threshold(answered: Sequence[tuple[Pair, Reply]]) -> float:
    """The least probability from which on answers gain most, a wrong one costing what a right one earns; 1 for none."""
    # A gain of one in a hundred may be chance.
    gain, best, line = 0, len(answered) // 100, 1.0
    for pair, reply in sorted(answered, key=lambda item: -item[1].probability):
        gain += 1 if _is_right(pair, reply) else -1
        if gain > best:
            best, line = gain, reply.probability
    return round(line, 4)


def _scores(held_out: Sequence[Pair], replies: Sequence[Reply], threshold: float, prefix: str) -> dict[str, float]:
    answerable = [(pair, reply) for pair, reply in zip(held_out, replies, strict=True) if pair.answer]
    silent = [reply.probability < threshold for reply in replies]
    rights = [silence != bool(pair.answer) for pair, silence in zip(held_out, silent, strict=True)]
    answers = [(pair, reply) for pair, reply, one in zip(held_out, replies, silent, strict=True) if not one]
    right = sum(_is_right(pair, reply) for pair, reply in answers)
    count = max(1, len(held_out))
    return {
        f"{prefix}_exact": _mean([answer_words(reply.text) == answer_words(pair.answer) for pair, reply in answerable]),
        f"{prefix}_f1": _mean([token_f1(reply.text, pair.answer) for pair, reply in answerable]),
        f"{prefix}_says": _mean(rights),
        f"{prefix}_right": right / count,
        f"{prefix}_wrong": (len(answers) - right) / count,
    }


def _is_right(pair: Pair, reply: Reply) -> bool:
    return bool(pair.answer) and token_f1(reply.text, pair.answer) >= 0.5


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
