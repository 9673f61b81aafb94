"""A program may only ask about entities that its question names.

Small models complete names from memory: "the lakers" becomes a player, an unknown ticker a known company. Facts about
an entity that nobody asked for are worse than none, since they come with a source. So each name must stand in the
question, by its words and not by its meaning; a name that is partly there becomes the question's own words for it, any
other name costs its statement.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rapidfuzz import fuzz

from services.kg.errors import ParseError
from services.kg.generate.names import Renaming, Unnamed, literals, refers
from services.kg.generate.spans import Spot
from services.kg.language.catalogue import Catalogue
from services.kg.language.parse import parse_each
from services.kg.language.tree import Query, render
from services.kit.text.folding import without_accents

# Two spellings of a word; below it other words begin to pass ("dances" for "dancer" is 83).
SAME_WORD = 84.0
# Shorter words have no misspellings that could be told from other words.
MIN_FUZZY_CHARS = 5
# Letters that begin a word, and of the shortest that begins one.
BEGINNING = 4
LEAST_LETTERS = 3
LEAST_INITIALS = 3
# Share of a name's letters that must stand in the question for its words there to be taken instead: "lakers" of
# "los angeles lakers" is 0.375, "oramed" of "oramed pharmaceuticals" 0.286.
MIN_SHARE = 0.25
# Words that may stand between those of a name: "the lord of the rings film, the two towers".
GAP = 2
# Two sides of a comparison stand this near: " or the movie ".
MAX_BETWEEN = 25
_VERSUS = re.compile(r"\bor\b|\bvs\b|\bversus\b|\bthan\b|\bcompared\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
# Words that a year may stand for: "last year", "61st grammy", "the nineties", "on monday".
_OTHER_YEARS = re.compile(
    r"\b(?:last|this|past|previous|next|current|recent)\s+(?:\w+\s+)?years?\b|"
    r"\byears? (?:ago|before|after|earlier|later)\b|"
    r"\d(?:st|nd|rd|th)\b|\d0s\b|\b(?:decades?|century|\w+ties)\b|'\d\d\b|\b(?:yesterday|today|tomorrow|days?|weeks?|"
    r"months?|quarters?|q[1-4]|\w+day|seasons?)\b",
    re.IGNORECASE,
)
WEAK_WORDS = frozenset(
    (
        *("a", "an", "and", "at", "by", "did", "do", "does", "for", "from", "how", "in", "inc", "is", "it", "its"),
        *("of", "on", "or", "s", "t", "the", "to", "was", "were", "what", "when", "which", "who", "with"),
    )
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word without case and accents, and where it stands."""

    text: str
    start: int
    end: int
    is_capital: bool = False


def ground(program: str, query: str, catalogue: Catalogue, domain: str, spots: Sequence[Spot] = ()) -> str:
    """The program without statements about what its question does not name; "none" when nothing is left.

    Statements that cannot be parsed stay as they are, so that whoever runs them can say what is wrong. Names in the
    question (`spots`) mend a name that is cut or runs on, and complete a comparison of one side.
    """
    try:
        parsed = parse_each(program, catalogue.spellings)
    except ParseError:
        return program
    extent, years = partial(extent_of, query=query, spots=spots), partial(says_year, query=query)
    renaming = Renaming(catalogue, domain, extent, partial(spelt, query=query), years)
    statements: list[str] = []
    queries: list[Query] = []
    refused = linked = False
    for one in parsed:
        if one.statement is None:
            statements.append(one.text)
        elif isinstance(one.statement, Query):
            refers_back = refers(one.statement)
            linked |= refers_back
            if refers_back and refused:
                continue
            try:
                queries.append(renaming.query(one.statement))
                statements.append(render(queries[-1]))
            except Unnamed:
                refused = True
    if not linked and len(set(statements)) == len(queries) == 1:
        names = literals(statements[0], catalogue, domain)
        if len(names) == 1 and (other := other_side(names[0], query, spots)):
            statements.append(render(Renaming(catalogue, domain, lambda _name, _kinds: other).query(queries[0])))
    # Small models repeat themselves; where a later statement counts those before it, they stay.
    return "\n".join(statements if linked else dict.fromkeys(statements)) or "none"


def named(name: str, query: str) -> str | None:
    """The name if the question says it, in words or by its initials (AGM), else its words for a part of it, or None."""
    words, query_words = words_of(name), words_of(query)
    if not words:
        return name if name.strip() and name.strip() in query else None
    initials = "".join(word.text[0] for word in words if word.text.isalpha() and word.text not in WEAK_WORDS)
    if len(initials) >= LEAST_INITIALS and re.search(rf"\b{re.escape(initials.upper())}s?\b", query):
        return name
    return name if _says(words, query_words) else _part(words, query_words, query)


