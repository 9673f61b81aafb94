"""The task score: what a reply is worth, as the task counts it."""

import re
from collections.abc import Callable, Sequence

from lab.trainer.dataset import Example

# Shares of the examples, 0..1; `score` decides which adapter is the best, the others are for people.
Scores = dict[str, float]
Scorer = Callable[[Sequence[Example], Sequence[str]], Scores]

_EDGES = " \t.,;:!?\"'“”„`*_"


def normalized(text: str) -> str:
    """A reply as it is compared: one line, lower case, plain quotes, no article and no punctuation around it."""
    text = text.lower().replace("’", "'").replace("‘", "'")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", " ".join(text.split()))
    return re.sub(r"^(?:the|an?) ", "", text.strip(_EDGES)).strip(_EDGES)


def answer_words(text: str) -> list[str]:
    """A text's words and numbers, in lower case, without articles."""
    plain = "".join(mark if mark.isalnum() else " " for mark in text.lower())
    return [word for word in plain.split() if word not in ("a", "an", "the")]


def token_f1(reply: str, answer: str) -> float:
    """Harmonic mean of the shares of words that the two have in common."""
    ours, theirs = answer_words(reply), answer_words(answer)
    common = sum(min(ours.count(word), theirs.count(word)) for word in set(ours))
    return 2 * common / (len(ours) + len(theirs)) if common else 0.0


def exact(examples: Sequence[Example], replies: Sequence[str]) -> Scores:
    """The share of replies that are the taught program, spaces aside: below the share that finds the same facts."""
    pairs = zip(examples, replies, strict=True)
    same = sum(_squeezed(example.completion) == _squeezed(reply) for example, reply in pairs)
    return {"score": same / max(1, len(examples))}


def _squeezed(program: str) -> str:
    return re.sub(r"\s+", "", program)
