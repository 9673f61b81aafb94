"""Phrases of time in a question, each as long as the resolver understands it, and words of time beside them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import pairwise, product

from services.kit.text.times import Window
from services.kit.text.vocabulary import (
    LOOSE_COUNTS,
    MONTH,
    MONTH_NAMES,
    ORDINAL_ENDING,
    ORDINALS,
    SMALL,
    WEEKDAY,
    WEEKDAY_NAMES,
    alternatives,
)

_MONTH = f"(?:{MONTH})"
_WEEKDAY = f"(?:{alternatives(WEEKDAY_NAMES)})"
LAST = r"(?:last|previous|past|prior|recent|most recent|latest|this past|this|current)"
_DAY = r"(?:full )?(?:day of trading|trading day|trading session|market day|business day)"
_ONE = r"(?:first|second|third|fourth|last|final|1st|2nd|3rd|4th)"
YEAR = r"(?:18|19|20)\d\d"
_UNIT = r"(?:day|week|month|quarter|year|decade)"
_THIS = r"(?:this|the current) (?:week|month|quarter|year)"
_COUNT = rf"(?:\d{{1,3}}|{alternatives((*LOOSE_COUNTS, *SMALL))})(?: of)?"
_BOUND = r"(?:since|before|after|until|till|through|from|between|to|and|up to|prior to)"
_NUMBER = rf"(?:\d{{1,4}}|{_MONTH})"
# Times as people say them, longer first; each is checked with the resolver before it is used.
_SEEDS = (
    # 2024-05-06, 5/4/2024, 06-May-2023, 2019-2021; neither 24/7 nor a score of 3-1.
    rf"(?<![-/.#])(?=\S*(?:{YEAR}|[a-z]|/\d+/)){_NUMBER}(?:[-/]{_NUMBER}){{1,2}}(?![\d/-])",
    rf"{YEAR} ?[-–] ?{YEAR}",
    rf"{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? {YEAR})?(?!\d)",
    rf"\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? {YEAR})?",
    rf"{_ONE} (?:week|{_DAY}|day) (?:of|in|from) (?:the )?(?:{LAST} (?:month|year|quarter)|"
    rf"{_MONTH}(?: (?:of )?{YEAR})?|{YEAR})",
    rf"{_WEEKDAY} (?:of|from|in) (?:the )?{LAST} week",
    rf"(?:q[1-4]|h[12]|{_ONE} (?:quarter|qtr|half))(?: of| in|,)? (?:the year )?{YEAR}",
    rf"{_MONTH},? (?:of )?{YEAR}",
    r"(?:the )?day (?:before yesterday|after tomorrow)",
    r"yesterday|today|tonight|tomorrow",
    rf"so far {_THIS}|{_THIS} (?:so far|to date)|year to date|[wmqy]td",
    rf"{LAST} (?:{_DAY}|{_WEEKDAY})",
    rf"{LAST} (?:(?:{_COUNT} )?{_UNIT}s?|season)",
    rf"{_COUNT} {_UNIT}s? ago",
    rf"next {_WEEKDAY}",
    rf"{_WEEKDAY}",
    r"next (?:week|month|time|game|match)",
    rf"(?:in|during|for|of|over|throughout|year) {YEAR}(?![\d/-])",
    r"(?:18|19|20)\d0s",
)
# A year or a month alone is a time where something bounds it; a month without a year is none to narrow rows by.
_BOUNDED_SEEDS = (
    rf"{_BOUND} {YEAR}(?![\d/-])",
    rf"(?:in|during|for|of|over|throughout|{_BOUND}) (?:{alternatives(MONTH_NAMES)})(?! \d)",
    rf"on (?:{WEEKDAY})",
)
_TIMES, _BOUNDED = (
    re.compile(rf"(?<![^\W_])(?:{'|'.join(seeds)})(?![^\W\d_])") for seeds in (_SEEDS, (*_SEEDS, *_BOUNDED_SEEDS))
)
_LEADING = re.compile(rf"^(?:(?:in|on|during|for|of|over|throughout|year|{_BOUND}) (?:the )?|the )")

# Words that a phrase may go on with.
_PIECE = (
    rf"{MONTH}|(?:{WEEKDAY})s?|\d{{1,4}}(?:{ORDINAL_ENDING}|s)?|{_UNIT}s?|weekend|season|century|q[1-4]|h[12]|half|"
    r"last|previous|past|prior|recent|most|latest|this|current|next|coming|following|final|trading|business|full|"
    rf"of|in|the|{alternatives((*LOOSE_COUNTS, *SMALL, *ORDINALS))}"
)
_WORD = re.compile(r"[^\s,?!;:()\"_]+|_+")
_GOES_ON = re.compile(rf"(?:{_PIECE})(?:[-/](?:{_PIECE}))*\.?")
_JOINTS = frozenset(("between", "from", "to", "until", "till", "through", "and", "-"))
_BOUNDS = frozenset(("since", "before", "after", "up", "or", "later", "earlier", "onwards", "on", "prior", "than"))
# On business days "the end of May" is a day.
_EDGES = frozenset(("start", "beginning", "end"))
_NO_BEGINNING, _NO_END = frozenset(("of", "in", "the", "on", "a")), frozenset(("of", "in", "the", "a"))
_SHORT_NUMBER = re.compile(r"\d{1,2}")
_REACH = 6

# What leaves a time half understood where it stands before it, or behind it: the year before 2023, May or June 2023.
_UNREAD_BEFORE = re.compile(
    rf"\b(?:{_UNIT}s? (?:before|after)|(?:so far|to date)(?: in| of| during)?|"
    rf"{_MONTH}(?: (?:and|or|to|through|until|till|-)|[/,-]))\s?(?:the )?$"
)
_UNREAD_BEHIND = re.compile(r"^,? (?:so far|to date|but one|before last|ago|earlier)\b")
# A year alone, which whoever reads the times may take for a number.
_UNREAD = re.compile(rf"\b{_UNIT}s? (?:before|after) (?:the )?(?:year )?{YEAR}(?![\d-])")
# A Monday is none in particular.
_ANY = re.compile(r"\b(?:a|any|each|every) $")
# Where readings pass over words, the first two weeks of 2024, the first Monday of May 2024, and late 2024 besides.
_PASSED_BEFORE = re.compile(
    rf"\b(?:since|before|after|until|till|(?:on|in) or|(?:{_COUNT}|{_ONE}) {_UNIT}s? (?:of|in|from)|"
    rf"{_ONE} {_WEEKDAY} (?:of|in)) (?:the )?$"
)
_PASSED = re.compile(
    rf"\b{_UNIT} before last\b|(?<![\w/])\d{{1,2}}/(?:\d{{1,2}}/\d{{2}}|{YEAR})|{YEAR}/\d\d|"
    rf"\b(?:early|late|mid|middle of|half of|halves of)[ -](?:the )?(?:year )?(?:{YEAR}|{_MONTH}\b)"
)
_JOINED = re.compile(r"\W*(?:of|in|before|after)(?: the)?\W*")
# Monday or Tuesday; of years readings take several.
_LISTED = re.compile(r"\W*(?:or|and|than|vs\.?|versus)(?: (?:on|in))?(?: the)?\W*")

_BOUND_BEFORE = re.compile(r"\b(?:since|after|before|until|till|by) (?:the )?$")
_BOUND_OF_UNIT = re.compile(r"(?:before|after) ")
_WEEKDAY_FIRST = re.compile(_WEEKDAY)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """A phrase of a question that is a time, as the question says it."""

    text: str  # without the preposition and the article before it
    start: int  # its place in the question
    length: int  # with the preposition and the article
    before: int = 0  # characters of words before it that say no more: "the year 2023"
    behind: int = 0  # characters of such words behind it

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def whole(self) -> Span:
        """Its place with the words that say no more."""
        return self.start - self.before, self.end + self.behind


@dataclass(frozen=True)
class Times:
    """The times of a question.

    Attributes:
        words: the question in lower case, its names blanked.
        resolve: the window of a phrase; None where it names no time.
        bounded: whether "since" and "before" belong to their time; else both are read by whoever reads the times.
        business: whether the calendar is one of business days.
    """

    words: str
    resolve: Callable[[str], Window | None]
    bounded: bool = False
    business: bool = False

    @cached_property
    def phrases(self) -> list[TimePhrase]:
        """The times in order, none of which overlap."""
        phrases = [one for match in self._seeds if (one := self._phrase(match)) is not None]
        chosen: list[TimePhrase] = []
        for phrase in sorted(phrases, key=lambda one: (one.whole[0] - one.whole[1], -len(one.text), one.start)):
            if not any(_overlap(phrase.whole, one.whole) for one in chosen):
                chosen.append(phrase)
        return sorted(chosen, key=lambda one: one.start)

    @cached_property
    def unread(self) -> bool:
        """Whether words of time remain beside one of them, so that it is another time than theirs."""
        if _UNREAD.search(self.words) or any(map(self._is_half_read, self.phrases)):
            return True
        return self.bounded and self._is_passed_over()

    @cached_property
    def _seeds(self) -> list[re.Match[str]]:
        return list((_BOUNDED if self.bounded else _TIMES).finditer(self.words))

    @cached_property
    def _places(self) -> list[Span]:
        return [match.span() for match in _WORD.finditer(self.words)]

    def _phrase(self, seed: re.Match[str]) -> TimePhrase | None:
        """The longest phrase around a seed that is a time; the seed where that is the same time."""
        text = _LEADING.sub("", seed[0])
        window = self.resolve(text)
        if window is None:
            return None
        start, end = seed.end() - len(text), seed.end()
        for first, last in self._around(start, end):
            longer = self.resolve(self.words[first:last])
            if longer is None:
                continue
            if _days(longer) == _days(window):
                return TimePhrase(text, start, len(seed[0]), start - first, last - end)
            return TimePhrase(self.words[first:last], first, last - min(first, seed.start()))
        return TimePhrase(text, start, len(seed[0]))

    def _around(self, start: int, end: int) -> Iterator[Span]:
        """Places around one that words of time fill, longer ones first."""
        before = [place for place in self._places if place[1] <= start][::-1]
        behind = [place for place in self._places if place[0] >= end]
        firsts = [start, *(first for first, _ in self._going_on(before))]
        lasts = [end, *(last for _, last in self._going_on(behind))]
        for first, last in sorted(product(firsts, lasts), key=lambda place: place[0] - place[1]):
            if (first, last) != (start, end) and self._is_phrase(first, last):
                yield first, last

    def _going_on(self, places: list[Span]) -> Iterator[Span]:
        """The first of some places, as far as their words are words of time."""
        for first, last in places[:_REACH]:
            word = self.words[first:last]
            more = (*_JOINTS, *(_BOUNDS if self.bounded else ()), *(_EDGES if self.business else ()))
            if not _GOES_ON.fullmatch(word) and word not in more:
                return
            yield first, last

    def _is_phrase(self, first: int, last: int) -> bool:
        """Whether words may be one phrase, if the resolver reads them."""
        words = self.words[first:last].split()
        if words[0] in _NO_BEGINNING or words[-1] in _NO_END:
            return False
        # "From May" is in May or since then.
        if words[0] == "from" and words[-1] not in ("on", "onwards"):
            return False
        joints = _JOINTS.intersection(words)
        # "On 5 May 40 riders" is no year.
        if _SHORT_NUMBER.fullmatch(words[-1]) and len(words) > 1 and words[-2] not in joints:
            return False
        is_end = words[0] in joints - {"between"} or _BOUND_BEFORE.search(self.words[:first])
        if joints and is_end and not self.bounded:
            return False
        seeds = [one for one in self._seeds if _overlap(one.span(), (first, last))]
        if not all(first <= one.end() - len(_LEADING.sub("", one[0])) and one.end() <= last for one in seeds):
            return False
        # Two times that are whole are two ends.
        return self.bounded or len(seeds) < 2 or not joints

    def _is_half_read(self, phrase: TimePhrase) -> bool:
        """Whether words beside a phrase make it another time."""
        first, last = phrase.whole
        # The year before 2023, whether or not the phrase begins with "before".
        bound = _BOUND_OF_UNIT.match(self.words, first)
        before = self.words[: bound.end() if bound else first]
        if _WEEKDAY_FIRST.match(phrase.text) and _ANY.search(before):
            return True
        if self._outside(_UNREAD_BEFORE.search(before)) or _UNREAD_BEHIND.search(self.words[last:]):
            return True
        return self.bounded and _PASSED_BEFORE.search(self.words[:first]) is not None

    def _outside(self, match: re.Match[str] | None) -> bool:
        """Whether words are none of a time."""
        return match is not None and not any(one.whole[0] <= match.start() < one.whole[1] for one in self.phrases)

    def _is_passed_over(self) -> bool:
        """Whether readings would take one of several times, or pass over words that no phrase has: late 2023."""
        for one, other in pairwise(self.phrases):
            joint = self.words[one.whole[1] : other.whole[0]]
            is_list = _LISTED.fullmatch(joint) and not (one.text.isdigit() and other.text.isdigit())
            beside = not joint.strip(" ,") and not self._nested(one.text, other.text)
            if is_list or beside or _JOINED.fullmatch(joint):
                return True
        return any(map(self._outside, _PASSED.finditer(self.words)))

    def _nested(self, text: str, other: str) -> bool:
        """Whether one of two times lies in the other: "yesterday, February 27"."""
        one, two = self.resolve(text), self.resolve(other)
        if one is None or two is None or not (one.start and one.end and two.start and two.end):
            return False
        return (one.start <= two.start and two.end <= one.end) or (two.start <= one.start and one.end <= two.end)


def _days(window: Window) -> tuple[object, ...]:
    """What two windows have in common that are one; the first and the last record of one day are that day's."""
    one_day = window.start is not None and window.end == window.start + timedelta(days=1)
    return window.start, window.end, "window" if one_day else window.kind


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
