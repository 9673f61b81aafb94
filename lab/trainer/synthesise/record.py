"""What the generators yield: a question with what was looked up for it, and what shall be said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lab.trainer.dataset import Kind
from services.gateway.normalize import INVALID, UNKNOWN

QuestionType = Literal[
    "simple", "simple_w_condition", "set", "comparison", "aggregation", "multi-hop", "post-processing", "false_premise"
]


@dataclass(frozen=True, slots=True)
class Record:
    """One example, before a prompt is made of it.

    Args:
        pattern: name of the generator that made it.
        support: what the passages must hold for the answer to be right; empty where the answer is computed.
        titles: of the passages, one for each; empty where they have none.
        group: what keeps records on one side of a split; empty where the query does.
        program: of the KG language, where one gave the facts.
    """

    query: str
    query_time: datetime
    domain: str
    question_type: QuestionType
    kind: Kind
    answer: str
    pattern: str
    passages: tuple[str, ...] = ()
    support: tuple[str, ...] = ()
    program: str = ""
    titles: tuple[str, ...] = ()
    group: str = ""


def open_record(
    query: str,
    when: datetime,
    kind: Kind,
    passages: Sequence[str],
    answer: str = "",
    support: tuple[str, ...] = (),
    *,
    pattern: str = "",
    titles: tuple[str, ...] = (),
    group: str = "",
) -> Record:
    """A record of the open domain; `answer` is of the kind `answer` alone."""
    question_type: QuestionType = "false_premise" if kind == "invalid_question" else "simple"
    reply = {"answer": answer, "unknown": UNKNOWN, "invalid_question": INVALID}[kind]
    shown = tuple(passages)
    return Record(query, when, "open", question_type, kind, reply, pattern, shown, support, "", titles, group)