def other_side(name: str, query: str, spots: Sequence[Spot]) -> str | None:
    """The only other name of its kind that the question compares this one with, by "or" or the like; else None."""
    sides = [spot for spot in spots if _texts(spot.text) == _texts(name)]
    others = [spot for spot in spots if sides and spot.kind == sides[0].kind and spot not in sides]
    if len(sides) != 1 or len(others) != 1:
        return None
    first, second = sorted((sides[0], others[0]), key=lambda spot: spot.start)
    between = query[first.end : second.start]
    return others[0].text if len(between) <= MAX_BETWEEN and _VERSUS.search(between) else None


def extent_of(name: str, kinds: Sequence[str], query: str, spots: Sequence[Spot]) -> str | None:
    """The name as the question says it, in the extent in which the graph knows it; None where it is not said."""
    own = named(name, query)
    if own is None:
        return None
    words = _texts(own)
    pairs = ((spot, _texts(spot.text)) for spot in spots if spot.kind in kinds)
    fitting = [
        (spot, other) for spot, other in pairs if _run(words, other) is not None or _run(other, words) is not None
    ]
    # The graph's own name stays, and so does one that several names could stand for.
    if len(fitting) != 1 or fitting[0][1] == words:
        return own
    return fitting[0][0].text


def _run(words: list[str], others: list[str]) -> int | None:
    """Where the words stand together in others; None where they do not, or there are none."""
    starts = range(len(others) - len(words) + 1) if words else ()
    return next((start for start in starts if others[start : start + len(words)] == words), None)


def spelt(text: str, query: str) -> str | None:
    """The question's own spelling of words that it says together, whatever stands between them."""
    words, query_words = _texts(text), words_of(query)
    start = _run(words, [word.text for word in query_words])
    if start is None:
        return None
    return query[query_words[start].start : query_words[start + len(words) - 1].end]


def says_year(text: str, query: str) -> bool:
    """Whether the question says the years of a text, by number or by another word; models know some by heart."""
    # "After 2010" is from 2011 on, and films of 2010 have their Oscars in 2011.
    near = {int(year) + shift for year in _YEAR.findall(query) for shift in (-1, 0, 1)}
    return all(int(year) in near for year in _YEAR.findall(text)) or _OTHER_YEARS.search(query) is not None


def _says(words: list[Word], query_words: list[Word]) -> bool:
    """Whether all words stand near one another, or their letters stand there under another spacing."""
    squashed = "".join(word.text for word in words)
    if len(squashed) >= MIN_FUZZY_CHARS and squashed in "".join(word.text for word in query_words):
        return True
    strong = [word for word in words if word.text not in WEAK_WORDS] or words
    places = [
        [index for index, other in enumerate(query_words) if is_same_word(word.text, other.text)] for word in strong
    ]
    if not all(places):
        return False
    reach = len(words) + GAP
    return any(all(any(abs(index - first) <= reach for index in place) for place in places[1:]) for first in places[0])


def _part(words: list[Word], query_words: list[Word], query: str) -> str | None:
    """The longest run of the question's words that are words of the name; None where that is too little of it."""
    best: tuple[int, int, int] | None = None
    start: int | None = None
    letters = 0
    for index, other in enumerate([*query_words, Word("", 0, 0)]):
        strong = other.text not in WEAK_WORDS and any(is_same_word(word.text, other.text) for word in words)
        weak = start is not None and other.text in WEAK_WORDS and any(word.text == other.text for word in words)
        if strong:
            start = index if start is None else start
            letters += len(other.text)
        elif not weak and start is not None:
            if best is None or letters > best[0]:
                best = (letters, start, index)
            start, letters = None, 0
    if best is None:
        return None
    share = best[0] / max(1, sum(len(word.text) for word in words if word.text not in WEAK_WORDS))
    if share < MIN_SHARE or best[0] < 3:
        return None
    run = query_words[best[1] : best[2]]
    while run and run[-1].text in WEAK_WORDS:
        run.pop()
    return query[run[0].start : run[-1].end]


def is_same_word(word: str, other: str) -> bool:
    """Whether two words are one, perhaps misspelt."""
    if word == other:
        return True
    if min(len(word), len(other)) < MIN_FUZZY_CHARS or word.isdigit() or other.isdigit():
        return False
    return fuzz.ratio(word, other) >= SAME_WORD


def beginnings_of(name: str) -> list[str]:
    """Beginnings that say a key's words, whatever their endings: trained in first aid, by `first_aider`."""
    return [part[:BEGINNING] for part in name.split("_") if len(part) >= LEAST_LETTERS]


def words_of(text: str) -> list[Word]:
    """Words without case, accents and possessive endings, with their places in the text."""
    words = _WORD.finditer(_POSSESSIVE.sub(lambda match: " " * len(match[0]), text))
    return [Word(without_accents(word[0].casefold()), word.start(), word.end(), word[0][0].isupper()) for word in words]


def _texts(text: str) -> list[str]:
    """As `words_of`, the words alone."""
    return [word.text for word in words_of(text)]
