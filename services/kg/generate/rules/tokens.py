"""A question as a row of words, each of which is read once: what a reading leaves over, it has not understood."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.question import Question
from services.kit.text.numbers import numbers, ordinals

_WORD = re.compile(r"['’]s\b|[^\W_]+(?:[.'’&/-][^\W_]+)*|_+|\.[a-z]{2,}|\S")
# Signs that join and part; none of them asks anything.
_SIGNS = re.compile(r"[^\w.]+|[.'’]s?")


@dataclass(frozen=True, slots=True)
class Range:
    """Words of a question: from the one with this index to before that."""

    first: int
    end: int

    def near(self, other: "Range") -> int:
        """Words between the two; 0 where they touch."""
        return max(0, other.first - self.end, self.first - other.end)


@dataclass(frozen=True, slots=True)
class Number:
    """A number that the question says, with its scale, and where."""

    place: Range
    value: int | float
    ordinal: bool = False


@dataclass
class Tokens:
    """The words of a question, and which of them have been read.

    Args:
        question: its names are blanked.
        fillers: words that ask nothing.
    """

    question: Question
    fillers: frozenset[str]
    read: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._text = self.question.words
        self._spans = [match.span() for match in _WORD.finditer(self._text)]

    def copy(self) -> "Tokens":
        return Tokens(self.question, self.fillers, set(self.read))

    def word(self, index: int) -> str:
        start, end = self._spans[index]
        return self._text[start:end]

    def said(self, place: Range) -> str:
        """The words as the question spells them."""
        return self.question.text[self._spans[place.first][0] : self._spans[place.end - 1][1]]

    def take(self, place: Range) -> None:
        self.read.update(range(place.first, place.end))

    def free(self, place: Range) -> bool:
        """Whether none of the words has been read."""
        return self.read.isdisjoint(range(place.first, place.end))

    def find(self, phrases: Iterable[str]) -> list[Range]:
        """Where the phrases stand in words that are not read; of those that overlap the longest, in order."""
        found = {
            place
            for phrase in phrases
            for match in compiled((phrase,)).finditer(self._text)
            if match.end() > match.start() and (place := self._range(*match.span())) is not None and self.free(place)
        }
        return apart(found)

    def numbers(self) -> Iterator[Number]:
        """Numbers in digits and words with their scales, and ordinals."""
        for one in numbers(self._text):
            place = self._range(one.start, one.end)
            if place is not None:
                yield Number(place, _plain(one.value * getattr(one, "multiple", 1)), getattr(one, "ordinal", False))
        for start, end, rank in ordinals(self._text):
            if (place := self._range(start, end)) is not None:
                yield Number(place, rank, True)

    def names(self) -> list[Range]:
        """Where the question's names stand."""
        places = (self._range(spot.start, spot.end) for spot in self.question.spots)
        return list(dict.fromkeys(place for place in places if place is not None))

    def place_of(self, start: int, end: int) -> Range:
        """The words within these characters."""
        place = self._range(start, end)
        assert place is not None  # noqa: S101 - spots lie in the question
        return place

    def unread(self) -> list[Range]:
        """Runs of words that ask something and have not been read; names are none of them."""
        runs: list[Range] = []
        for index in range(len(self._spans)):
            if index in self.read or self._idle(index):
                continue
            if runs and runs[-1].end == index:
                runs[-1] = Range(runs[-1].first, index + 1)
            else:
                runs.append(Range(index, index + 1))
        return runs

    def _idle(self, index: int) -> bool:
        word = self.word(index)
        return word in self.fillers or word[0] == "_" or _SIGNS.fullmatch(word) is not None

    def _range(self, start: int, end: int) -> Range | None:
        inside = [index for index, (first, last) in enumerate(self._spans) if first < end and start < last]
        return Range(inside[0], inside[-1] + 1) if inside else None


def apart(places: Iterable[Range]) -> list[Range]:
    """Of places that overlap the longest; in order."""
    chosen: list[Range] = []
    for place in sorted(places, key=lambda one: (one.first - one.end, one.first)):
        if all(place.end <= other.first or other.end <= place.first for other in chosen):
            chosen.append(place)
    return sorted(chosen, key=lambda one: one.first)


def nearest(place: Range, others: Sequence[Range]) -> Range | None:
    """The place with the fewest words between."""
    return min(others, key=place.near, default=None)


def _plain(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
