"""Words by chance: alternatives in brackets, ways to ask, slips of the finger, dates and numbers as sources do."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from importlib.resources import files
from typing import TypeVar

from services.kit.text.times.calendar import PACIFIC
from services.kit.text.vocabulary import MONTH_NAMES

T = TypeVar("T")

# Shares of questions that people type without a mark at the end, capitalised, or with a slip of a finger.
UNMARKED, CAPITALISED, MISTYPED = 0.2, 0.06, 0.04
MONTHS = tuple(map(str.capitalize, MONTH_NAMES))
_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")


def sections(text: str) -> list[tuple[str, str]]:
    """Heading and body of each section of a text file, in its order; a heading stands behind `== `."""
    blocks = (block.partition("\n") for block in text.removeprefix("== ").split("\n== "))
    return [(heading, body) for heading, _, body in blocks]


def lines_of(package: str, name: str) -> dict[str, tuple[str, ...]]:
    """The lines of each section of a package's text file."""
    text = (files(package) / name).read_text(encoding="utf-8")
    return {heading: tuple(body.splitlines()) for heading, body in sections(text)}


_LINES = lines_of(__package__, "frames.txt")
# A noun phrase becomes a question in one of these frames.
FRAMES = _LINES["frames"]
# A whole question becomes an indirect one behind one of these, where it begins with a question word.
LEADS = ("",) * 6 + tuple(f"{lead} " for lead in _LINES["leads"])


@dataclass(frozen=True, slots=True)
class Phrasing:
    """All that an example draws by chance comes from here."""

    rng: random.Random = field(default_factory=random.Random)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.rng.randrange(len(options))]

    def some(self, options: Sequence[T], k: int) -> list[T]:
        return self.rng.sample(options, min(k, len(options)))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def weighted(self, weights: dict[T, float]) -> T:
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def say(self, template: str, **slots: object) -> str:
        """A template with each `[a|b]` settled, innermost first, then its slots filled."""
        while (match := _ALTERNATIVES.search(template)) is not None:
            chosen = self.pick(match.group(1).split("|"))
            template = template[: match.start()] + chosen + template[match.end() :]
        return template.format(**slots) if slots else template

    def ask(self, nouns: Sequence[str], whole: Sequence[str] = (), **slots: object) -> str:
        """A question from noun phrases ("the budget of {x}") or from whole questions ("how much did {x} cost")."""
        if whole and (not nouns or self.chance(0.5)):
            text = self.say(self.pick(whole), **slots)
            first = text.split(" ", 1)[0]
            return self.pick(LEADS) + text if first in _ASKING else text
        return self.say(self.pick(FRAMES), np=self.say(self.pick(nouns), **slots))

    def typed(self, query: str) -> str:
        """A question as people type it: mostly lower case, with a mark or without, now and then mistyped."""
        text = " ".join(query.split())
        if self.chance(MISTYPED):
            text = self._slip(text)
        text = text.lower() if not self.chance(CAPITALISED) else text[:1].upper() + text[1:]
        return text if self.chance(UNMARKED) or text.endswith("?") else text + "?"

    def _slip(self, text: str) -> str:
        words = text.split(" ")
        # Names stand in capitals still; they are not mistyped, since the answer may repeat them.
        places = [i for i, word in enumerate(words) if len(word) > 4 and word.isalpha() and word.islower()]
        if not places:
            return text
        at = self.pick(places)
        word = words[at]
        cut = self.between(1, len(word) - 2)
        swapped = word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]
        words[at] = swapped if self.chance(0.5) else word[:cut] + word[cut + 1 :]
        return " ".join(words)

    def moment(self) -> datetime:
        """When a question is asked."""
        day = date(2022, 6, 1) + timedelta(days=self.between(0, 1400))
        return datetime.combine(
            day, time(self.between(0, 23), self.between(0, 59), self.between(0, 59), tzinfo=PACIFIC)
        )

    def day(self, first: int = 1950, last: int = 2023) -> date:
        return date(self.between(first, last), self.between(1, 12), self.between(1, 28))

    def price(self) -> float:
        """Of a share: mostly between one and some hundred dollars, some of them pennies, with up to three places."""
        size = self.weighted({0.01: 0.4, 0.3: 0.8, 8.0: 3.0, 30.0: 4.0, 150.0: 2.5, 900.0: 0.5})
        return round(size * self.rng.uniform(0.4, 1.9), self.pick((2, 2, 3, 3, 1)))


_ASKING = frozenset({"what", "who", "when", "where", "which", "how"})
