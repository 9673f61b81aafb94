"""Phrases in people's words, and the patterns that find them in a question.

A phrase is words with white space between them, in lower case. A word of a phrase stands for its regular inflections:
`release` finds releases, released, releasing. More is said by a few signs:

    =shot            exactly this word
    direct*          any word that begins so
    (film|movie)     one of these, each perhaps of several words
    the~             perhaps
    (role of)~       perhaps these words
    ...              any words between, or none
    ^ who            the question begins so
    _                a name that the graph knows
    <n>              a number
    <text>           up to six words that are taken over as a value; ends at `in`, `from`, `of` or the question's end
"""

import re
from collections.abc import Iterable
from functools import cache

MAX_CHARS = 300
# Words of a closed class have no inflections; short ones would find others.
_FIXED = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "of",
        "in",
        "on",
        "at",
        "by",
        "for",
        "to",
        "from",
        "with",
        "as",
        "than",
        "that",
        "this",
        "which",
        "what",
        "who",
        "whom",
        "whose",
        "how",
        "when",
        "where",
        "why",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "not",
        "no",
        "it",
        "its",
        "they",
        "their",
        "he",
        "she",
        "his",
        "her",
        "we",
        "you",
        "i",
        "any",
        "all",
        "both",
        "each",
        "more",
        "most",
        "less",
        "least",
        "up",
        "down",
        "out",
        "off",
        "over",
        "under",
        "born",
    ]
)
_TOKEN = re.compile(r"\s+|(?P<token>\.\.\.|<n>|<text>|\)~|[()|^]|=?[^\s()|<>^]+)")
_WORD = re.compile(r"(?P<exact>=?)(?P<word>[^*~]+?)(?P<open>\*?)(?P<perhaps>~?)")
_VOWELS = "aeiou"
# Shorter words are no nouns or verbs that a domain speaks of.
MIN_INFLECTED = 3
# Verbs whose past is no regular one.
_VERBS = {
    line.split()[0]: tuple(line.split()[1:])
    for line in """\
        beat beaten
        become became
        begin began begun
        bring brought
        build built
        buy bought
        come came
        cost
        die died dying dies
        draw drew drawn
        fall fell fallen
        fight fought
        find found
        fly flew flown
        get got gotten
        give gave given
        go went gone goes
        grow grew grown
        hit
        hold held
        keep kept
        lead led
        leave left
        lie lay lain lying
        lose lost
        make made
        meet met
        pay paid
        put
        rise rose risen
        run ran
        see saw seen
        sell sold
        shoot shot
        show shown showed
        sing sang sung
        speak spoke spoken
        spend spent
        split
        stand stood
        take took taken
        teach taught
        tell told
        think thought
        wear wore worn
        win won
        write wrote written""".splitlines()
}
_GAP = r"\W+"
_ANYTHING = r"\b.*?\b"
_BEGIN = r"\A\W*"
# A value in the question's own words.
_VALUE = (
    r"(?P<value>[^\s?,_]+(?: [^\s?,_]+){0,5}?)(?=['’]s\b|\s*[?,.!]*\s*$|\s*,|\s+(?:in|from|of|by|on|at|for|when)\b)"
)

_IRREGULAR = {
    "good": ("better", "best"),
    "bad": ("worse", "worst"),
    "many": ("more", "most"),
    "much": ("more", "most"),
    "few": ("fewer", "fewest"),
    "little": ("less", "least"),
    "far": ("farther", "farthest"),
    "late": ("later", "latest"),
}


class BadPhrase(ValueError):
    """A phrase that cannot be read."""


def inflections(word: str) -> tuple[str, ...]:
    """A word and its regular inflections as noun and verb; only itself where it has none."""
    if word in _FIXED or len(word) < MIN_INFLECTED or not word.isalpha():
        return (word,)
    if word in _VERBS:
        return (word, f"{word}s", f"{word.removesuffix('e')}ing", f"{word}{word[-1]}ing", *_VERBS[word])
    if word.endswith("s") and not word.endswith("ss"):
        return (word,)
    forms = [word]
    if word.endswith("y") and word[-2] not in _VOWELS:
        forms += [f"{word[:-1]}ies", f"{word}s", f"{word[:-1]}ied", f"{word}ing"]
    elif word.endswith("ie"):
        forms += [f"{word}s", f"{word}d", f"{word[:-2]}ying"]
    elif word.endswith("e"):
        forms += [f"{word}s", f"{word}d", f"{word[:-1]}ing"]
    elif word.endswith(("s", "x", "z", "ch", "sh", "o")):
        forms += [f"{word}es", f"{word}s", f"{word}ed", f"{word}ing"]
    else:
        forms += [f"{word}s", f"{word}ed", f"{word}ing"]
        if word[-2] in _VOWELS and word[-1] not in "wxy":
            forms += [f"{word}{word[-1]}ed", f"{word}{word[-1]}ing"]
    return tuple(forms)


