"""Words and quantities of a text, and searches among them: parts, names, sides of a choice."""

import itertools
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from lab.evaluator.judge.text import Word, key_of, segments, words_of
from services.kit.text.quantities import Quantity, find
from services.kit.text.vocabulary import blanked

# Words that stand between the words of one name, at most.
GAP_WORDS = 4

_SIDE_BREAK = re.compile(
    r"[,?:;]|\b(?:which|who|what|between|than|has|have|had|is|was|are|were|did|does|do|come|came|company|movie|film)\b"
)
_OR = re.compile(r"\s+or\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, its words outside quantities, and its quantities."""

    text: str
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]

    @property
    def content(self) -> list[Word]:
        return [word for word in self.words if word.content]

    @property
    def keys(self) -> set[str]:
        return {word.key for word in self.words}


def read(text: str) -> Reading:
    """The words and quantities of a cleaned text."""
    quantities = find(text)
    masked = text
    for quantity in quantities:
        masked = blanked(masked, quantity.start, quantity.end)
    return Reading(text, tuple(words_of(masked)), tuple(quantities))


def side_keys(text: str) -> set[str]:
    """The keys of a text's content words and, as `#3`, of its quantities."""
    reading = read(text)
    return {word.key for word in reading.content} | {f"#{item.value}" for item in reading.quantities}


def sides(question: str) -> tuple[set[str], set[str]] | None:
    """The distinguishing words of a question's two alternatives."""
    matches = list(_OR.finditer(question))
    if not matches:
        return None
    left = _SIDE_BREAK.split(question[: matches[-1].start()].rstrip(" ,"))[-1]
    right = _SIDE_BREAK.split(question[matches[-1].end() :])[0]
    one, two = (side_keys(text) for text in (left, right))
    one, two = one - two, two - one
    return (one, two) if one and two and max(len(one), len(two)) <= 8 else None


def first_side(text: str, sides: tuple[set[str], set[str]]) -> int | None:
    """Which side a text names first; None when neither, or both at once."""
    reading = read(text)
    marks = [(word.start, word.key) for word in reading.words]
    marks += [(item.start, f"#{item.value}") for item in reading.quantities]
    places = [[place for place, key in sorted(marks) if key in side] for side in sides]
    if re.match(r"\W*(?:both|neither|equal|same)\b", text.lower()):
        return None
    if not places[0] or not places[1]:
        return 0 if places[0] else 1 if places[1] else None
    if re.search(r"\b(?:and|&|or)\b", text[min(places[0][0], places[1][0]) : max(places[0][0], places[1][0])].lower()):
        return None
    return 0 if places[0][0] < places[1][0] else 1


def parts(reading: Reading) -> list[list[Word]]:
    """The content words of each part between commas and conjunctions."""
    parts = [
        [word for word in reading.words if start <= word.start < end and word.content]
        for start, end in segments(reading.text)
    ]
    return [part for part in parts if part]


def without(parts: Sequence[Sequence[Word]], keys: Set[str]) -> list[list[Word]]:
    """The parts without the words of these keys; parts of nothing else are left out."""
    rest = ([word for word in part if word.key not in keys] for part in parts)
    return [part for part in rest if part]


def attached(reading: Reading) -> Reading:
    """The reading with the numbers that stand right beside a word as words, `#3`: parts of names."""
    numbers = [
        Word(f"#{item.value.normalize():f}", item.start, item.end, capital=False)
        for item in reading.quantities
        if item.kind in ("number", "ordinal")
    ]
    return Reading(reading.text, tuple(sorted((*reading.words, *numbers), key=lambda word: word.start)), ())


def parts_with_numbers(reading: Reading, required: Sequence[Quantity]) -> list[list[Word]]:
    """As `parts`, with the required numbers that stand right behind or before a word."""
    starts = {item.start for item in required}
    whole = attached(reading)
    words = tuple(
        word
        for index, word in enumerate(whole.words)
        if not word.key.startswith("#")
        or (word.start in starts and any(_touches(whole, index, near) for near in (index - 1, index + 1)))
    )
    # A number alone is compared as a quantity.
    return [
        part for part in parts(Reading(reading.text, words, ())) if any(not word.key.startswith("#") for word in part)
    ]


