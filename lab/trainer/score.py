"""The task score: what a reply is worth, as the task counts it; and how replies are compared."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from lab.evaluator.judge import rules
from lab.evaluator.judge.verdict import Case
from lab.trainer.dataset import LABEL_KINDS, Example, Task
from services.gateway.normalize import normalize

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
    same = sum("".join(example.completion.split()) == "".join(reply.split()) for example, reply in pairs)
    return {"score": same / max(1, len(examples))}


def judged(examples: Sequence[Example], replies: Sequence[str]) -> Scores:
    """CRAG's score by the gateway's reading of replies and the evaluator's judge `rules`: right +1, wrong -1."""
    counts: Counter[str] = Counter()
    by_kind: Counter[tuple[str, bool]] = Counter()
    for example, reply in zip(examples, replies, strict=True):
        answer = normalize(reply).answer
        verdict = rules.judge(Case(example.query, (example.completion,), answer, LABEL_KINDS[example.kind]))
        counts[verdict.outcome] += 1
        as_taught = verdict.outcome == ("missing" if example.kind == "unknown" else "right")
        by_kind[example.kind, as_taught] += 1
    total = max(1, counts.total())
    scores = {outcome: counts[outcome] / total for outcome in ("right", "missing", "wrong")}
    for kind in LABEL_KINDS:
        if questions := by_kind[kind, True] + by_kind[kind, False]:
            scores[f"as taught: {kind}"] = by_kind[kind, True] / questions
    return {"score": (counts["right"] - counts["wrong"]) / total} | scores


def scorer_of(task: Task) -> Scorer:
    """The score that decides which adapter is the best."""
    return judged if task == "answer" else exact
