"""Words of number, unit and time as tables, and as parts of patterns."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any

import yaml


def _table(name: str) -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return content


def alternatives(words: Iterable[str]) -> str:
    """Words as alternatives of a pattern, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


def blanked(text: str, start: int, end: int) -> str:
    """The text with a part replaced by spaces, so that all offsets stay."""
    return text[:start] + " " * (end - start) + text[end:]


_WORDS, _UNITS = _table("words.yaml"), _table("units.yaml")

MONTH_NAMES: tuple[str, ...] = tuple(_WORDS["months"])
MONTHS: Mapping[str, int] = {
    **{name: number for number, name in enumerate(MONTH_NAMES, 1)},
    **{name[:3]: number for number, name in enumerate(MONTH_NAMES, 1)},
    **_WORDS["month_abbreviations"],
}
WEEKDAY_NAMES: tuple[str, ...] = tuple(_WORDS["weekdays"])
WEEKDAYS: Mapping[str, int] = {
    **{name: number for number, name in enumerate(WEEKDAY_NAMES)},
    **_WORDS["weekday_abbreviations"],
}

SMALL: Mapping[str, int] = {word: number for number, word in enumerate(_WORDS["small"])}
TENS: Mapping[str, int] = _WORDS["tens"]
# Powers of ten, of words and of suffixes.
SCALES: Mapping[str, int] = _WORDS["scales"]
SUFFIXES: Mapping[str, int] = _WORDS["suffixes"]
# A word's factor: the scales', and a dozen's.
MULTIPLES: Mapping[str, int] = {**{word: 10**power for word, power in SCALES.items()}, **_WORDS["groups"]}
LOOSE_COUNTS: Mapping[str, int] = _WORDS["loose_counts"]
ORDINALS: Mapping[str, int] = {
    **{word: number for number, word in enumerate(_WORDS["ordinals"], 1)},
    **_WORDS["round_ordinals"],
}
NUMERALS: Mapping[str, int] = _WORDS["numerals"]

# Phrase to its distance from today in days.
DAYS: Mapping[str, int] = {phrase: offset for offset, phrases in _WORDS["days"].items() for phrase in phrases}
LATEST: frozenset[str] = frozenset(_WORDS["latest"])
EVER: frozenset[str] = frozenset(_WORDS["ever"])
EVENTS: frozenset[str] = frozenset(_WORDS["events"])

# Name to dimension and factor.
UNITS: Mapping[str, tuple[str, Decimal]] = {
    name: (dimension, Decimal(factor))
    for dimension, factors in _UNITS["units"].items()
    for factor, names in factors.items()
    for name in names
}
SYMBOLS: Mapping[str, str] = _UNITS["symbols"]
CURRENCIES = frozenset((*SYMBOLS.values(), *_UNITS["currencies"]))
ATTACHED_UNITS: tuple[str, ...] = tuple(_UNITS["attached"])

# Parts of patterns, for texts in lower case.
MONTH = alternatives(MONTHS)
WEEKDAY = alternatives(WEEKDAYS)
YEAR = r"1\d{3}|20\d{2}|21\d{2}"
DAY_OF_MONTH = r"0?[1-9]|[12]\d|3[01]"
ORDINAL_ENDING = r"(?:st|nd|rd|th)"
