"""A question as a row of words, each of which is read once; words that are left over are not understood."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.words import english
from services.kg.generate.spans import Spot
from services.kit.text.numbers import numbers, ordinals

_WORD = re.compile(r"['’]s\b|[^\W_]+(?:[.'’&/-]\w+)*|_+|\.[a-z]{2,}|\S")
# Signs that join and part; none of them asks anything.
_SIGNS = re.compile(r"[^\w.]+|[.'’]s?")

# Words between a number or an adjective and what it belongs to.
BESIDE = 2
NEAR = 4

_ENDINGS = frozenset(("", "'s", "’s", "'", "’"))


@dataclass(frozen=True, slots=True)
class Range:
    """Words of a question: from the one with this index to before that."""

    first: int
    end: int

    def overlaps(self, other: "Range") -> bool:
        return self.first < other.end and other.first < self.end

    def within(self, other: "Range") -> bool:
        return other.first <= self.first and self.end <= other.end

    def leads_to(self, other: "Range") -> bool:
        """Whether it ends before the other begins, at most one word before."""
        return 0 <= other.first - self.end <= 1

    def near(self, other: "Range") -> int:
        """Words between the two; 0 where they touch."""
        return max(0, other.first - self.end, self.first - other.end)


@dataclass(frozen=True, slots=True)
class Number:
    """A number that the question says, with its scale, and where."""

    place: Range
    value: int | float
    ordinal: bool = False


@dataclass(frozen=True, slots=True)
class Mention:
    """A key or facet that words speak of. `counted`: by the noun that a number counts, "airports"."""

    place: Range
    key: str
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Superlative:
    """The end of an order: the first rows of it, or the one of a rank."""

    key: str
    descending: bool
    first: int = 0
    rows: int = 1
    value: bool = False  # whether a value is asked for and no row: the highest price
    amount: bool = False  # whether it is of an amount, which adds up: the most hours


@dataclass
class Tokens:
    """The words of a question, and which of them have been read."""

    question: Question  # its names are blanked
    fillers: frozenset[str]  # words that ask nothing
    read: set[int] = field(default_factory=set)
    doubt: bool = False  # whether the question says something that no reading may pass over
    # Phrase -> where it stands; the readings of one question share it.
    _places: dict[str, tuple[Range, ...]] = field(default_factory=dict)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(self.question.words)]

    def copy(self) -> "Tokens":
        """The same words, read as far; places of phrases, which no reading changes, are shared."""
        other = Tokens(self.question, self.fillers, set(self.read), _places=self._places)
        other.__dict__.update(_spans=self._spans, numbers=self.numbers)
        return other

    @property
    def count(self) -> int:
        """Words of the question."""
        return len(self._spans)

    def word(self, index: int) -> str:
        """The word with this index; empty outside of the question."""
        if not 0 <= index < self.count:
            return ""
        start, end = self._spans[index]
        return self.question.words[start:end]

    def negates(self, index: int) -> bool:
        """Whether the word with this index says that something is not so."""
        return self.word(index).replace("’", "'") in english().negating

    def index_before(self, place: Range, words: Collection[str], idle: Collection[int] = ()) -> int:
        """The index of the word before a place, apart from these words and those of `idle` indexes."""
        index = place.first - 1
        while index in idle or self.word(index) in words:
            index -= 1
        return index

    def begins(self, *words: str) -> bool:
        """Whether the question's first words are these."""
        return all(self.word(index) == word for index, word in enumerate(words))

    def word_before(self, place: Range) -> str:
        """The word before a place; empty at the beginning."""
        return self.word(place.first - 1)

    def text_of(self, place: Range) -> str:
        """The words as the question spells them."""
        return self.question.text[self._spans[place.first][0] : self._spans[place.end - 1][1]]

    def between(self, one: Range, other: Range) -> list[str]:
        """The words between two places."""
        return [self.word(index) for index in range(min(one.end, other.end), max(one.first, other.first))]

    def start(self, place: Range) -> int:
        """The first character of the words."""
        return self._spans[place.first][0]

    def take(self, *places: Range) -> None:
        """Mark the words as read."""
        for place in places:
            self.read.update(range(place.first, place.end))

    def free(self, place: Range) -> bool:
        """Whether none of the words has been read."""
        return self.read.isdisjoint(range(place.first, place.end))

    def is_read(self, place: Range) -> bool:
        """Whether all of the words have been read."""
        return self.read.issuperset(range(place.first, place.end))

    def find(self, phrases: Iterable[str]) -> list[Range]:
        """Where the phrases stand in words that are not read; of those that overlap the longest, in order."""
        return apart(filter(self.free, self._places_of(phrases)))

    def find_all(self, phrases: Iterable[str]) -> list[Range]:
        """As `find`, whether or not their words have been read."""
        return apart(self._places_of(phrases))

    def _places_of(self, phrases: Iterable[str]) -> set[Range]:
        return {place for phrase in phrases for place in self._find(phrase)}

    def _find(self, phrase: str) -> tuple[Range, ...]:
        if phrase not in self._places:
            spans = (match.span() for match in compiled((phrase,)).finditer(self.question.words))
            places = (self._exact(*span) for span in spans)
            self._places[phrase] = tuple(place for place in places if place is not None)
        return self._places[phrase]

    def find_joined(self, phrases: Iterable[str]) -> list[Range]:
        """As `find`, with phrases that overlap as one: "how many people" and "people live"."""
        joined: list[Range] = []
        for place in sorted(filter(self.free, self._places_of(phrases)), key=lambda one: (one.first, one.end)):
            if joined and place.first < joined[-1].end:
                joined[-1] = Range(joined[-1].first, max(joined[-1].end, place.end))
            else:
                joined.append(place)
        return joined

    def spread(self, words: Iterable[str], others: Collection[Range]) -> Range | None:
        """Where the first of a key's words stands that are said apart: "sold the fewest copies", copies sold."""
        places: list[Range] = []
        for word in words:
            place = next(iter(apart_from(self.find((word,)), others)), None)
            if place is None or (places and place.near(places[0]) > NEAR):
                return None
            places.append(place)
        return places[0]

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """Numbers in digits and words with their scales, and ordinals."""
        words = self.question.words
        numerals = [(one.start, one.end, _plain(one.value), getattr(one, "ordinal", False)) for one in numbers(words)]
        numerals += [(start, end, rank, True) for start, end, rank in ordinals(words)]
        placed = [(self._range(start, end), value, ordinal) for start, end, value, ordinal in numerals]
        return tuple(Number(place, value, ordinal) for place, value, ordinal in placed if place is not None)

    def names(self) -> list[Range]:
        """Where the question's names stand."""
        places = (self._range(spot.start, spot.end) for spot in self.question.spots)
        return list(dict.fromkeys(place for place in places if place is not None))

    def spots_at(self, place: Range) -> list[Spot]:
        """The names that stand there, perhaps of several kinds."""
        return [one for one in self.question.spots if self.place_of(one.start, one.end) == place]

    def times(self) -> dict[Range, str]:
        """The phrases of the question that are times, by their places in order."""
        return {self.place_of(one.start, one.end): one.text for one in self.question.times}

    def place_of(self, start: int, end: int) -> Range:
        """The words within these characters."""
        place = self._range(start, end)
        assert place is not None  # noqa: S101 - spots lie in the question
        return place

    def unread(self, *, joined: bool = False) -> list[Range]:
        """Runs of words that ask something and have not been read, without names; `joined` over dots: Dr. Weiss."""
        runs: list[Range] = []
        for index in range(len(self._spans)):
            word = self.word(index)
            is_filler = word in self.fillers and not self._is_mark(index)
            is_idle = is_filler or word[0] == "_" or _SIGNS.fullmatch(word) is not None
            if index in self.read or is_idle:
                continue
            dotted = joined and self.word(index - 1) == "."
            if runs and runs[-1].end in (index, index - dotted):
                runs[-1] = Range(runs[-1].first, index + 1)
            else:
                runs.append(Range(index, index + 1))
        return runs

    def _is_mark(self, index: int) -> bool:
        """Whether a word is the mark A and no article: "got an A", but not "Is It A Novel"."""
        place = Range(index, index + 1)
        return index > 0 and self.text_of(place) == "A" and self.text_of(Range(index - 1, index)).islower()

    def _exact(self, start: int, end: int) -> Range | None:
        """The words that are these characters; None where one of them is longer."""
        place = self._range(start, end) if start < end else None
        if place is None or self._spans[place.first][0] != start:
            return None
        behind = self.question.words[end : self._spans[place.end - 1][1]]
        return place if behind in _ENDINGS else None

    def _range(self, start: int, end: int) -> Range | None:
        inside = [index for index, (first, last) in enumerate(self._spans) if first < end and start < last]
        return Range(inside[0], inside[-1] + 1) if inside else None


def apart(places: Iterable[Range]) -> list[Range]:
    """Of places that overlap the longest; in order."""
    places = list(places)
    if len(places) < 2:
        return places
    chosen: list[Range] = []
    for place in sorted(places, key=lambda one: (one.first - one.end, one.first)):
        if not any(map(place.overlaps, chosen)):
            chosen.append(place)
    return sorted(chosen, key=lambda one: one.first)


def apart_from(places: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """The places that overlap none of the others."""
    others = list(others)
    return [one for one in places if not any(map(one.overlaps, others))]


def _plain(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