def degrees(adjective: str) -> tuple[str, str]:
    """Comparative and superlative of an adjective: longer, longest; more expensive, most expensive."""
    if adjective in _IRREGULAR:
        return _IRREGULAR[adjective]
    if " " in adjective or (
        len(re.findall(r"[aeiouy]+", adjective.removesuffix("e"))) > 1 and adjective[-1] not in "yw"
    ):
        return f"more {adjective}", f"most {adjective}"
    if adjective.endswith("e"):
        return f"{adjective}r", f"{adjective}st"
    if adjective.endswith("y"):
        return f"{adjective[:-1]}ier", f"{adjective[:-1]}iest"
    doubled = adjective[-1] not in f"{_VOWELS}wxy" and adjective[-2] in _VOWELS and adjective[-3] not in _VOWELS
    stem = adjective + adjective[-1] if doubled else adjective
    return f"{stem}er", f"{stem}est"


@cache
def pattern(phrase: str) -> str:
    """The regular expression of a phrase, for a question in lower case in which names are blanked by `_`.

    Raises:
        BadPhrase: brackets do not match, or nothing is said.
    """
    text = phrase.strip().lower()
    if not text or len(text) > MAX_CHARS:
        raise BadPhrase(f"{phrase[:40]!r} is empty or longer than {MAX_CHARS} characters")
    tokens = [match["token"] for match in _TOKEN.finditer(text) if match["token"]]
    expression = _sequence(tokens, phrase)
    try:
        re.compile(expression)
    except re.error as error:
        raise BadPhrase(f"{phrase!r}: {error}") from error
    return expression


def _sequence(tokens: list[str], phrase: str) -> str:
    """The expression of words that follow one another. A piece that may be missing brings its own gap."""
    pieces: list[tuple[str, bool]] = []
    rest = list(tokens)
    while rest:
        pieces.append(_piece(rest, phrase))
    out, begun = "", False
    for index, (expression, perhaps) in enumerate(pieces):
        if expression in (_ANYTHING, _BEGIN):
            out += expression
            begun = False
            continue
        before = _GAP if begun else ""
        if not perhaps:
            out += before + expression
            begun = True
        elif begun:
            out += f"(?:{_GAP}{expression})?"
        else:
            # Nothing stands before it yet: its gap comes after.
            last = index == len(pieces) - 1
            out += f"(?:{expression}{'' if last else _GAP})?"
    return out


def _piece(rest: list[str], phrase: str) -> tuple[str, bool]:
    """Takes a word or a group from the front: its expression, and whether it may be missing."""
    token = rest.pop(0)
    match token:
        case "(":
            return _group(rest, phrase)
        case ")" | ")~" | "|":
            raise BadPhrase(f"{phrase!r}: {token} stands alone")
        case "^":
            return _BEGIN, False
        case "_":
            return "_+(?:['’]s?)?", False
        case "<n>":
            return r"[$€£]?\b\d[\d,.]*\b", False
        case "<text>":
            return _VALUE, False
        case "...":
            return _ANYTHING, False
    read = _WORD.fullmatch(token)
    if read is None:
        raise BadPhrase(f"{phrase!r}: {token!r} cannot be read")
    word = read["word"]
    begin = r"\b" if word[0].isalnum() else ""
    if read["open"]:
        return rf"{begin}{re.escape(word)}\w*", bool(read["perhaps"])
    forms = (word,) if read["exact"] else inflections(word)
    escaped = "|".join(map(re.escape, forms))
    end = r"(?:['’]s?)?(?!\w)" if word[-1].isalnum() else ""
    return f"{begin}(?:{escaped}){end}", bool(read["perhaps"])


def _group(rest: list[str], phrase: str) -> tuple[str, bool]:
    branches: list[list[str]] = [[]]
    depth = 0
    while rest:
        token = rest.pop(0)
        if token == "(":
            depth += 1
        elif token in (")", ")~"):
            if not depth:
                expression = "|".join(_sequence(branch, phrase) for branch in branches)
                return f"(?:{expression})", token == ")~"
            depth -= 1
        elif token == "|" and not depth:
            branches.append([])
            continue
        branches[-1].append(token)
    raise BadPhrase(f"{phrase!r}: a bracket is not closed")


@cache
def compiled(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """What finds any of the phrases, the first that fits; nothing where there are none."""
    return re.compile("|".join(f"(?:{pattern(phrase)})" for phrase in phrases) or r"(?!)", re.IGNORECASE)


def vocabulary(phrases: Iterable[str]) -> frozenset[str]:
    """All words of the phrases with their inflections, in lower case."""
    words: set[str] = set()
    for phrase in phrases:
        for word in re.findall(r"=?[a-z0-9$%&/'.-]*[a-z0-9%]", phrase.lower()):
            words.update((word[1:],) if word[0] == "=" else inflections(word))
    return frozenset(words)
