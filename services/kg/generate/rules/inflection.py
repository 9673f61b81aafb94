"""Regular and irregular forms of English words: releases, released, wrote; longer, longest."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from services.kg.definition.folder import PACKAGED

_VOWELS = "aeiou"
# Behind these an s needs an e.
_HISSING = ("s", "x", "z", "ch", "sh", "o")
# Shorter words are no nouns or verbs that a domain speaks of.
MIN_INFLECTED = 3


_DATA: Any = PACKAGED.content("generate/rules/inflection.yaml").data
# Words without inflections.
_CLOSED = frozenset(_DATA["closed"].split())
# Past forms of verbs, and comparative and superlative of adjectives, that no rule makes.
_VERBS: Mapping[str, tuple[str, ...]] = {verb: tuple(past.split()) for verb, past in _DATA["verbs"].items()}
_DEGREES: Mapping[str, tuple[str, str]] = {
    one: (more, most) for one, forms in _DATA["degrees"].items() for more, most in [forms.split()]
}


@cache
def inflections(word: str) -> tuple[str, ...]:
    """A word and its regular inflections as noun and verb; only itself where it has none."""
    if word in _CLOSED or len(word) < MIN_INFLECTED or not word.isalpha():
        return (word,)
    if (past := _VERBS.get(word)) is not None:
        return (word, _with_s(word), f"{word.removesuffix('e')}ing", f"{word}{word[-1]}ing", *past)
    if word.endswith("s") and not word.endswith("ss"):
        return (word,)
    forms = [word]
    if word.endswith("y") and word[-2] not in _VOWELS:
        forms += [_with_s(word), f"{word}s", f"{word[:-1]}ied", f"{word}ing"]
    elif word.endswith("ie"):
        forms += [f"{word}s", f"{word}d", f"{word[:-2]}ying"]
    elif word.endswith("e"):
        forms += [f"{word}s", f"{word}d", f"{word[:-1]}ing"]
    elif word.endswith(_HISSING):
        forms += [_with_s(word), f"{word}s", f"{word}ed", f"{word}ing"]
    else:
        forms += [f"{word}s", f"{word}ed", f"{word}ing"]
        if word[-2] in _VOWELS and word[-1] not in "wxy":
            forms += [f"{word}{word[-1]}ed", f"{word}{word[-1]}ing"]
    return tuple(forms)


def irregular(past: str) -> list[str]:
    """The verbs of which no rule makes this form: `write` of wrote and written."""
    return [verb for verb, forms in _VERBS.items() if past in forms]


def _with_s(word: str) -> str:
    """The plural of a noun, the third person of a verb."""
    if word.endswith("y") and word[-2] not in _VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(_HISSING) else f"{word}s"


def singular(words: str) -> str:
    """A phrase with the singular of its last word, by its ending: noble gases, countries, halogens; Paris as it is."""
    if len(words) <= MIN_INFLECTED:
        return words
    for ending, one in (("ies", "y"), ("sses", "ss"), ("ases", "as"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if words.endswith(ending):
            return words.removesuffix(ending) + one
    return words if words.endswith(("ss", "us", "is")) else words.removesuffix("s")


@cache
def degrees(adjective: str) -> tuple[str, str]:
    """Comparative and superlative of an adjective: longer, longest; more expensive, most expensive."""
    if adjective in _DEGREES:
        return _DEGREES[adjective]
    if " " in adjective or (
        len(re.findall(r"[aeiouy]+", adjective.removesuffix("e"))) > 1 and adjective[-1] not in "yw"
    ):
        return f"more {adjective}", f"most {adjective}"
    if adjective.endswith("e"):
        return f"{adjective}r", f"{adjective}st"
    if adjective.endswith("y"):
        return f"{adjective[:-1]}ier", f"{adjective[:-1]}iest"
    doubled = (
        len(adjective) > 2
        and adjective[-1] not in f"{_VOWELS}wxy"
        and adjective[-2] in _VOWELS
        and adjective[-3] not in _VOWELS
    )
    stem = adjective + adjective[-1] if doubled else adjective
    return f"{stem}er", f"{stem}est"
