"""Records about dense passages: all questions on one, or on an article of several, come with the same passages, so that
a batch reads these once.
"""

import random
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from lab.trainer.near import TAUGHT, Passage, passages
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.reading.records import DOMAIN, TITLED, typed
from lab.trainer.synthesise.record import UNKNOWN, Record

# So many other passages stand around those that a question is shown with: mostly none, for each costs as much time as
# six questions.
AROUND = (0, 0, 0, 0, 1, 2)
# Of the articles of several passages so many are shown whole to each of their questions, as retrieval over a collection
# shows neighbours; of the others each question is shown its passage alone.
WHOLE = 0.75


def generate(count: int, seed: int) -> list[Record]:
    """So many records, or as many as the passages that are taught have questions; the same for the same seed."""
    phrasing = Phrasing(random.Random(f"dense:{seed}"))  # noqa: S311 - reproducible, not secret
    all_passages = passages(TAUGHT)
    articles = [tuple(parts) for _, parts in groupby(all_passages, attrgetter("article"))]
    records: list[Record] = []
    for article in phrasing.some(articles, len(articles)):
        for parts in [article] if phrasing.chance(WHOLE) else [(part,) for part in article]:
            records += _about(phrasing, parts, all_passages)
    return records[:count]


def _about(phrasing: Phrasing, parts: Sequence[Passage], others: Sequence[Passage]) -> list[Record]:
    """All questions on these passages of an article, each with all of them."""
    around = phrasing.some(others, phrasing.pick(AROUND))
    shown = [*parts, *(one for one in around if one.article != parts[0].article)]
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
            group=f"dense:{parts[0].article}",
        )
        for part in parts
        for question in part.questions
    ]
