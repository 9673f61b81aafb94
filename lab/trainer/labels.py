"""Labels from a model's own output: for the answers of an evaluation, and for sampled programs.

Labels follow db3 (section 2.4): a false premise is refused; a right answer stays the gold one; of the wrong ones those
that the context would have shown are corrected, and those that it would not become an abstention.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.evaluator.data import Item
from lab.trainer.dataset import Kind
from lab.trainer.errors import BadLabels
from lab.trainer.relevance import holds
from services.gateway.normalize import INVALID, UNKNOWN

Rule = Literal["false premise", "nothing to find", "right", "wrong but in the context", "wrong and not in the context"]


@dataclass(frozen=True, slots=True)
class Label:
    """The reply to teach, and the rule that chose it."""

    completion: str
    kind: Kind
    rule: Rule


def label(item: Item, outcome: str, contexts: Sequence[str]) -> Label:
    """The label of one answer.

    An abstention counts as wrong: a context with the answer asks for the answer.

    Args:
        outcome: the judge's: right, missing or wrong.
        contexts: the model's evidence.

    Raises:
        BadLabels: the question has no gold answer or an outcome that is none.
    """
    if outcome not in ("right", "missing", "wrong"):
        raise BadLabels(f"{item.id}: outcome: {outcome!r} is none of right, missing, wrong")
    if item.label_kind == "invalid":
        return Label(INVALID, "invalid_question", "false premise")
    if item.label_kind == "idk":
        return Label(UNKNOWN, "unknown", "nothing to find")
    gold = next((answer.strip() for answer in item.gold if answer.strip()), "")
    if not gold:
        raise BadLabels(f"{item.id}: gold: there is no answer to teach")
    if outcome == "right":
        return Label(gold, "answer", "right")
    if any(holds(contexts, answer, item.query) for answer in item.gold):
        return Label(gold, "answer", "wrong but in the context")
    return Label(UNKNOWN, "unknown", "wrong and not in the context")


async def best_program(item: Item, programs: Iterable[str], execute: Callable[[str], Awaitable[str]]) -> str:
    """The shortest program whose facts hold the gold answer; empty when no program's do.

    Of two correct programs the longer one has asked for more than was needed.

    Args:
        programs: sampled for the question, repetitions included.
        execute: the facts of a program as text; empty where it found none.
    """
    correct = []
    for program in dict.fromkeys(program.strip() for program in programs if program.strip()):
        facts = await execute(program)
        if facts and any(holds([facts], answer, item.query) for answer in item.gold):
            correct.append(program)
    return min(correct, key=lambda program: (len(program), program), default="")
