"""The words of a question beside the names of its facts: which way it compares, and which words nothing explains."""

import re
from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import cast

from services.kg.definition.folder import PACKAGED
from services.kg.settle.facts import Fact

NEGATED = re.compile(r"\b(?:not|never|neither|nor|except|without|excluding|besides|other than|\w+n't)\b")
AUXILIARY = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had)\b")
# Words that ask how much, and not which.
AMOUNT = re.compile(r"\bhow (?:much|many|old|long)\b|\b(?:difference|average|combined|sum)\b")
BOUND = re.compile(
    r"\b(?P<word>more than|over|above|at least|less than|fewer than|under|below|at most|exactly)\s+"
    r"(?P<sign>[$€£])?(?P<number>[0-9][0-9,]*(?:\.[0-9]+)?)\s*(?P<scale>thousand|million|billion|trillion|k|m|bn)?\b"
)
_DATED = re.compile(r"(?:\d{4}(?:-\d{2}){0,2}|\d{1,2}(?:st|nd|rd|th)?)")
# Words of time that look like a comparison.
_TEMPORAL_PHRASE = re.compile(
    r"\b(?:(?:the )?(?:last|first|latest|most recent|previous|past|next) (?:\d+ )?(?:trading )?"
    r"(?:days?|weeks?|months?|quarters?|years?|games?|match(?:es)?)|day before yesterday)\b"
)
_UNTIL = re.compile(
    r"\b(?:up )?(?:until|through|by|as of)(?: the)? (?:\d{1,2}(?:st|nd|rd|th) \w+ )?\(?(?P<year>(?:19|20)\d\d)\)?"
)
_WORD = re.compile(r"[a-z0-9$%&/'.-]*[a-z0-9%]")


@cache
def vocabulary(name: str) -> frozenset[str]:
    """A list of `english.yaml`."""
    return frozenset(cast(dict[str, str], PACKAGED.content("settle/english.yaml").data)[name].split())


class Wording:
    """A question with its facts in the order in which it names them."""

    def __init__(self, query: str, facts: Sequence[Fact]) -> None:
        self.query = query
        self.facts = tuple(sorted(facts, key=lambda fact: fact.at))
        rest = query
        for name in sorted({fact.spoken for fact in facts}, key=len, reverse=True):
            rest = re.sub(rf"(?<!\w){re.escape(name)}(?:'s|')?(?!\w)", " | ", rest)
        self.rest = rest = " ".join(rest.split())
        timeless = _UNTIL.sub(" ", rest) if self._ends_in_time() else rest
        self.windowed = all(fact.outcome.windows for fact in facts)
        self.words = set(_WORD.findall(timeless))
        self.compared = set(_WORD.findall(_TEMPORAL_PHRASE.sub(" ", timeless)))

    @property
    def alike(self) -> bool:
        """Whether all facts are of the same kind and of different entities."""
        kinds = {(fact.shape, type(fact.value)) for fact in self.facts}
        names, parts = {fact.name for fact in self.facts}, {fact.spoken for fact in self.facts}
        return len(kinds) == 1 and len(names) == len(parts) == len(self.facts)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What an answer follows from: the facts, and the bound that a single one is compared with."""
        bound = BOUND.search(self.rest) if len(self.facts) == 1 else None
        return (*(fact.words for fact in self.facts), *([bound[0]] if bound else []))

    @property
    def dated(self) -> bool:
        return isinstance(self.facts[0].value, date) or self.facts[0].key == "year"

    def unknown_words(self) -> set[str]:
        """Words that may change the question."""
        known = set[str]().union(*(vocabulary(name) for name in ("filler", "high", "low", "early", "late", "now")))
        for fact in self.facts:
            known |= fact.measure.words
        unknown = self.words - known
        bound = BOUND.search(self.rest)
        if bound and len(self.facts) == 1:
            unknown -= set(_WORD.findall(bound[0]))
        if len(self.facts) > 1 and self.dated:
            unknown -= {"before", "after"}
        if self.windowed:
            unknown = {word for word in unknown - vocabulary("times") if not _DATED.fullmatch(word)}
        return unknown

    def compares(self) -> bool:
        """Whether words of comparison stand beside a single value, which then is not the whole answer."""
        words = vocabulary("low") | vocabulary("early") | vocabulary("late") | (vocabulary("high") - {"top"})
        own = self.facts[0].measure.more | self.facts[0].measure.less
        return bool(self.compared & (words | own)) or bool(BOUND.search(self.rest))

    def direction(self) -> int:
        """1 where the question asks for the greater value, -1 for the lesser, 0 where that is not certain."""
        measure = self.facts[0].measure
        general = (vocabulary("late"), vocabulary("early")) if self.dated else (vocabulary("high"), vocabulary("low"))
        other = (vocabulary("high") | vocabulary("low")) if self.dated else (vocabulary("early") | vocabulary("late"))
        words = self.compared
        if self.dated and "recently" in words:
            words = words - {"more", "most"}
        own = measure.more | measure.less
        # "More populous" is one word of comparison, as "larger" is.
        if own - {"more", "most"} & words:
            words = words - ({"more", "most"} & own)
        if words & (other - own):
            return 0
        up = bool(words & ((general[0] - measure.less) | measure.more))
        down = bool(words & ((general[1] - measure.more) | measure.less))
        # The lowest high and the highest low ask for two things at once.
        if self.facts[0].key in ("high", "low") and words & {"highest", "lowest"}:
            return 0
        return 0 if up == down else 1 if up else -1

    def _ends_in_time(self) -> bool:
        """Whether "until 2019" takes nothing away: all rows are listed, and none is later."""
        until = _UNTIL.search(self.query)
        if until is None:
            return False
        last = int(until["year"])
        return all(
            len(fact.outcome.rows) == fact.outcome.total
            and all(isinstance(year := row.get("year"), int) and year <= last for row in fact.outcome.rows)
            for fact in self.facts
        )
