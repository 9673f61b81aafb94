"""A question with its program, and how one is put together."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from lab.trainer.synthesise.record import QuestionType, Record
from lab.trainer.synthesise.world import World

Gold = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question with its program.

    Args:
        gold: values that the facts must hold, all of them; empty for a question that no function answers.
    """

    record: Record
    gold: Gold


Pattern = Callable[[World], Drawn | None]


def made(
    w: World, query: str, program: str, gold: Gold, question_type: QuestionType = "simple", when: datetime | None = None
) -> Drawn:
    asked = w.voice.typed(query)
    # A program spells names as the question does.
    return Drawn(Record(asked, when or w.moment(), "", question_type, "answer", "", "", program=program), gold)


def quoted(name: str) -> str:
    """A name as programs write it."""
    return '"' + name.lower().replace('"', "") + '"'
