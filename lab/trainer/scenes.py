"""Scenes of our own: what a search or an interface brought back about an invented subject, with questions about it.

Excerpts of several sites, of which some are off the subject, out of date or about a namesake; or objects, rows and
tables of systems that no two write alike, with nulls, other years and similar names. Half of the questions are answered
there, by a look-up, a comparison, a count, a sum, a date or two hops; the others only seem to be, or take for given
what is not so. A language model wrote them line by line, in two sets: one is taught (`TAUGHT`, whose answers a small
model can find), on the other confidence is fitted and nothing is taught (`FITTED`, harder, and read a second time).
"""

import random
import re
from collections.abc import Iterator
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


def scenes(file: Traversable = FITTED) -> list[Scene]:
    """The scenes of a set."""
    return [Scene.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]


def questions(rng: random.Random) -> Iterator[dict[str, Any]]:
    """What is fitted on, as lines for the evaluator, without an id: one of every scene, then another of every scene."""
    order = [(turn, scene, question) for scene in scenes() for turn, question in enumerate(_mixed(rng, scene))]
    rng.shuffle(order)
    for _, scene, question in sorted(order, key=lambda one: one[0]):
        yield {
            "query": question.question,
            "query_time": scene.query_time.isoformat(),
            "domain": scene.domain,
            "question_type": "false_premise" if question.kind == "invalid" else "simple",
            "label": question.answer or UNKNOWN,
            "label_kind": question.kind,
            "alternatives": list(question.alternatives),
            "contexts": list(scene.contexts),
        }


def _mixed(rng: random.Random, scene: Scene) -> list[Question]:
    return rng.sample(scene.questions, len(scene.questions))


def pairs(file: Traversable = TAUGHT) -> list[Pair]:
    """For the reader: each question with the context that answers it in so many words, and with the likeliest other.

    Likely is what has most of the question's words. An answer that no context has word for word, such as a count, or
    that one has twice, is left out. What the contexts do not say comes with the likeliest of them alone.
    """
    return [
        pair for scene in scenes(file) for number, one in enumerate(scene.questions) for pair in _of(scene, number, one)
    ]


def _of(scene: Scene, number: int, question: Question) -> Iterator[Pair]:
    asked = words(question.question)
    likely = sorted(scene.contexts, key=lambda text: -share(asked, words(text)))

    def pair(text: str, start: int = -1, end: int = -1) -> Pair:
        answer = text[start:end] if start >= 0 else ""
        id = f"{scene.id}.{number}{'' if answer else '-'}"
        return Pair(id=id, kind=KIND, passage=text, question=question.question, answer=answer, start=start)

    if question.kind != "answer":
        yield pair(likely[0])
        return
    stands = re.compile(rf"(?<!\w){re.escape(question.answer)}(?!\w)", re.IGNORECASE)
    found = {text: list(stands.finditer(text)) for text in likely}
    best = next((text for text in likely if found[text]), None)
    if best is None or len(found[best]) > 1 or question.answer.lower() in ("yes", "no"):
        return
    yield pair(best, *found[best][0].span())
    if (other := next((text for text in likely if not found[text]), None)) is not None:
        yield pair(other)
