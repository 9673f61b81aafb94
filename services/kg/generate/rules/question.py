"""A question as rules see it: its words, its names, its times."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise

from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.times import LAST, YEAR, TimePhrase, Times
from services.kg.generate.rules.words import Editions
from services.kg.generate.spans import Spot, asking_words
from services.kit.text.times import Calendar, UnknownTime, Window, resolve_time

# "the most recent day that the market was open for trading"
_OPEN_DAY = re.compile(rf"{LAST} day (?:that |when |on which )?(?:the )?(?:\w+ )?market was open", re.IGNORECASE)
_YEARS = re.compile(rf"(?<![\d-]){YEAR}(?![\d-])")
# The other side of "x or y": up to the sentence's joint, or the words behind.
_OTHER_BEFORE = re.compile(
    r"(?:^|,|:|\bbetween|\bis|\bare|\bdid|\bdo|\bdoes)\s+([^,:?]{1,60}?)\s+(?:or|vs\.?|versus)\s+(?:the\s+)?[\"']?$",
    re.IGNORECASE,
)
_OTHER_AFTER = re.compile(
    r"^[\"']?\s*,?\s*(?:or|vs\.?|versus|compared to)\s+(?:the\s+)?([^,?]{1,60}?)\s*(?:\?|,|$|\b(?:in|on|"
    r"at|by|now|today)\b)",
    re.IGNORECASE,
)
_EDGE = " ,.?!;:\"'“”"
# Words of a question that names have in their middle.
_INSIDE = frozenset(("of", "the", "and", "in", "for", "on", "a", "to", "with", "at"))
_OR = re.compile(r"\bor\b|\bvs\.?\b|\bversus\b|\bthan\b|\bcompared (?:to|with)\b|\band\b|,")


@dataclass(frozen=True)
class Question:
    """A question with its names."""

    text: str  # on one line, in its own case
    calendar: Calendar  # what times mean
    query_time: datetime  # when it was asked
    spots: tuple[Spot, ...] = field(default=())  # its names
    editions: Editions | None = None  # yearly events that it may number

    @cached_property
    def words(self) -> str:
        """The question in lower case, with what names it blanked: only its own words choose a function."""
        return self._blanked(self.spots).lower()

    def _blanked(self, spots: Iterable[Spot]) -> str:
        text = self.text
        for spot in spots:
            text = text[: spot.start] + "_" * (spot.end - spot.start) + text[spot.end :]
        return text

    def says(self, phrases: tuple[str, ...]) -> bool:
        """Whether one of the phrases stands there; never without any."""
        return compiled(phrases).search(self.words) is not None

    def captures(self, phrases: tuple[str, ...], names: Sequence[str] = ()) -> str:
        """The words that a phrase's `<text>` stands for, none of the `names` among them; empty when no phrase fits."""
        text = self._blanked(spot for spot in self.spots if spot.text in names)
        for phrase in phrases:
            if match := compiled((phrase,)).search(text):
                return str(match["value"]).strip(_EDGE)
        return ""

    def names(self, *kinds: str) -> list[str]:
        """Names of those kinds in the order of the question, each once."""
        return list(dict.fromkeys(spot.text for spot in self.spots if spot.kind in kinds))

    @cached_property
    def compares(self) -> bool:
        """Whether several of its names stand beside each other."""
        places = sorted({(spot.start, spot.end) for spot in self.spots})
        between = (self.text[end:start].lower() for (_, end), (start, _) in pairwise(places))
        return any(len(words) < 40 and _OR.search(words) for words in between)

    def sides(self, *kinds: str) -> list[str]:
        """Names of those kinds, and where two things are compared of which the graph knows one, the other beside it."""
        names = self.names(*kinds)
        spots = [spot for spot in self.spots if spot.kind in kinds]
        if len(names) != 1 or not spots:
            return names
        before, after = self.text[: spots[0].start], self.text[spots[0].end :]
        if match := _OTHER_BEFORE.search(before):
            return [match[1].strip(_EDGE), *names]
        if match := _OTHER_AFTER.search(after):
            return [*names, match[1].strip(_EDGE)]
        return names

    @cached_property
    def years(self) -> list[int]:
        """Years that it says, or that its numbers of yearly events stand for."""
        years = [int(match[0]) for match in _YEARS.finditer(self.words)]
        if not years and self.editions is not None:
            numbered = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)\b\W+(?:{compiled(self.editions.words).pattern})")
            years = [int(match[1]) + self.editions.before for match in numbered.finditer(self.words)]
        return years

    @cached_property
    def time(self) -> str:
        """Its longest phrase that is a time, with "since" or "before" that bounds it; empty when there is none."""
        if _OPEN_DAY.search(self.words):
            return "last trading day"
        longest = max(self._bounded.phrases, key=lambda one: one.length, default=None)
        return longest.text if longest is not None else ""

    @property
    def times(self) -> list[TimePhrase]:
        """All its phrases that are times, in order, without what bounds them."""
        return self._times.phrases

    @property
    def is_half_read(self) -> bool:
        """Whether words beside one of its times make it another one: "the year before 2023"."""
        return self._times.unread

    @property
    def is_passed_over(self) -> bool:
        """As `is_half_read`, for readings, which read "since" and "before" with the time and pass over other words."""
        return self._bounded.unread

    @cached_property
    def _times(self) -> Times:
        return Times(self.words, self.window_of, business=bool(self.calendar.business_day))

    @cached_property
    def _bounded(self) -> Times:
        return replace(self._times, bounded=True)

    def window_of(self, text: str) -> Window | None:
        """The window of a phrase when it is asked; None where it names no time."""
        if text not in self._windows:
            try:
                self._windows[text] = resolve_time(text, self.query_time, self.calendar)
            except UnknownTime:
                self._windows[text] = None
        return self._windows[text]

    @cached_property
    def _windows(self) -> dict[str, Window | None]:
        """Phrases that were looked up."""
        return {}

    @cached_property
    def window(self) -> bool:
        """Whether its time is of several days."""
        if not self.time:
            return False
        window = resolve_time(self.time, self.query_time, self.calendar)
        return window.kind == "window" and window.granularity not in ("instant", "day")

    def guess(self, after: tuple[str, ...] = (), strip: tuple[str, ...] = ()) -> str:
        """A name that the graph perhaps spells otherwise: the longest run of words that ask nothing.

        It stands behind one of the phrases `after`, and ends before one of `strip`.
        """
        text = self.text
        if after and (match := compiled(after).search(text)):
            text = text[match.end() :]
        runs: list[list[str]] = [[]]
        for word in re.findall(r"\S+", text):
            bare = word.strip(" ,.?!;:\"'").lower()
            plain = bare.removesuffix("'s").removesuffix("’s")
            if plain in asking_words() or re.fullmatch(r"(?:19|20)\d\d(?:-\d\d)*", plain):
                if runs[-1] and plain in _INSIDE:
                    runs[-1].append(word)
                else:
                    runs.append([])
            else:
                runs[-1].append(word)
                if bare != plain or word[-1] in ",?":
                    runs.append([])
        for run in runs:
            while run and run[-1].strip(_EDGE).lower() in _INSIDE:
                run.pop()
        best = max(runs, key=lambda run: sum(map(len, run)))
        name = re.sub(r"['’]s$", "", " ".join(best).strip(_EDGE))
        if strip:
            name = re.sub(rf"\s+(?:{compiled(strip).pattern})$", "", name, flags=re.IGNORECASE)
        return name
