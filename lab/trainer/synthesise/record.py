"""What the generators yield: a question with what was looked up for it, and what shall be said."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lab.trainer.dataset import Kind
from services.gateway.normalize import INVALID, UNKNOWN

__all__ = ["INVALID", "UNKNOWN", "Kind", "QuestionType", "Record", "answered", "invalid", "unknown"]

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


def answered(
    query: str,
    when: datetime,
    domain: str,
    question_type: QuestionType,
    answer: str,
    passages: tuple[str, ...],
    support: tuple[str, ...] = (),
) -> Record:
    return Record(query, when, domain, question_type, "answer", answer, "", passages, support)


def unknown(query: str, when: datetime, domain: str, question_type: QuestionType, passages: tuple[str, ...]) -> Record:
    return Record(query, when, domain, question_type, "unknown", UNKNOWN, "", passages)


def invalid(query: str, when: datetime, domain: str, passages: tuple[str, ...]) -> Record:
    return Record(query, when, domain, "false_premise", "invalid_question", INVALID, "", passages)
