"""Labels from a model's own output: for the answers of an evaluation, and for sampled programs.

Labels follow db3 (section 2.4): a false premise is refused; a right answer stays the gold one; of the wrong ones those
that the context would have shown are corrected, and those that it would not become an abstention.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.trainer.dataset import Kind
from lab.trainer.errors import BadLabels
from lab.trainer.relevance import holds
from services.gateway.normalize import INVALID, UNKNOWN

Rule = Literal["false premise", "nothing to find", "right", "wrong but in the context", "wrong and not in the context"]


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A question of an evaluation with its outcome.

    Args:
        gold: the right answer, then its alternatives.
        label_kind: answer, idk or invalid, as the evaluation's data says.
        outcome: the judge's: right, missing or wrong.
        contexts: the model's evidence.
    """

    id: str
    query: str
    gold: tuple[str, ...]
    label_kind: str
    outcome: str
    contexts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """The reply to teach, and the rule that chose it."""

    completion: str
    kind: Kind
    rule: Rule


def label(judged: JudgedAnswer) -> Label:
    """The label of one answer.

    An abstention counts as wrong: a context with the answer asks for the answer.

    Raises:
        BadLabels: the question has no gold answer or an outcome that is none.
    """
    if judged.outcome not in ("right", "missing", "wrong"):
        raise BadLabels(f"{judged.id}: outcome: {judged.outcome!r} is none of right, missing, wrong")
    if judged.label_kind == "invalid":
        return Label(INVALID, "invalid_question", "false premise")
    if judged.label_kind == "idk":
        return Label(UNKNOWN, "unknown", "nothing to find")
    gold = next((answer.strip() for answer in judged.gold if answer.strip()), "")
    if not gold:
        raise BadLabels(f"{judged.id}: gold: there is no answer to teach")
    if judged.outcome == "right":
        return Label(gold, "answer", "right")
    if any(holds(judged.contexts, answer, judged.query) for answer in judged.gold):
        return Label(gold, "answer", "wrong but in the context")
    return Label(UNKNOWN, "unknown", "wrong and not in the context")


Sample = Callable[[str], Awaitable[Sequence[str]]]
Execute = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class BestProgram:
    """The chosen program, how many different ones were tried and how many of them were correct."""

    program: str
    tried: int
    correct: int


async def best_program(query: str, gold: Sequence[str], *, sample: Sample, execute: Execute) -> BestProgram | None:
    """The shortest of the sampled programs whose facts hold the gold answer; None when no sample's do.

    Of two correct programs the longer one has asked for more than was needed.

    Args:
        gold: the right answer and its alternatives.
        sample: programs for a question, repetitions included.
        execute: the facts of a program as text; empty where it found none.
    """
    programs = list(dict.fromkeys(program.strip() for program in await sample(query) if program.strip()))
    correct = []
    for program in programs:
        facts = await execute(program)
        if facts and any(holds([facts], answer, query) for answer in gold):
            correct.append(program)
    if not correct:
        return None
    return BestProgram(min(correct, key=lambda program: (len(program), program)), len(programs), len(correct))
