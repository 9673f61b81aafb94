"""The judge `rules` tried on a question file alone: each gold answer against itself, and against another's."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from lab.evaluator.data import Item
from lab.evaluator.judge import rules
from lab.evaluator.judge.verdict import WEIGHTS, Case

SHUFFLES = 10


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """Outcomes of gold against itself, and mean shares over several shuffles.

    An `idk` question has no right answer: its gold, an abstention, is missing by definition. So `score` is over the
    questions that have an answer or are invalid. A shuffled gold that reads the same is right to be taken for right;
    `false_rights` are the others, as shares of all questions. `faults` names the lines, of those that the score is
    over, whose gold answer is not right against itself, each with the verdict.
    """

    questions: int
    answerable: int
    itself: dict[str, int]
    score: float
    shuffled_right: float
    shuffled_score: float
    false_rights: float
    faults: tuple[str, ...]


def self_check(items: Iterable[Item], *, seed: int) -> SelfCheck:
    """Judge every first gold answer against itself, and against those of shuffled questions."""
    items = list(items)
    questions = [(item.query, item.gold, item.label_kind) for item in items]
    verdicts = [rules.judge(Case(query, gold, gold[0], kind)) for query, gold, kind in questions]
    itself = Counter(verdict.outcome for verdict in verdicts)
    judged = [(item, verdict) for item, verdict in zip(items, verdicts, strict=True) if item.label_kind != "idk"]
    right = falsely = total = points = 0
    dice = random.Random(seed)  # noqa: S311 - a repeatable shuffle, no secret
    for _ in range(SHUFFLES):
        others = [gold[0] for _, gold, _ in questions]
        dice.shuffle(others)
        for (query, gold, kind), other in zip(questions, others, strict=True):
            verdict = rules.judge(Case(query, gold, other, kind))
            total += 1
            points += WEIGHTS[verdict.outcome]
            right += verdict.outcome == "right"
            falsely += verdict.outcome == "right" and verdict.by == rules.NAME
    return SelfCheck(
        questions=len(questions),
        answerable=len(judged),
        itself={str(name): count for name, count in itself.items()},
        score=sum(WEIGHTS[verdict.outcome] for _, verdict in judged) / max(1, len(judged)),
        shuffled_right=right / max(1, total),
        shuffled_score=points / max(1, total),
        false_rights=falsely / max(1, total),
        faults=tuple(
            f"{item.place}: {verdict.outcome}: {verdict.reason}"
            for item, verdict in judged
            if verdict.outcome != "right"
        ),
    )
