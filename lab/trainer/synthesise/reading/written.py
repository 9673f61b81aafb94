"""Records about what a model wrote to be taught: dense passages, and scenes.

All questions on one passage, article or scene come with the same texts, so that a batch reads these once.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources.abc import Traversable
from itertools import groupby
from operator import attrgetter

from lab.trainer import near, scenes
from lab.trainer.dataset import LABEL_KINDS
from lab.trainer.near import Passage
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.reading.records import TITLED, typed
from lab.trainer.synthesise.record import Record, open_record

# So many other passages stand around those that a question is shown with: mostly none, for each costs as much time as
# six questions.
AROUND = (0, 0, 0, 0, 1, 2)
# Of the articles of several passages so many are shown whole to each of their questions, as retrieval over a collection
# shows neighbours; of the others each question is shown its passage alone.
WHOLE = 0.75
KINDS = {label: kind for kind, label in LABEL_KINDS.items()}


def about_passages(count: int, seed: int) -> list[Record]:
    """So many records, or as many as the passages that are taught have questions; the same for the same seed."""
    phrasing = Phrasing(random.Random(f"dense:{seed}"))  # noqa: S311 - reproducible, not secret
    all_passages = near.passages(near.TAUGHT)
    articles = [tuple(parts) for _, parts in groupby(all_passages, attrgetter("article"))]
    records: list[Record] = []
    for article in phrasing.some(articles, len(articles)):
        for parts in [article] if phrasing.chance(WHOLE) else [(part,) for part in article]:
            records += _on(phrasing, parts, all_passages)
    return records[:count]


def _on(phrasing: Phrasing, parts: Sequence[Passage], others: Sequence[Passage]) -> Iterator[Record]:
    """All questions on these passages of an article, each with all of them."""
    around = phrasing.some(others, phrasing.pick(AROUND))
    shown = [*parts, *(one for one in around if one.article != parts[0].article)]
    phrasing.rng.shuffle(shown)
    titles = tuple(one.title for one in shown) if phrasing.chance(TITLED) else ()
    when = phrasing.moment()
    for question in (question for part in parts for question in part.questions):
        yield open_record(
            typed(phrasing, question.question),
            when,
            "answer" if question.answer else "unknown",
            [one.passage for one in shown],
            question.answer,
            (question.answer,) if question.answer else (),
            pattern="reading.dense",
            titles=titles,
            group=f"dense:{parts[0].article}",
        )


def about_scenes(count: int, seed: int, file: Traversable = scenes.TAUGHT) -> list[Record]:
    """So many records, or as many as the scenes of a set have questions; the same for the same seed."""
    phrasing = Phrasing(random.Random(f"scenes:{seed}"))  # noqa: S311 - reproducible, not secret
    taught = scenes.scenes(file)
    records: list[Record] = []
    for scene in phrasing.some(taught, len(taught)):
        contexts = phrasing.some(scene.contexts, len(scene.contexts))
        for question in scene.questions:
            query, kind = typed(phrasing, question.question), KINDS[question.kind]
            record = open_record(query, scene.query_time, kind, contexts, question.answer, group=f"scene:{scene.id}")
            records.append(replace(record, domain=scene.domain, pattern="reading.scene"))
    return records[:count]
