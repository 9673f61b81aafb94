"""Task scores of the trainer that need other services: answers judged as an evaluation judges them."""

from collections import Counter
from collections.abc import Sequence

from lab.evaluator.judge import rules
from lab.evaluator.judge.verdict import Case
from lab.trainer.dataset import LABEL_KINDS, Example, Task
from lab.trainer.score import Scorer, Scores, exact
from services.gateway.normalize import normalize


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
