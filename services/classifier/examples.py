"""The questions that the classifier was taught, as they were written: demonstrations for a language model too."""

import json
from dataclasses import dataclass
from pathlib import Path

QUESTIONS = Path(__file__).parent / "data" / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled question; an empty label is not known, and its head does not learn from the question."""

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
    """The training set as it was written.

    Raises:
        DataError: a line is no example.
    """
    examples = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            examples.append(Example(**json.loads(line)))
        except (TypeError, ValueError) as error:
            raise DataError(f"{path.name}:{number}: {error}") from error
    return examples
