"""Data of the extractive reader: a question, a passage, and the words there that answer it, or none."""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lab.trainer.dataset import lines
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.pages import PATTERNS
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.record import Record

# Of an answerable question's distractors, tries until one does not hold the answer too.
TRIES = 8


class Pair(BaseModel):
    """One line of a file.

    Args:
        kind: what kind of text the passage is.
        answer: its words; empty where the passage does not say.
        start: the answer's first character in the passage; -1 where it does not say.
        group: pairs of one group never lie on both sides of a split; empty groups by the passage.
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    id: str = Field("", max_length=200)
    kind: str = Field("", max_length=200)
    title: str = Field("", max_length=2_000)
    passage: str = Field(min_length=1, max_length=100_000)
    question: str = Field(min_length=1, max_length=20_000)
    answer: str = Field("", max_length=20_000)
    start: int = Field(-1, ge=-1)
    group: str = Field("", max_length=200)

    @model_validator(mode="after")
    def _stands_there(self) -> Self:
        if bool(self.answer) != (self.start >= 0):
            raise ValueError("an answer has a start, and no answer has -1")
        if self.answer and self.passage[self.start : self.start + len(self.answer)] != self.answer:
            raise ValueError("the answer does not stand at its start in the passage")
        return self


def read(paths: Iterable[Path]) -> list[Pair]:
    """The pairs of files.

    Raises:
        BadDataset: a file cannot be read, or a line of it is no pair.
    """
    return [pair for _, pair in lines(paths, Pair)]


def made_up(count: int, seed: int) -> Iterator[Pair]:
    """So many pairs of the generators' prose and web pages, the same for the same seed.

    A record's answer must stand word for word in one of its passages; the others do not say it.
    """
    rng = random.Random(f"reader:{seed}")  # noqa: S311 - reproducible, not secret
    phrasing = Phrasing(rng)
    names = Names(phrasing)
    sources = [(name, pattern) for name, patterns in PATTERNS.items() for pattern in patterns]
    made = records = 0
    while made < count:
        name, pattern = phrasing.pick(sources)
        for pair in _of_record(pattern(phrasing, names), name):
            yield pair.model_copy(update={"id": f"{name}-{seed}-{made:06d}", "group": f"{name}:{seed}-{records:06d}"})
            made += 1
            if made == count:
                return
        records += 1


def _of_record(record: Record, kind: str) -> Iterator[Pair]:
    answer = record.support[0] if record.kind == "answer" and len(record.support) == 1 else ""
    # A reply that is no span, as with sums, has no place in a passage.
    if record.kind == "answer" and answer not in record.answer:
        return
    for passage in record.passages:
        holds = bool(answer) and passage.count(answer) == 1
        if answer and not holds and answer in passage:
            continue
        yield Pair(
            kind=kind,
            passage=passage,
            question=record.query,
            answer=answer if holds else "",
            start=passage.index(answer) if holds else -1,
        )


def distractors(pairs: Sequence[Pair], *, share: float, seed: int) -> list[Pair]:
    """For a share of the answerable questions another passage of the same title, else of the same kind.

    One that holds the words of the answer is none.
    """
    rng = random.Random(f"distractors:{seed}")  # noqa: S311 - reproducible, not secret
    by_title: dict[str, list[Pair]] = defaultdict(list)
    by_kind: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_title[pair.title].append(pair)
        by_kind[pair.kind].append(pair)
    others: list[Pair] = []
    for pair in pairs:
        if not pair.answer or rng.random() >= share:
            continue
        near = by_title[pair.title] if pair.title and rng.random() < 0.5 else []
        candidates = [rng.choice(pool) for pool in (near, by_kind[pair.kind]) if pool for _ in range(TRIES)]
        fits = (
            other
            for other in candidates
            if other.passage != pair.passage and pair.answer.lower() not in other.passage.lower()
        )
        if (other := next(fits, None)) is not None:
            update = {"title": other.title, "passage": other.passage, "answer": "", "start": -1}
            others.append(pair.model_copy(update={**update, "id": f"{pair.id}+{other.id}"}))
    return others


def group_of(pair: Pair) -> str:
    """The group of a pair: its own, else its passage."""
    return pair.group or pair.passage


def fingerprint(pairs: Sequence[Pair]) -> str:
    """SHA-256 over all pairs, in order."""
    return hashlib.sha256("".join(map(Pair.model_dump_json, pairs)).encode()).hexdigest()


def sources(pairs: Iterable[Pair]) -> dict[str, int]:
    """How many pairs there are of each kind of text."""
    return dict(Counter(pair.kind or "other" for pair in pairs).most_common())
