"""Records about scenes: all questions on one come with the same contexts, so that a batch reads these once."""

import random
from dataclasses import replace

from lab.trainer.dataset import LABEL_KINDS, Kind
from lab.trainer.scenes import TAUGHT, Question, Scene, scenes
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.reading.records import typed
from lab.trainer.synthesise.record import Record, open_record

KINDS: dict[str, Kind] = {label: kind for kind, label in LABEL_KINDS.items()}


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
    query = typed(phrasing, question.question)
    record = open_record(query, scene.query_time, KINDS[question.kind], contexts, question.answer)
    return replace(record, domain=scene.domain, pattern="reading.scene", group=f"scene:{scene.id}")
