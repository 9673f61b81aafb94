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
from lab.trainer.run import OnProgress, Progress
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
    own = [(pair, values_of(pair, [pair])) for pair in held_out]
    beside = [(pair, values_of(pair, passages)) for pair, passages in zip(held_out, _sets(held_out), strict=True)]
    temperature = min(TEMPERATURES, key=lambda one: _surprise(own[:half], one))
    threshold, scores = near_scores(reader, near, temperature, on_progress)
    scores |= {
        **_scores(_replies(own[half:], temperature), threshold, "own"),
        **_scores(_replies(beside[half:], temperature), threshold, "beside"),
        "surprise": _surprise(own[half:], temperature),
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
    replies = _replies([(pair, values_of(pair, [pair])) for pair in near], temperature)
    fits = set(list(dict.fromkeys(pair.passage for pair in near))[::2])
    threshold = _threshold([one for one in replies if one[0].passage in fits])
    return threshold, _rounded(_scores([one for one in replies if one[0].passage not in fits], threshold, "near"))


def served(folder: Path, base: Path, *, threads: int) -> Reader:
    """The reader of a folder as it is served: by ONNX Runtime, in the number format that this CPU gets."""
    return Reader(folder, choose_precision("auto", device="cpu", threads=threads), base)


def refit(folder: Path, near: Sequence[Pair], base: Path, *, on_progress: OnProgress) -> Card:
    """Fit the threshold of the weights in a folder anew, and replace their card.

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


def _counted(reader: Reader, total: int, on_progress: OnProgress) -> Callable[[Pair, Sequence[Pair]], Values]:
    """Gives the reader's values for a pair's question over some passages, and tells of each of so many calls."""
    count = itertools.count(1)

    def values_of(asked: Pair, passages: Sequence[Pair]) -> Values:
        on_progress(Progress("measuring", next(count), total))
        values = reader.values(asked.question, [Text(pair.passage, pair.title) for pair in passages])
        return [(tokens, windows, pair.passage) for pair, (tokens, windows) in zip(passages, values, strict=True)]

    return values_of


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
    """The best span of several passages, and its probability."""

    text: str
    probability: float


def _replies(read: Sequence[tuple[Pair, Values]], temperature: float) -> list[tuple[Pair, Reply]]:
    return [(pair, _reply(values, temperature)) for pair, values in read]


def _reply(values: Values, temperature: float) -> Reply:
    readings = [reading(tokens, windows, 1, temperature) for tokens, windows, _ in values]
    probabilities, _ = shares(readings)
    best = max(range(len(values)), key=lambda index: max(probabilities[index], default=0.0))
    if not readings[best].spans:
        return Reply("", 0.0)
    span = readings[best].spans[0]
    return Reply(values[best][2][span.start : span.end], probabilities[best][0])


def _surprise(read: Sequence[tuple[Pair, Values]], temperature: float) -> float:
    """Mean surprise, in nats, at whether the passage says it: of "does not say", or of a span over the answer."""
    total = 0.0
    for pair, ((tokens, windows, _), *_) in read:
        one = reading(tokens, windows, 5, temperature)
        probabilities, nothing = shares([one])
        end = pair.start + len(pair.answer)
        near = [
            p for span, p in zip(one.spans, probabilities[0], strict=True) if span.start < end and span.end > pair.start
        ]
        total -= math.log(max(1e-6, sum(near) if pair.answer else nothing))
    return total / max(1, len(read))


def _threshold(answered: Sequence[tuple[Pair, Reply]]) -> float:
    """The least probability from which on answers gain most, a wrong one costing what a right one earns; 1 for none."""
    # A gain of one in a hundred may be chance.
    gain, best, line = 0, len(answered) // 100, 1.0
    for pair, reply in sorted(answered, key=lambda item: -item[1].probability):
        gain += 1 if _is_right(pair, reply) else -1
        if gain > best:
            best, line = gain, reply.probability
    return round(line, 4)


def _scores(replies: Sequence[tuple[Pair, Reply]], threshold: float, prefix: str) -> dict[str, float]:
    answerable = [(pair, reply) for pair, reply in replies if pair.answer]
    answers = [(pair, reply) for pair, reply in replies if reply.probability >= threshold]
    right = sum(_is_right(pair, reply) for pair, reply in answers)
    count = max(1, len(replies))
    return {
        f"{prefix}_exact": _mean([answer_words(reply.text) == answer_words(pair.answer) for pair, reply in answerable]),
        f"{prefix}_f1": _mean([token_f1(reply.text, pair.answer) for pair, reply in answerable]),
        f"{prefix}_says": _mean([bool(pair.answer) == (reply.probability >= threshold) for pair, reply in replies]),
        f"{prefix}_right": right / count,
        f"{prefix}_wrong": (len(answers) - right) / count,
    }


def _is_right(pair: Pair, reply: Reply) -> bool:
    return bool(pair.answer) and token_f1(reply.text, pair.answer) >= 0.5


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
