"""The measure of a statement's value: what it is, and the words that ask for it."""

import re
from dataclasses import dataclass
from functools import lru_cache

from services.kg.generate.rules.inflection import degrees
from services.kg.generate.rules.lexicon import Lexicon, catalogue_words
from services.kg.generate.rules.phrases import compiled, vocabulary
from services.kg.generate.rules.words import KeyWords
from services.kg.language.catalogue import NUMERIC, Function

# The counts of rows have no key.
COUNTED = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a statement looks up, by the words of questions."""

    needed: re.Pattern[str]  # one of these must stand in the question, or something else is asked for
    words: frozenset[str]  # all words of such questions
    more: frozenset[str] = frozenset()  # words that ask for the greater value, beside the general ones
    less: frozenset[str] = frozenset()  # words that ask for the smaller one
    unit: str = ""  # before a value where it is a currency, else behind it
    currency: bool = False  # whether it is one
    birth: bool = False  # whether it is a day of birth


@lru_cache(maxsize=4_096)
def measure_of(lexicon: Lexicon, function: Function, key: str) -> Measure | None:
    """The measure of a key's values, or of the number of a function's rows; None where no words ask for it."""
    own = lexicon.words.function(function.name)
    if (counted := own.counted.get(key)) is not None:
        return _of(lexicon, function, counted.words, KeyWords(words=counted.words, also=counted.also), key)
    if key == COUNTED:
        phrases = (*own.words, *_kind_counted(lexicon, function))
        return _of(lexicon, function, phrases, KeyWords(), key) if phrases else None
    column = function.exact_keys.get(key)
    if not function.dynamic and (column is None or column.kind not in {*NUMERIC, "date"}):
        return None
    words = lexicon.key(function.name, key)
    phrases = (*words.words, *lexicon.phrases(function.name, key))
    if key == "value":
        phrases = (*words.words, *own.words) or catalogue_words(function, key)
    return _of(lexicon, function, phrases, words, key)


def _kind_counted(lexicon: Lexicon, function: Function) -> tuple[str, ...]:
    """The noun of what a function's rows are: how many airports."""
    subject = next((one for one in function.keys if one.name in function.subject and one.entity), None)
    if subject is None or lexicon.words.guided:
        return ()
    return lexicon.nouns(subject.entity)


def _of(lexicon: Lexicon, function: Function, phrases: tuple[str, ...], words: KeyWords, name: str) -> Measure:
    key = function.exact_keys.get(name)
    own = lexicon.words.function(function.name)
    nouns = [noun for kind in lexicon.words.kinds.values() for noun in kind.words]
    money = key is not None and key.kind == "money"
    unit = words.currency or ("$" if money else "") or (key.unit if key is not None else "")
    more = vocabulary(f"={form}" for one in words.more for form in degrees(one))
    less = vocabulary(f"={form}" for one in words.less for form in degrees(one))
    words_of_questions = vocabulary((*phrases, *words.also, *own.also, *nouns, *lexicon.words.fillers, unit))
    return Measure(
        compiled(tuple(dict.fromkeys(phrases))),
        words_of_questions | more | less,
        more,
        less,
        unit,
        currency=bool(words.currency) or money,
        birth=key is not None and key.spell == "age",
    )
