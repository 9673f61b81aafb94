"""The task score: what a reply is worth, as the task counts it."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from lab.trainer.dataset import Example, Task

# Shares of the examples, 0..1; `score` decides which adapter is the best, the others are for people.
Scores = dict[str, float]
Scorer = Callable[[Sequence[Example], Sequence[str]], Scores]

UNKNOWN = "i don't know"
INVALID = "invalid question"

_UNKNOWN = re.compile(r"\bi (?:don'?t|do not) (?:really |actually )?know\b")
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


def crag(examples: Sequence[Example], replies: Sequence[str]) -> Scores:
    """CRAG's score by exact match after `normalized`: right +1, wrong -1, an abstention 0 (CRAG, section 3.2).

    Stricter than a judge, so lower than what an evaluation finds; it is for comparing adapters of one data set.
    """
    counts: Counter[str] = Counter()
    by_kind: Counter[tuple[str, bool]] = Counter()
    for example, reply in zip(examples, replies, strict=True):
        said = normalized(reply)
        if not said or _UNKNOWN.search(said):
            outcome = "missing"
        else:
            outcome = "right" if said == normalized(example.completion) and example.kind != "unknown" else "wrong"
        as_taught = outcome == ("missing" if example.kind == "unknown" else "right")
        counts[outcome] += 1
        by_kind[example.kind, as_taught] += 1
    return crag_scores(counts, by_kind)


def crag_scores(counts: Counter[str], by_kind: Counter[tuple[str, bool]]) -> Scores:
    """Shares from counts of outcomes, and of (kind, replied as taught)."""
    total = max(1, counts.total())
    scores = {
        "score": (counts["right"] - counts["wrong"]) / total,
        **{outcome: counts[outcome] / total for outcome in ("right", "missing", "wrong")},
    }
    for kind in ("answer", "unknown", "invalid_question"):
        if asked := by_kind[kind, True] + by_kind[kind, False]:
            scores[f"as taught: {kind}"] = by_kind[kind, True] / asked
    return scores


def exact(examples: Sequence[Example], replies: Sequence[str]) -> Scores:
    """The share of replies that are the taught program, spaces aside: below the share that finds the same facts."""
    pairs = zip(examples, replies, strict=True)
    same = sum(_squeezed(example.completion) == _squeezed(reply) for example, reply in pairs)
    return {"score": same / max(1, len(examples))}


def _squeezed(program: str) -> str:
    return re.sub(r"\s+", "", program)


SCORERS: dict[Task, Scorer] = {"answer": crag, "kg-api": exact}
