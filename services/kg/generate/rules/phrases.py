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

from services.kg.generate.rules.inflection import inflections

MAX_CHARS = 300
_TOKEN = re.compile(r"\s+|(?P<token>\.\.\.|<n>|<text>|\)~|[()|^]|=?[^\s()|<>^]+)")
_WORD = re.compile(r"(?P<exact>=?)(?P<word>[^*~]+?)(?P<open>\*?)(?P<perhaps>~?)")
_GAP = r"\W+"
_ANYTHING = r"\b.*?\b"
_BEGIN = r"\A\W*"
# A value in the question's own words.
_VALUE = (
    r"(?P<value>[^\s?,_]+(?: [^\s?,_]+){0,5}?)(?=['’]s\b|\s*[?,.!]*\s*$|\s*,|\s+(?:in|from|of|by|on|at|for|when)\b)"
)


class BadPhrase(ValueError):
    """A phrase that cannot be read."""


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
    sign = rest.pop(0)
    match sign:
        case "(":
            return _group(rest, phrase)
        case ")" | ")~" | "|":
            raise BadPhrase(f"{phrase!r}: {sign} stands alone")
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
    parts = _WORD.fullmatch(sign)
    if parts is None:
        raise BadPhrase(f"{phrase!r}: {sign!r} cannot be read")
    word = parts["word"]
    begin = r"\b" if word[0].isalnum() else ""
    if parts["open"]:
        return rf"{begin}{re.escape(word)}\w*", bool(parts["perhaps"])
    forms = (word,) if parts["exact"] else inflections(word)
    escaped = "|".join(map(re.escape, forms))
    end = r"(?:['’]s?)?(?!\w)" if word[-1].isalnum() else ""
    return f"{begin}(?:{escaped}){end}", bool(parts["perhaps"])


def _group(rest: list[str], phrase: str) -> tuple[str, bool]:
    branches: list[list[str]] = [[]]
    depth = 0
    while rest:
        sign = rest.pop(0)
        if sign == "(":
            depth += 1
        elif sign in (")", ")~"):
            if not depth:
                expression = "|".join(_sequence(branch, phrase) for branch in branches)
                return f"(?:{expression})", sign == ")~"
            depth -= 1
        elif sign == "|" and not depth:
            branches.append([])
            continue
        branches[-1].append(sign)
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
