"""Questions of our own on dense passages about invented things: half are answered there, half only seem to be.

Each passage holds a span of the right kind beside what an unanswerable question names, and answerable questions are
worded otherwise than their passage, so that words in common do not tell the halves apart, as they do in what the
generators make up. A language model wrote them, in two sets of other passages: one is taught (`TAUGHT`, where words in
common tell nothing either way), on the other probabilities are fitted and nothing is taught (`FITTED`).
"""

import random
from importlib.resources import files
from importlib.resources.abc import Traversable

from pydantic import BaseModel, ConfigDict

from lab.trainer import scenes
from lab.trainer.pairs import Pair

_FOLDER = files("lab.trainer") / "data" / "near"
# Of all pairs: their texts are of some three hundred kinds, and a reader's card counts pairs by kind.
KIND = "dense"
FITTED, TAUGHT = _FOLDER / "fitted.jsonl", _FOLDER / "taught.jsonl"


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str
    answer: str
    start: int


class Passage(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str
    kind: str
    title: str
    passage: str
    questions: tuple[Question, ...]

    @property
    def article(self) -> str:
        """What passages of one text have in common: "taught-a-1.2" is the second of "taught-a-1"."""
        return self.id.partition(".")[0]


def passages(file: Traversable) -> list[Passage]:
    """The passages of a set."""
    return [Passage.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]


def pairs(file: Traversable = FITTED) -> list[Pair]:
    """All questions of a set, each with its passage; those on one passage stand together."""
    return [
        Pair(
            id=f"{one.id}-near{number}",
            kind=KIND,
            title=one.title,
            passage=one.passage,
            group=f"dense:{one.article}",
            **question.model_dump(),
        )
        for one in passages(file)
        for number, question in enumerate(one.questions)
    ]


def doubtful() -> list[Pair]:
    """What a reader's threshold is fitted on: pairs of dense passages and of scenes, of which nothing is taught, mixed.

    Most of a scene's contexts say nothing, in the shape of what does.
    """
    both = [*pairs(), *scenes.pairs(scenes.FITTED)]
    return random.Random(0).sample(both, len(both))  # noqa: S311 - repeatable is the point