def _touches(reading: Reading, index: int, near: int) -> bool:
    if not 0 <= near < len(reading.words):
        return False
    one, two = sorted((reading.words[index], reading.words[near]), key=lambda word: word.start)
    other = reading.words[near]
    return other.content and not other.key.startswith("#") and not reading.text[one.end : two.start].strip(" :")


def new_words(reading: Reading, question: Reading) -> list[Word]:
    """Content words that the question does not hold."""
    return [word for word in reading.content if word.key not in question.keys]


def near(keys: Sequence[str], words: Sequence[Word], span: int = 0) -> bool:
    """Whether all keys stand near each other, in any order; `span` is how far apart they stand in the gold answer."""
    required = set(keys)
    reach = max(len(keys), span) + GAP_WORDS
    return any(
        word.key in required and required <= {other.key for other in words[index : index + reach]}
        for index, word in enumerate(words)
    )


def joined(keys: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether the words have the same letters, split otherwise: Spider-Man, Spiderman."""
    letters = "".join(keys)
    for index in range(len(words)):
        for prefix in itertools.accumulate(word.key for word in words[index:]):
            if key_of(prefix) == key_of(letters):
                return True
            if len(prefix) > len(letters):
                break
    return False


def acronym(item: Sequence[Word], words: Sequence[Word], gold: Sequence[Word]) -> bool:
    """Whether one is the initials of the other, of three words at least."""
    first, last = item[0].start, item[-1].end
    whole = [word.key for word in gold if first <= word.start < last]
    forms = {"".join(key[0] for key in keys) for keys in ([word.key for word in item], whole) if len(keys) >= 3}
    if forms & {word.key for word in words}:
        return True
    if len(item) > 1:
        return False
    return any(expansion(item[0].key, run) for run in ([word for word in words if word.content], words))


def expansion(acronym: str, words: Sequence[Word]) -> Sequence[Word]:
    """The words in a row, three at least, whose initials these are; empty when there are none."""
    length = len(acronym)
    runs = (words[index : index + length] for index in range(len(words) - length + 1) if 3 <= length <= 6)
    return next((run for run in runs if "".join(word.key[0] for word in run) == acronym), ())


def neighbours(reading: Reading, quantity: Quantity) -> set[str]:
    """The content word that a quantity counts: the next one of its segment, or else the one before."""
    bounds = next((span for span in segments(reading.text) if span[0] <= quantity.start < span[1]), (0, 0))
    others = [item.start for item in reading.quantities if item is not quantity]
    content = [word for word in reading.content if bounds[0] <= word.start < bounds[1]]
    after = [word for word in content if word.start >= quantity.end]
    if after and not any(quantity.end <= start < after[0].start for start in others):
        return {after[0].key}
    before = [word for word in content if word.end <= quantity.start]
    if before and not any(before[-1].end <= start < quantity.start for start in others):
        return {before[-1].key}
    return set()


def rival_names(prediction: Reading, expected: set[str]) -> str:
    """A run of two or more capitalised words, none of them expected: another name than the answer."""
    run: list[Word] = []
    for word in (*prediction.words, Word("", len(prediction.text), len(prediction.text), capital=False)):
        adjacent = run and prediction.text[run[-1].end : word.start].strip() == ""
        fits = word.capital and word.content and word.key not in expected
        if fits and (adjacent or not run):
            run.append(word)
            continue
        if len(run) >= 2 and not re.search(r"\b(?:in|of|from|at|near)\s+$", prediction.text[: run[0].start].lower()):
            return prediction.text[run[0].start : run[-1].end]
        run = [word] if fits else []
    return ""


def written(reading: Reading, quantity: Quantity) -> str:
    """A quantity as the text has it."""
    return reading.text[quantity.start : quantity.end].strip()
