"""The classifier's training questions, which are also demonstrations for a language model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


class DataError(ValueError):
    """The training data cannot be read; the message names the file and the line."""


def read_questions(path: Path = QUESTIONS) -> list[Example]:
    """The training set.

    Raises:
        DataError: a line is no example.
    """
    try:
        return [_example(record, place) for place, record in jsonl.objects(path)]
    except jsonl.BadLine as error:
        raise DataError(str(error)) from error


def _example(record: dict[str, Any], place: str) -> Example:
    try:
        return Example(**record)
    except TypeError as error:
        raise DataError(f"{place}: {error}") from error
