"""Names in a question: every stretch of its words that is exactly a name in the graph, longest first.

One query looks all stretches up, so that a question of thirty words costs a few milliseconds.
"""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from sqlalchemy import Engine, bindparam, func, select

from services.kg.definition.folder import PACKAGED
from services.kg.language.catalogue import Catalogue, NameRules
from services.kg.store.names import name_table, normalise

MAX_WORDS = 60
# Words of the longest name; titles of films run to a dozen.
MAX_NAME_WORDS = 14
_WORD = re.compile(r"\S+")
POSSESSIVE = re.compile(r"['’](?:s)?$", re.IGNORECASE)
# Behind these a number is an amount, and in front of a percent sign.
_BOUND = re.compile(
    r"(?:\b(?:than|over|above|under|below|least|most|exactly)|\bbetween(?: \S+ and)?|[$€£])\s*$", re.IGNORECASE
)
_QUOTES = '"“”„«»'
_TRIM = " ,.?!;:()[]{}'’‘`" + _QUOTES
_JOINING = frozenset(("of", "and", "or", "by", "in", "for", "to", "with", "on", "at", "was", "is", "did", "does"))
_ARTICLES = frozenset(("the", "a", "an", "and", "or", "of"))


@cache
def asking_words() -> frozenset[str]:
    """Words that ask, in general and of each bundled domain; a stretch of nothing else names nobody."""
    domains = (f"domains/{one.name}/asking_words.txt" for one in (PACKAGED.place / "domains").iterdir())
    lists = (PACKAGED.lines(file) for file in domains if PACKAGED.has(file))
    return PACKAGED.lines("generate/asking_words.txt").union(*lists)


@dataclass(frozen=True, slots=True)
class Spot:
    """A stretch of a question that is a name."""

    text: str
    start: int
    end: int
    kind: str  # of the name; empty before it is looked up
    weight: float  # of its most popular owner
    words: int
    quoted: bool

    @property
    def place(self) -> tuple[int, int]:
        """Its first character and the one behind its last."""
        return self.start, self.end


_NAMES = (
    select(name_table.c.kind, name_table.c.norm, func.max(name_table.c.weight))
    .where(name_table.c.kind.in_(bindparam("kinds", expanding=True)))
    .where(name_table.c.norm.in_(bindparam("norms", expanding=True)))
    .group_by(name_table.c.kind, name_table.c.norm)
)


@dataclass(frozen=True, slots=True)
class Spotter:
    """Finds names in questions."""

    engine: Engine
    catalogue: Catalogue

    def spot(self, query: str, domain: str) -> list[Spot]:
        """A domain's names that do not overlap, in the order of the question; of one stretch perhaps several kinds.

        Blocks for milliseconds. Of two stretches that overlap the one in quotes or with more words is taken.
        """
        stretches: dict[str, list[Spot]] = {}
        for stretch in _stretches(query):
            stretches.setdefault(normalise(stretch.text), []).append(stretch)
        stretches.pop("", None)
        own = self.catalogue.domains[domain]
        kinds = own.kinds
        with self.engine.connect() as connection:
            rows = connection.execute(_NAMES, {"kinds": list(kinds), "norms": list(stretches)}).all()
        spots = [
            replace(one, kind=kind, weight=float(weight or 0))
            for kind, norm, weight in rows
            for one in stretches[norm]
            if one.quoted
            or (not own.bundled and _is_written_as_name(query, one))
            or (_can_be_name(one, kinds[kind].rules) and not _is_amount(query, one))
        ]
        return _apart(spots)


async def spots_in(query: str, domain: str, spotter: Spotter | None) -> tuple[Spot, ...]:
    """The names of a question in a domain; none without a spotter."""
    return () if spotter is None else tuple(await asyncio.to_thread(spotter.spot, query, domain))


def _apart(spots: Iterable[Spot]) -> list[Spot]:
    """Of names that overlap the one in quotes or with most words; of one stretch all kinds."""
    chosen: list[Spot] = []
    for one in sorted(spots, key=lambda spot: (-spot.quoted, -spot.words, -spot.weight, spot.start, spot.text)):
        overlapping = [other for other in chosen if other.start < one.end and one.start < other.end]
        if all(other.place == one.place and other.kind != one.kind for other in overlapping):
            chosen.append(one)
    return sorted(chosen, key=lambda spot: (spot.start, -spot.weight))


def _is_written_as_name(query: str, stretch: Spot) -> bool:
    """Whether a stretch of several words has capitals behind one that has none: "longer than Sunday Best"."""
    words = [word[:1].isupper() for word in stretch.text.split()]
    return len(words) > 1 and all(words) and query[: stretch.start].rpartition(" ")[0].rpartition(" ")[2].islower()


def _can_be_name(stretch: Spot, rules: NameRules) -> bool:
    """Whether a stretch can be a name of those rules and not just words of the question."""
    words = [word.strip(_TRIM).lower().removesuffix("'s") for word in stretch.text.split()]
    if all(word in asking_words() or not word for word in words):
        return False
    if len(words) == 1:
        word = words[0]
        if re.fullmatch(r"(?:19|20)\d\d", word) or (word.isdigit() and not rules.numbers):
            return False
        if word in rules.common_words or (rules.codes and len(word) < 2):
            return False
    # "of the wizard" is not a name though it is three words and a film; "100 years on" may end one.
    return words[0] not in _JOINING and words[-1] not in _ARTICLES and (len(words) > 3 or words[-1] not in _JOINING)


def _is_amount(query: str, stretch: Spot) -> bool:
    """Whether a stretch is a number that the question compares with: longer than 7, above 7 %."""
    figure = stretch.text.removesuffix("%")
    share = query[stretch.start + len(figure) :].lstrip().startswith("%")
    return figure.isdigit() and (share or _BOUND.search(query, 0, stretch.start) is not None)


def _stretches(query: str) -> Iterable[Spot]:
    """Stretches of up to so many words, of no kind yet; with and without a possessive ending."""
    words = list(_WORD.finditer(query))[:MAX_WORDS]
    for first in range(len(words)):
        for last in range(first, min(first + MAX_NAME_WORDS, len(words))):
            start, end = words[first].start(), words[last].end()
            raw = query[start:end]
            quoted = len(raw) > 2 and raw[0] in _QUOTES and raw.rstrip(" ,.?!;:)").rstrip("'s")[-1:] in _QUOTES
            text = raw.strip(_TRIM.replace("(", "").replace(")", "")) if raw.count("(") == raw.count(")") else ""
            text = text or raw.strip(_TRIM)
            at = start + raw.find(text)
            for form in dict.fromkeys((text, POSSESSIVE.sub("", text))):
                if form:
                    yield Spot(form, at, at + len(form), "", 0.0, last - first + 1, quoted)
