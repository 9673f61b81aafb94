"""Records about a model's prose as the gateway sees it: the question with its passage among others, or without it."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import bm25s
import numpy as np

from lab.trainer.errors import BadDataset
from lab.trainer.pairs import Pair, read
from lab.trainer.synthesise import answers
from lab.trainer.synthesise.evidence import MAX_CHARS
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.reading import filters
from lab.trainer.synthesise.reading.articles import SAMPLE, article, brief, original, telling, way
from lab.trainer.synthesise.reading.briefs import WORDS
from lab.trainer.synthesise.record import Record, open_record
from services.kit.lexical import K1, B, stems

# Of the prose so much is answered; of what is answered so much is asked again where its passage was not found.
ANSWERED, NOT_FOUND = 0.56, 0.2
# Another passage of the question's article comes so often, where it is there and does not answer.
SAME_ARTICLE = 0.6
# All passages of a prompt with their titles and fences, and how many stand around the question's own.
CHARS = (440, MAX_CHARS)
AROUND = (0, 6)
FENCE_CHARS = 36
# What is left of a prompt's length is filled by the beginning of one more passage, if it is so long.
MIN_REST = 120
# Of the others so many share words with the question, of the nearest by BM25; the rest is any.
NEAR, NEAREST = 0.6, 12
TRIES = 20
# Retrieval mostly puts the right passage first. Posted contexts have no titles; pages and collections have them.
FIRST, TITLED = 0.55, 0.5
# Questions as people type them, and what they leave out.
TYPED = 0.4
TYPINGS = {"lower": 2.0, "unmarked": 2.5, "both": 4.5, "all lower": 1.0}
_OPENERS = frozenset(WORDS["openers"])


def generate(pairs: Sequence[Pair], count: int, seed: int) -> list[Record]:
    """So many records, or as many as the pairs give in the shares above; the same for the same seed.

    The shipped sample's articles are left out: with its questions confidences are fitted.

    Args:
        pairs: lines of `cragmesh train prose`.

    Raises:
        BadDataset: nothing is left to learn from.
    """
    kept_back = {article(pair) for pair in read([Path(str(SAMPLE))])}
    # Each question once in each way.
    distinct = {(way(pair), pair.question.lower()): pair for pair in pairs}.values()
    pairs = [pair for pair in distinct if article(pair) not in kept_back]
    rng = random.Random(f"reading:{seed}")  # noqa: S311 - reproducible, not secret
    phrasing = Phrasing(rng)
    answerable, twins = ([pair for pair in pairs if bool(pair.answer) is has_answer] for has_answer in (True, False))
    twins_each = 1 / ANSWERED - 1 - NOT_FOUND
    answered = min(round(count * ANSWERED), len(answerable), int(len(twins) / twins_each))
    if not answered:
        raise BadDataset("prose: too few questions with and without an answer that are not in the shipped sample")
    chosen = phrasing.some(answerable, answered)
    lost = [pair for pair in chosen if filters.names(pair.question)][: round(answered * NOT_FOUND)]
    questions = [*((pair, True) for pair in chosen), *((pair, False) for pair in lost)]
    rest = min(count - len(questions), round(answered * twins_each))
    questions += [(pair, True) for pair in phrasing.some(twins, rest)]
    rng.shuffle(questions)
    passages = _Passages(pairs)
    return [passages.record(phrasing, pair, retrieved=retrieved) for pair, retrieved in questions]


def mingled(about_prose: Sequence[Record], count: int, seed: int) -> Iterator[Record]:
    """So many records, those about prose at random places among made-up ones."""
    # Shares of which several round up are one or two more than all.
    about_prose = about_prose[:count]
    rng = random.Random(f"mingled:{seed}")  # noqa: S311 - reproducible, not secret
    made_up = answers.generate(count - len(about_prose), seed)
    places = set(rng.sample(range(count), len(about_prose)))
    rest = iter(about_prose)
    for place in range(count):
        yield next(rest if place in places else made_up)


class _Passages:
    """The whole passage of each brief, ranked by BM25 for a question."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        whole: dict[str, Pair] = {}
        for pair in pairs:
            longest = whole.setdefault(brief(pair), pair)
            if len(pair.passage) > len(longest.passage):
                whole[brief(pair)] = pair
        self._passages = list(whole.values())
        self._articles: dict[str, list[Pair]] = {}
        for one in self._passages:
            self._articles.setdefault(article(one), []).append(one)
        self._answers = {pair.id: pair.answer for pair in pairs}
        self._index = bm25s.BM25(k1=K1, b=B)
        self._index.index(stems([f"{one.title}\n{one.passage}" for one in self._passages]), show_progress=False)

    def record(self, phrasing: Phrasing, pair: Pair, *, retrieved: bool) -> Record:
        """A question with its passages, best first; without its own where that was not retrieved."""
        titled = phrasing.chance(TITLED)
        room = phrasing.between(*CHARS) - (_size(pair, titled=titled) if retrieved else 0)
        others = self._others(phrasing, pair, phrasing.between(*AROUND) + (0 if retrieved else 1))
        entries: list[tuple[str, str]] = []
        rest: list[tuple[str, str]] = []
        for other in others:
            over = _size(other, titled=titled) - room
            if over > 0:
                # As in the gateway, the last one is shortened to fit.
                text = other.passage[: max(0, len(other.passage) - over)].rstrip()
                rest = [(other.title, text)] if len(text) >= MIN_REST else []
                break
            entries.append((other.title, other.passage))
            room = -over
        if retrieved:
            place = 0 if not entries or phrasing.chance(FIRST) else phrasing.between(1, len(entries))
            entries.insert(place, (pair.title, pair.passage))
        entries += rest
        titles, passages = zip(*entries, strict=True)
        answer = pair.answer if retrieved else ""
        return open_record(
            typed(phrasing, pair.question),
            phrasing.moment(),
            "answer" if answer else "unknown",
            passages,
            answer,
            (answer,) if answer else (),
            pattern=f"reading.{way(pair) if retrieved else 'lost'}",
            titles=titles if titled else (),
            group=f"prose:{article(pair)}",
        )

    def _others(self, phrasing: Phrasing, pair: Pair, count: int) -> list[Pair]:
        """Passages of other briefs that do not answer, those of the question's article first, then the nearest."""
        words = list(stems([pair.question])[0])
        scores = self._index.get_scores(words) if words else np.zeros(len(self._passages), np.float32)
        named = filters.names(pair.question)
        # "Who opened the meeting?" may be answered by any minutes: around it stands what has no such words.
        if named:
            near = np.argsort(-scores, kind="stable")[:NEAREST].tolist()
            pool = list(range(len(self._passages)))
        else:
            near, pool = [], np.flatnonzero(scores == 0).tolist()
        answer = self._answers.get(original(pair), "").lower()
        siblings = telling(pair, self._articles[article(pair)], answer)
        near_by = [other for other in siblings if phrasing.chance(SAME_ARTICLE)][:count]
        count -= len(near_by)
        chosen: set[int] = set()
        for _ in range(TRIES * count):
            if len(chosen) == count or not pool:
                break
            place = phrasing.pick(near if near and phrasing.chance(NEAR) else pool)
            if self._silent(self._passages[place], pair, answer, named):
                chosen.add(place)
        return [
            *near_by,
            *(self._passages[place] for place in sorted(chosen, key=lambda place: (-scores[place], place))),
        ]

    @staticmethod
    def _silent(other: Pair, pair: Pair, answer: str, named: Sequence[str]) -> bool:
        """Whether a passage holds neither the answer nor all that the question names."""
        text = f"{other.title}\n{other.passage}"
        return (
            article(other) != article(pair)
            and not (answer and answer in text.lower())
            and not (named and all(name in text for name in named))
        )


def _size(pair: Pair, *, titled: bool) -> int:
    """Characters that a passage takes in a prompt."""
    return len(pair.passage) + FENCE_CHARS + (len(pair.title) if titled else 0)


def typed(phrasing: Phrasing, question: str) -> str:
    """A question in careful or in typed spelling; most names keep their capitals."""
    if not phrasing.chance(TYPED):
        return question
    how = phrasing.weighted(TYPINGS)
    if how == "all lower":
        return question.lower().removesuffix("?" if phrasing.chance(0.5) else "")
    if how != "unmarked" and question.split(" ", 1)[0].lower() in _OPENERS:
        question = question[:1].lower() + question[1:]
    return question if how == "lower" else question.removesuffix("?")
