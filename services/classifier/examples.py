"""The classifier's training questions, which are also demonstrations for a language model."""

from dataclasses import dataclass
from pathlib import Path

from services.kit import jsonl

QUESTIONS = Path(__file__).parent / "data" / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled question; a head with an empty label does not learn from it."""

    question: str
    domain: str = ""
    dynamism: str = ""
    question_type: str = ""
    group: str = ""

    def label(self, head: str) -> str:
        return str(getattr(self, head))


def read_questions() -> list[Example]:
    """The training set."""
    return [Example(**record) for _, record in jsonl.objects(QUESTIONS)]
