"""Records about dense passages: all questions on one come with the same passages, so that a batch reads these once."""

import random
from collections.abc import Sequence

from lab.trainer.near import TAUGHT, Passage, passages
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.reading.records import DOMAIN, TITLED, typed
from lab.trainer.synthesise.record import UNKNOWN, Record

# So many other passages stand around a question's own: mostly none, for each costs as much time as six questions.
AROUND = (0, 0, 0, 0, 1, 2)


def generate(count: int, seed: int) -> list[Record]:
    """So many records, or as many as the passages that are taught have questions; the same for the same seed."""
    phrasing = Phrasing(random.Random(f"dense:{seed}"))  # noqa: S311 - reproducible, not secret
    all_passages = passages(TAUGHT)
    records: list[Record] = []
    for passage in phrasing.some(all_passages, len(all_passages)):
        records += _of_passage(phrasing, passage, all_passages)
    return records[:count]


def _of_passage(phrasing: Phrasing, passage: Passage, others: Sequence[Passage]) -> list[Record]:
    shown = [passage, *(one for one in phrasing.some(others, phrasing.pick(AROUND)) if one is not passage)]
    phrasing.rng.shuffle(shown)
    titles = tuple(one.title for one in shown) if phrasing.chance(TITLED) else ()
    when = phrasing.moment()
    return [
        Record(
            query=typed(phrasing, question.question),
            query_time=when,
            domain=DOMAIN,
            question_type="simple",
            kind="answer" if question.answer else "unknown",
            answer=question.answer or UNKNOWN,
            pattern="reading.dense",
            passages=tuple(one.passage for one in shown),
            titles=titles,
            support=(question.answer,) if question.answer else (),
            group=f"dense:{passage.id}",
        )
        for question in passage.questions
    ]
