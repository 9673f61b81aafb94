"""Scenes of our own: what a search or an interface brought back about an invented subject, with questions about it.

Excerpts of several sites, of which some are off the subject, out of date or about a namesake; or objects, rows and
tables of systems that no two write alike, with nulls, other years and similar names. Half of the questions are answered
there, by a look-up, a comparison, a count, a sum, a date or two hops; the others only seem to be, or take for given
what is not so. A language model wrote them line by line, in two sets: one is taught (`TAUGHT`, whose answers a small
model can find), on the other confidence is fitted and nothing is taught (`FITTED`, harder, and read a second time).
"""

import random
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from lab.trainer.pairs import Pair
from proto.classify import Domain
from services.gateway.confidence import share, words
from services.gateway.normalize import UNKNOWN

_FOLDER = files("lab.trainer") / "data" / "scenes"
# Of all pairs, as with dense passages.
KIND = "scene"
FITTED, TAUGHT = _FOLDER / "fitted.jsonl", _FOLDER / "taught.jsonl"
# Excerpts of an organisation's documents: rules, prices, minutes, instructions. Of six questions two are left open;
# the others want yes or no, two of each, or a short answer.
DOCUMENTS, DOCUMENTS_FITTED = _FOLDER / "documents.jsonl", _FOLDER / "documents-fitted.jsonl"


class Question(BaseModel):
    """A question on a scene.

    `answer` is empty where the contexts do not say, and `alternatives` are other ways to say it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    kind: Literal["answer", "idk", "invalid"]
    answer: str
    alternatives: tuple[str, ...]


class Scene(BaseModel):
    """What came back, web pages' excerpts (WEB) or interfaces' (DATA), and when that was."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    sort: Literal["WEB", "DATA"]
    domain: Domain
    query_time: datetime
    contexts: tuple[str, ...]
    questions: tuple[Question, ...]

    @property
    def wants_yes_or_no(self) -> bool:
        """Whether it is asked for yes or no, what its questions leave open aside."""
        return any(question.answer in ("yes", "no") for question in self.questions)


def scenes(file: Traversable = FITTED) -> list[Scene]:
    """The scenes of a set."""
    return [Scene.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]


def questions(rng: random.Random) -> Iterator[dict[str, Any]]:
    """What is fitted on, as lines for the evaluator, without an id: one of every scene, then another of every scene."""
    mixed = ((scene, rng.sample(scene.questions, len(scene.questions))) for scene in scenes())
    order = [(turn, scene, question) for scene, asked in mixed for turn, question in enumerate(asked)]
    rng.shuffle(order)
    for _, scene, question in sorted(order, key=lambda one: one[0]):
        yield line(scene, question) | {"contexts": list(scene.contexts)}


def line(scene: Scene, question: Question) -> dict[str, Any]:
    """A question as a line for the evaluator, without an id and what it is answered from."""
    return {
        "query": question.question,
        "query_time": scene.query_time.isoformat(),
        "domain": scene.domain,
        "question_type": "false_premise" if question.kind == "invalid" else "simple",
        "label": question.answer or UNKNOWN,
        "label_kind": question.kind,
        "alternatives": list(question.alternatives),
    }


def pairs(file: Traversable = TAUGHT) -> list[Pair]:
    """For the reader: each question with the context that answers it in so many words, and with the likeliest other.

    Likely is what has most of the question's words. An answer that no context has word for word, such as a count, or
    that one has twice, is left out. What the contexts do not say comes with the likeliest of them alone.
    """
    return [pair for scene in scenes(file) for pair in _of(scene)]


def _of(scene: Scene) -> Iterator[Pair]:
    said = {text: words(text) for text in scene.contexts}
    for number, question in enumerate(scene.questions):
        asked = words(question.question)
        likely = sorted(said, key=lambda text: -share(asked, said[text]))
        for text, answer in _told(question, likely):
            yield Pair(
                id=f"{scene.id}.{number}{'' if answer else '-'}",
                kind=KIND,
                passage=text,
                question=question.question,
                answer=answer.group() if answer else "",
                start=answer.start() if answer else -1,
                group=f"scene:{scene.id}",
            )


def _told(question: Question, likely: Sequence[str]) -> Iterator[tuple[str, re.Match[str] | None]]:
    """Contexts of a question's pairs, the likeliest first, and where they answer it."""
    if question.kind != "answer":
        yield likely[0], None
        return
    if question.answer.lower() in ("yes", "no"):
        return
    stands = re.compile(rf"(?<!\w){re.escape(question.answer)}(?!\w)", re.IGNORECASE)
    found = {text: list(stands.finditer(text)) for text in likely}
    best = next((text for text in likely if found[text]), None)
    if best is None or len(found[best]) > 1:
        return
    yield best, found[best][0]
    if (other := next((text for text in likely if not found[text]), None)) is not None:
        yield other, None
