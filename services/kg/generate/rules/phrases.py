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
# Signs -> what they stand for.
_SIGNS = {"^": _BEGIN, "_": "_+(?:['’]s?)?", "<n>": r"[$€£]?\b\d[\d,.]*\b", "<text>": _VALUE, "...": _ANYTHING}
# What ends a branch of a group.
_ENDS = (")", ")~", "|")


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
    if tokens:
        raise BadPhrase(f"{phrase!r}: {tokens[0]} stands alone")
    try:
        re.compile(expression)
    except re.error as error:
        raise BadPhrase(f"{phrase!r}: {error}") from error
    return expression


def _sequence(rest: list[str], phrase: str) -> str:
    """Takes words up to the end of a branch: their expression. A piece that may be missing brings its own gap."""
    out, begun = "", False
    while rest and rest[0] not in _ENDS:
        expression, perhaps = _piece(rest, phrase)
        if expression in (_ANYTHING, _BEGIN):
            out += expression
            begun = False
            continue
        # Where nothing stands before it yet, its gap comes after.
        before, behind = (_GAP, "") if begun else ("", _GAP if perhaps and rest and rest[0] not in _ENDS else "")
        out += f"(?:{before}{expression}{behind})?" if perhaps else f"{before}{expression}"
        begun |= not perhaps
    return out


def _piece(rest: list[str], phrase: str) -> tuple[str, bool]:
    """Takes a word or a group from the front: its expression, and whether it may be missing."""
    sign = rest.pop(0)
    if sign == "(":
        branches = [_sequence(rest, phrase)]
        while rest and rest[0] == "|":
            rest.pop(0)
            branches.append(_sequence(rest, phrase))
        if not rest:
            raise BadPhrase(f"{phrase!r}: a bracket is not closed")
        return f"(?:{'|'.join(branches)})", rest.pop(0) == ")~"
    if sign in _SIGNS:
        return _SIGNS[sign], False
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
