"""What a statement looks up, and the words that ask for it."""

import re
from dataclasses import dataclass
from functools import cache

from services.kg.generate.rules.inflection import degrees
from services.kg.generate.rules.lexicon import Lexicon, catalogue_words
from services.kg.generate.rules.phrases import compiled, vocabulary
from services.kg.generate.rules.words import KeyWords
from services.kg.language.catalogue import NUMERIC, Function

# The counts of rows have no key.
COUNTED = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a statement looks up."""

    needed: re.Pattern[str]  # one of these must stand in the question, or something else is asked for
    words: frozenset[str]  # all words of such questions
    more: frozenset[str] = frozenset()  # words that ask for the greater value, beside the general ones
    less: frozenset[str] = frozenset()  # words that ask for the smaller one
    unit: str = ""  # before a value where it is a currency, else behind it
    currency: bool = False  # whether it is one
    birth: bool = False  # whether it is a day of birth


def measure_of(lexicon: Lexicon, function: Function, key: str) -> Measure | None:
    """The measure of a key's values, or of the number of a function's rows; None where no words ask for it."""
    return _measures(lexicon).get(lexicon, function, key)


class _Measures:
    """The measures of a domain, made when they are first wanted."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Measure | None] = {}

    def get(self, lexicon: Lexicon, function: Function, key: str) -> Measure | None:
        place = (function.name, key)
        if place not in self._made:
            self._made[place] = _make(lexicon, function, key)
        return self._made[place]


@cache
def _measures(_: Lexicon) -> _Measures:
    return _Measures()


def _make(lexicon: Lexicon, function: Function, key: str) -> Measure | None:
    own = lexicon.words.functions.get(function.name)
    counted = own.counted.get(key) if own else None
    if counted is not None:
        return _of(lexicon, function, counted.words, KeyWords(words=counted.words, also=counted.also), key)
    if key == COUNTED:
        phrases = (*(own.words if own else ()), *_kind_counted(lexicon, function))
        return _of(lexicon, function, phrases, KeyWords(), key) if phrases else None
    found = next((one for one in function.keys if one.name == key), None)
    if found is None and not function.dynamic:
        return None
    if found is not None and found.kind not in NUMERIC and found.kind != "date" and not function.dynamic:
        return None
    words = lexicon.key(function.name, key)
    phrases = (*words.words, *lexicon.phrases(function.name, key))
    if key == "value":
        phrases = (*words.words, *(own.words if own else ())) or catalogue_words(function, key)
    return _of(lexicon, function, phrases, words, key)


def _kind_counted(lexicon: Lexicon, function: Function) -> tuple[str, ...]:
    """The noun of what a function's rows are: how many airports."""
    subject = next((one for one in function.keys if one.name in function.subject and one.entity), None)
    if subject is None or lexicon.words.guided:
        return ()
    return lexicon.nouns(subject.entity)


def _of(lexicon: Lexicon, function: Function, phrases: tuple[str, ...], words: KeyWords, name: str) -> Measure:
    key = next((one for one in function.keys if one.name == name), None)
    own = lexicon.words.functions.get(function.name)
    nouns = [noun for kind in lexicon.words.kinds.values() for noun in kind.words]
    money = key is not None and key.kind == "money"
    unit = words.currency or ("$" if money else "") or (key.unit if key is not None else "")
    more = vocabulary(f"={form}" for one in words.more for form in degrees(one))
    less = vocabulary(f"={form}" for one in words.less for form in degrees(one))
    bag = vocabulary((*phrases, *words.also, *(own.also if own else ()), *nouns, *lexicon.words.fillers, unit))
    return Measure(
        compiled(tuple(dict.fromkeys(phrases))),
        bag | more | less,
        more,
        less,
        unit,
        currency=bool(words.currency) or money,
        birth=key is not None and key.spell == "age",
    )
