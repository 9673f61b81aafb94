"""Task scores of the trainer that need other services: answers judged as an evaluation judges them."""

from collections import Counter
from collections.abc import Sequence

from lab.evaluator.judge import rules
from lab.evaluator.judge.verdict import Case
from lab.trainer.dataset import Example, Task
from lab.trainer.score import Scorer, Scores, crag_scores, exact
from services.gateway.normalize import normalize

LABEL_KINDS = {"answer": "answer", "unknown": "idk", "invalid_question": "invalid"}


def judged(examples: Sequence[Example], replies: Sequence[str]) -> Scores:
    """CRAG's score with the gateway's reading of replies and the evaluator's judge `rules`."""
    counts: Counter[str] = Counter()
    by_kind: Counter[tuple[str, bool]] = Counter()
    for example, reply in zip(examples, replies, strict=True):
        said = normalize(reply).answer
        verdict = rules.judge(Case(example.query, (example.completion,), said, LABEL_KINDS[example.kind]))
        counts[verdict.outcome] += 1
        as_taught = verdict.outcome == ("missing" if example.kind == "unknown" else "right")
        by_kind[example.kind, as_taught] += 1
    return crag_scores(counts, by_kind)


def scorer_of(task: Task) -> Scorer:
    """What decides which adapter is the best."""
    return judged if task == "answer" else exact
