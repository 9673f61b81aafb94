"""Scenes of our own: what a search or an interface brought back about an invented subject, with questions about it.

Excerpts of several sites, of which some are off the subject, out of date or about a namesake; or objects, rows and
tables of systems that no two write alike, with nulls, other years and similar names. Half of the questions are answered
there, by a look-up, a comparison, a count, a sum, a date or two hops; the others only seem to be, or take for given
what is not so. A language model wrote them line by line, in two sets: one is taught (`TAUGHT`, whose answers a small
model can find), on the other confidence is fitted and nothing is taught (`FITTED`, harder, and read a second time).
"""

import random
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from proto.classify import Domain
from services.gateway.normalize import UNKNOWN

_FOLDER = files("lab.trainer") / "data" / "scenes"
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
