"""A question on its way to being understood: what has been explained is blanked, what is left has not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.kg.generate.rules.phrases import compiled, degrees, vocabulary
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.words import english

_TOKEN = re.compile(r"[^\W_][\w'’.&/-]*", re.UNICODE)
_NUMBER = r"[$€£]?(?P<number>\d[\d,]*(?:\.\d+)?)(?:\s*(?P<scale>thousand|million|billion|trillion|k|m|mn|bn)\b)?"
_BETWEEN = re.compile(rf"\bbetween {_NUMBER} and {_NUMBER.replace('number', 'last').replace('scale', 'last_scale')}")
_COMPARATIVE = r"(?:\w+er|more|less|better|worse)"


@dataclass(frozen=True, slots=True)
class Hit:
    """A stretch of the question that means something."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A number that rows must be above, below or at: an operator of the language and one or two numbers."""

    operator: str
    numbers: tuple[str, ...]
    hit: Hit
    comparative: str = ""


class Scan:
    """The words of a question that are not explained yet.

    Args:
        text: the question in lower case, names blanked by `_`.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def take(self, phrases: Sequence[str], *, all_of_them: bool = False) -> list[Hit]:
        """Blank the first place of a phrase, or every place; what it was."""
        return self.take_pattern(compiled(tuple(phrases)), all_of_them=all_of_them) if phrases else []

    def take_pattern(self, pattern: re.Pattern[str], *, all_of_them: bool = False) -> list[Hit]:
        hits = [Hit(match.start(), match.end(), match[0]) for match in pattern.finditer(self.text) if match[0].strip()]
        hits = hits if all_of_them else hits[:1]
        for hit in hits:
            self.blank(hit)
        return hits

    def blank(self, hit: Hit) -> None:
        # Names stay where they are: a phrase may speak of one, and the next may too.
        kept = "".join("_" if char == "_" else " " for char in self.text[hit.start : hit.end])
        self.text = self.text[: hit.start] + kept + self.text[hit.end :]

    def left(self, fillers: frozenset[str]) -> list[Hit]:
        """Words that nothing explains."""
        hits = [Hit(match.start(), match.end(), match[0].strip(".'’-")) for match in _TOKEN.finditer(self.text)]
        return [hit for hit in hits if bare(hit.text) not in fillers and len(hit.text) > 1]


def bare(word: str) -> str:
    return re.sub(r"['’]s?$", "", word.lower())


def fillers(words: Iterable[str]) -> frozenset[str]:
    """Words that ask nothing: those of general English, and a domain's own."""
    return frozenset(english().fillers.split()) | vocabulary(words)


def bounds(scan: Scan) -> list[Bound]:
    """Numbers that rows must be above or below, taken from the question."""
    found: list[Bound] = []
    for match in _BETWEEN.finditer(scan.text):
        hit = Hit(match.start(), match.end(), match[0])
        ends = (_scaled(match["number"], match["scale"]), _scaled(match["last"], match["last_scale"]))
        found.append(Bound("between", ends, hit))
    for phrases, strict, loose in ((english().over, "gt", "ge"), (english().under, "lt", "le")):
        words = rf"(?:{compiled(phrases).pattern}|(?P<comparative>{_COMPARATIVE}) than)\s+{_NUMBER}"
        for match in re.finditer(words, scan.text):
            hit = Hit(match.start(), match.end(), match[0])
            if any(hit.start < other.hit.end and other.hit.start < hit.end for other in found):
                continue
            comparative = match["comparative"] or ""
            if comparative and strict == "lt":
                continue
            inclusive = re.match(r"at (?:least|most)|no (?:less|more)|exactly", match[0]) is not None
            found.append(
                Bound(loose if inclusive else strict, (_scaled(match["number"], match["scale"]),), hit, comparative)
            )
    for bound in found:
        scan.blank(bound.hit)
    return found


def _scaled(number: str, scale: str | None) -> str:
    value = float(number.replace(",", "")) * 10 ** english().scales.get(scale or "", 0)
    return str(int(value)) if value == int(value) else str(value)


def superlatives(adjectives: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"={word}" if " " not in word else word for word in (degrees(one)[1] for one in adjectives))


def comparatives(adjectives: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"={word}" if " " not in word else word for word in (degrees(one)[0] for one in adjectives))


def names_blanked(question: Question) -> list[tuple[int, int]]:
    """Where names stand, each place once, in the order of the question."""
    return sorted({(spot.start, spot.end) for spot in question.spots})
