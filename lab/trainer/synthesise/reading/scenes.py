"""Records about scenes: all questions on one come with the same contexts, so that a batch reads these once."""

import random

from lab.trainer.scenes import TAUGHT, Question, Scene, scenes
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.reading.records import typed
from lab.trainer.synthesise.record import UNKNOWN, Kind, Record

KINDS: dict[str, Kind] = {"answer": "answer", "idk": "unknown", "invalid": "invalid_question"}


def generate(count: int, seed: int) -> list[Record]:
    """So many records, or as many as the scenes that are taught have questions; the same for the same seed."""
    phrasing = Phrasing(random.Random(f"scenes:{seed}"))  # noqa: S311 - reproducible, not secret
    taught = scenes(TAUGHT)
    records: list[Record] = []
    for scene in phrasing.some(taught, len(taught)):
        contexts = tuple(phrasing.some(scene.contexts, len(scene.contexts)))
        records += [_record(phrasing, scene, contexts, question) for question in scene.questions]
    return records[:count]


def _record(phrasing: Phrasing, scene: Scene, contexts: tuple[str, ...], question: Question) -> Record:
    return Record(
        query=typed(phrasing, question.question),
        query_time=scene.query_time,
        domain=scene.domain,
        question_type="false_premise" if question.kind == "invalid" else "simple",
        kind=KINDS[question.kind],
        answer=question.answer or UNKNOWN,
        pattern="reading.scene",
        passages=contexts,
        group=f"scene:{scene.id}",
    )
