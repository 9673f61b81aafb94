"""A text taken apart into words and quantities, and what is looked for among them: parts, names, sides of a choice."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lab.evaluator.judge.text import Word, key_of, segments, words_of
from services.kit.text.quantities import Quantity, find

# Words that stand between the words of one name, at most.
GAP_WORDS = 4

_SIDE_BREAK = re.compile(
    r"[,?:;]|\b(?:which|who|what|between|than|has|have|had|is|was|are|were|did|does|do|come|came|company|movie|film)\b"
)
_OR = re.compile(r"\s+or\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text taken apart: its words outside quantities, and its quantities."""

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
    """Take a cleaned text apart."""
    quantities = find(text)
    masked = text
    for quantity in quantities:
        masked = masked[: quantity.start] + " " * (quantity.end - quantity.start) + masked[quantity.end :]
    return Reading(text, tuple(words_of(masked)), tuple(quantities))


def side_keys(text: str) -> set[str]:
    reading = read(text)
    return {word.key for word in reading.content} | {f"#{item.value}" for item in reading.quantities}


def sides(asked: str) -> tuple[set[str], set[str]] | None:
    """The distinguishing words of a question's two alternatives."""
    matches = list(_OR.finditer(asked))
    if not matches:
        return None
    match = matches[-1]
    left = _SIDE_BREAK.split(asked[: match.start()].rstrip(" ,"))[-1]
    right = _SIDE_BREAK.split(asked[match.end() :])[0]
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
    parts = [
        [word for word in reading.words if start <= word.start < end and word.content]
        for start, end in segments(reading.text)
    ]
    return [part for part in parts if part]


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
    kept = [
        word
        for index, word in enumerate(whole.words)
        if not word.key.startswith("#")
        or (word.start in starts and any(_touches(whole, index, near) for near in (index - 1, index + 1)))
    ]
    # A number alone is compared as a quantity.
    return [
        part
        for part in parts(Reading(reading.text, tuple(kept), ()))
        if any(not word.key.startswith("#") for word in part)
    ]


def _touches(reading: Reading, index: int, near: int) -> bool:
    if not 0 <= near < len(reading.words):
        return False
    one, two = sorted((reading.words[index], reading.words[near]), key=lambda word: word.start)
    other = reading.words[near]
    return other.content and not other.key.startswith("#") and not reading.text[one.end : two.start].strip(" :")


def names(reading: Reading, asked: Reading) -> list[Word]:
    """Content words that the question does not hold."""
    return [word for word in reading.content if word.key not in asked.keys]


def within(keys: Sequence[str], words: Sequence[Word], span: int = 0) -> bool:
    """Whether all keys stand near each other, in any order; `span` is how far apart they stand in the gold answer."""
    wanted = set(keys)
    reach = max(len(keys), span) + GAP_WORDS
    return any(
        word.key in wanted and wanted <= {other.key for other in words[index : index + reach]}
        for index, word in enumerate(words)
    )


def joined(keys: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether the same letters stand there, split into words otherwise: Spider-Man, Spiderman."""
    wanted = "".join(keys)
    for index in range(len(words)):
        joined = ""
        for word in words[index:]:
            joined += word.key
            if key_of(joined) == key_of(wanted):
                return True
            if len(joined) > len(wanted):
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
    """The words in a row of which these are the initials, three at least; none when there are none."""
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


def rival_names(said: Reading, known: set[str]) -> str:
    """A run of two or more capitalised words of which none is known: another name than the answer."""
    run: list[Word] = []
    for word in (*said.words, Word("", len(said.text), len(said.text), capital=False)):
        adjacent = run and said.text[run[-1].end : word.start].strip() == ""
        if word.capital and word.content and word.key not in known and (adjacent or not run):
            run.append(word)
            continue
        if len(run) >= 2 and not re.search(r"\b(?:in|of|from|at|near)\s+$", said.text[: run[0].start].lower()):
            return said.text[run[0].start : run[-1].end]
        run = [word] if word.capital and word.content and word.key not in known else []
    return ""


def shown(reading: Reading, quantity: Quantity) -> str:
    return reading.text[quantity.start : quantity.end].strip()
