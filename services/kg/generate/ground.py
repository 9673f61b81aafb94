"""A program may only ask about entities that its question names.

Small models complete names from memory: "the lakers" becomes a player, an unknown ticker a known company. Facts about
an entity that nobody asked for are worse than none, since they come with a source. So each name must be found in the
question, in its words and not by its meaning; one that is partly there becomes the question's own words for it, any
other costs its statement.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import partial

from rapidfuzz import fuzz

from services.kg.errors import ParseError
from services.kg.generate.names import Change, Unnamed, refers, rename
from services.kg.language.catalogue import Catalogue
from services.kg.language.parse import parse_each
from services.kg.language.tree import Query, render

# Two spellings of a word; below it other words begin to pass ("dances" for "dancer" is 83).
SAME_WORD = 84.0
# Shorter words have no misspellings that could be told from other words.
MIN_FUZZY_CHARS = 5
# Share of a name's letters that must stand in the question for its words there to be taken instead: "lakers" of
# "los angeles lakers" is 0.375, "oramed" of "oramed pharmaceuticals" 0.286.
MIN_SHARE = 0.25
# Words that may stand between those of a name: "the lord of the rings film, the two towers".
GAP = 2
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b", re.IGNORECASE)
_OTHER_YEARS = re.compile(
    r"\byears?\b|\d(?:st|nd|rd|th)\b|\d0s\b|\b(?:decade|century|\w+ties)\b|'\d\d\b", re.IGNORECASE
)
_WEAK = frozenset(
    (
        *("a", "an", "and", "at", "by", "did", "do", "does", "for", "from", "how", "in", "inc", "is", "it", "its"),
        *("of", "on", "or", "s", "t", "the", "to", "was", "were", "what", "when", "which", "who", "with"),
    )
)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


def ground(program: str, query: str, catalogue: Catalogue, domain: str) -> str:
    """The program without what its question does not name; "none" when nothing is left.

    Statements that cannot be parsed stay as they are, so that whoever runs them can say what is wrong.
    """
    names = {name for function in catalogue.functions for name in (function.name, *function.aliases)}
    try:
        parsed = parse_each(program, names)
    except ParseError:
        return program
    change = Change(partial(named, query=query), partial(spelt, query=query), partial(says_year, query=query))
    kept: list[str] = []
    lost = linked = False
    for one in parsed:
        if one.statement is None:
            kept.append(one.text)
        elif isinstance(one.statement, Query):
            refers_back = refers(one.statement)
            linked |= refers_back
            if refers_back and lost:
                continue
            try:
                kept.append(render(rename(one.statement, change, catalogue, domain)))
            except Unnamed:
                lost = True
    # Small models say the same twice; where a later statement counts those before it, they stay.
    return "\n".join(kept if linked else dict.fromkeys(kept)) or "none"


def named(name: str, query: str) -> str | None:
    """The name if the question says it, the question's words for it if it says a part, else None."""
    words, said = _words(name), _words(query)
    if not words:
        return name if name.strip() and name.strip() in query else None
    if _says(words, said):
        return name
    return _part(words, said, query)


def spelt(text: str, query: str) -> str | None:
    """The question's own spelling of words that it says together, whatever stands between them."""
    words, said = [word.text for word in _words(text)], _words(query)
    for start in range(len(said) - len(words) + 1):
        run = said[start : start + len(words)]
        if words and [word.text for word in run] == words:
            return query[run[0].start : run[-1].end]
    return None


def says_year(year: str, query: str) -> bool:
    """Whether the question says a year, by its number or by another word; models know some years by heart."""
    return year in query or _OTHER_YEARS.search(query) is not None


def _says(words: list[_Word], said: list[_Word]) -> bool:
    """Whether all words stand near one another, or their letters stand there under another spacing."""
    squashed = "".join(word.text for word in words)
    if len(squashed) >= MIN_FUZZY_CHARS and squashed in _joined(said):
        return True
    strong = [word for word in words if word.text not in _WEAK] or words
    places = [[index for index, other in enumerate(said) if _same(word.text, other.text)] for word in strong]
    if not all(places):
        return False
    reach = len(words) + GAP
    return any(all(any(abs(index - first) <= reach for index in place) for place in places[1:]) for first in places[0])


def _part(words: list[_Word], said: list[_Word], query: str) -> str | None:
    """The longest run of the question's words that are words of the name."""
    best: tuple[int, int, int] | None = None
    start: int | None = None
    letters = 0
    for index, other in enumerate([*said, _Word("", 0, 0)]):
        strong = other.text not in _WEAK and any(_same(word.text, other.text) for word in words)
        weak = start is not None and other.text in _WEAK and any(word.text == other.text for word in words)
        if strong:
            start = index if start is None else start
            letters += len(other.text)
        elif not weak and start is not None:
            if best is None or letters > best[0]:
                best = (letters, start, index)
            start, letters = None, 0
    if best is None:
        return None
    share = best[0] / max(1, sum(len(word.text) for word in words if word.text not in _WEAK))
    if share < MIN_SHARE or best[0] < 3:
        return None
    run = said[best[1] : best[2]]
    while run and run[-1].text in _WEAK:
        run.pop()
    return query[run[0].start : run[-1].end]


def _same(word: str, other: str) -> bool:
    if word == other:
        return True
    if min(len(word), len(other)) < MIN_FUZZY_CHARS or word.isdigit() or other.isdigit():
        return False
    return fuzz.ratio(word, other) >= SAME_WORD


def _joined(words: list[_Word]) -> str:
    return "".join(word.text for word in words)


def _words(text: str) -> list[_Word]:
    """Words without case, accents and possessive endings, with their places in the text."""
    blanked = _POSSESSIVE.sub(lambda match: " " * len(match[0]), text)
    return [_Word(_fold(match[0]), match.start(), match.end()) for match in _WORD.finditer(blanked)]


def _fold(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
