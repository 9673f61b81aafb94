"""Values of a key in the store as words of a question: the continents, the phases of matter.

Only keys with few values have such words, and only where looking them up is quick.
"""

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, func, select
from sqlalchemy.exc import SQLAlchemyError

from services.kg.errors import KgError
from services.kg.generate.rules.inflection import singular
from services.kg.generate.rules.tokens import Range, Tokens
from services.kg.generate.rules.trees import compared
from services.kg.generate.rules.words import Phrases, english
from services.kg.language.catalogue import NUMERIC, Function, Key
from services.kg.language.tree import Condition, Literal_, Operator
from services.kg.rows import view_of
from services.kg.store.engine import deadline
from services.kg.store.texts import lowered
from services.kit.text.vocabulary import ORDINALS

MOST_VALUES = 300
# Before a value that is one of several of a row.
PART = "* "
# Fewer values with a comma are no lists, and longer parts no items.
MIN_LISTS = 3
MOST_WORDS = 3
MIN_WORD = 4
LONGEST_VALUE = 40
# Between the items of a cell that lists several.
_BETWEEN = re.compile(r"[,;]\s+|\s*/\s*")
LOOK_S = 0.5
# Keys and texts that are remembered.
MOST_CACHED = 10_000
# A graph may be loaded anew under a running service.
FRESH_S = 600.0
_SIGNS: Mapping[str, Operator] = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge"}
_SPELLED = {f"{rank}{ending}": word for word, rank in ORDINALS.items() for ending in ("st", "nd", "rd", "th")}


class Values:
    """Distinct values of keys."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # Domain, function, key and text -> when it was looked up, and the values.
        self._cache: dict[tuple[str, str, str, str | None], tuple[float, tuple[str, ...]]] = {}
        self._lock = Lock()

    def of(self, function: Function, key: str) -> Sequence[str]:
        """The key's values, longest first; none where they are many, long, or slow to find. Blocks for milliseconds."""
        return self._fresh(function, key, None)

    def stored(self, function: Function, key: str, text: str) -> str:
        """This text as a row has it; empty where none does, or finding out takes too long. Blocks for milliseconds."""
        return next(iter(self._fresh(function, key, text.lower())), "")

    def first(self, function: Function, key: str, count: int) -> Sequence[str]:
        """Up to so many distinct values of a key; none where they are slow to find. Blocks for milliseconds."""
        return self._fetch(_distinct(view_of(function.view).c[key], count))

    def least(self, function: Function, key: str) -> str:
        """The least value of a key; empty where it is slow to find, or there is none. Blocks for milliseconds."""
        return next(iter(self._fetch(select(func.min(view_of(function.view).c[key])))), "")

    def is_listed(self, function: Function, key: str, text: str) -> bool:
        """Whether a row has this text beside others, and each that contains it as an item. Blocks for milliseconds."""
        column = view_of(function.view).c[key]
        found = self._fetch(_distinct(column, MOST_VALUES).where(column.icontains(text, autoescape=True)))
        cells = [items_of(one.lower()) for one in found]
        return any(len(one) > 1 for one in cells) and all(text.lower() in one for one in cells)

    def _fresh(self, function: Function, key: str, text: str | None) -> tuple[str, ...]:
        place = (function.domain, function.name, key, text)
        with self._lock:
            read_at, values = self._cache.get(place, (0.0, ()))
            if not read_at or time.monotonic() - read_at > FRESH_S:
                if len(self._cache) >= MOST_CACHED:
                    self._cache.clear()
                values = self._read(view_of(function.view).c[key], text)
                self._cache[place] = (time.monotonic(), values)
            return values

    def _read(self, column: ColumnElement[Any], text: str | None) -> tuple[str, ...]:
        if text is not None:
            return self._fetch(select(column).where(lowered(column, text) == text).limit(1))
        values = self._fetch(_distinct(column, MOST_VALUES + 1))
        values = tuple(f"{PART}{one}" for one in parts_of(values)) or values
        if len(values) > MOST_VALUES or any(len(one) > LONGEST_VALUE for one in values):
            return ()
        return tuple(sorted((one for one in values if any(map(str.isalpha, one))), key=lambda one: (-len(one), one)))

    def _fetch(self, statement: Select[Any]) -> tuple[str, ...]:
        """The values of a statement; none where it takes too long."""
        try:
            with deadline(LOOK_S), self._engine.connect() as connection:
                return tuple(str(value) for value in connection.execute(statement).scalars())
        except (KgError, SQLAlchemyError):
            return ()


def _distinct(column: ColumnElement[Any], count: int) -> Select[Any]:
    return select(column).where(column.is_not(None)).distinct().limit(count)


def items_of(text: str) -> list[str]:
    """What a cell lists: PC and Switch of "PC, Switch"; a cell that lists nothing is one item."""
    return _BETWEEN.split(text)


def parts_of(texts: Collection[str]) -> list[str]:
    """What the values of a column list that holds several each: PC and Switch of "PC, Switch"; else none."""
    cells = [items_of(one) for one in texts]
    lists = [one for one in cells if len(one) > 1]
    if len(lists) < MIN_LISTS or any(len(part.split()) > MOST_WORDS for parts in lists for part in parts):
        return []
    counts = Counter(part for one in cells for part in set(one))
    shared = sum(counts[part] > 1 for part in {part for parts in lists for part in parts})
    # A comma may be of the text; a semicolon is not.
    is_list = 2 * shared > len(counts) or all(";" in text for text in texts if len(items_of(text)) > 1)
    return sorted(counts) if is_list else []


@lru_cache(maxsize=1_000)
def telling_words(texts: tuple[str, ...]) -> dict[str, str]:
    """Words that only one of these texts of several words has, with the text: solar of Solar PV."""
    if any(one.startswith(PART) for one in texts):
        return {}
    words = {text: set(map(singular, text.lower().split())) for text in texts}
    counts = Counter(word for own in words.values() for word in own)
    return {
        word: text
        for text, own in words.items()
        if 1 < len(own) <= MOST_WORDS
        for word in own
        if counts[word] == 1 and len(word) >= MIN_WORD and word.isalpha()
    }


@lru_cache(maxsize=10_000)
def exact(text: str) -> tuple[str, ...]:
    """Phrases for a text of the store: itself, the singular of its last word, the word of an ordinal, synonyms."""
    plain = "".join(char if char not in "()|<>^=*~" else " " for char in text.lower()).strip()
    spellings = (_SPELLED.get(plain, plain), *english().synonyms.get(plain, ()))
    return tuple(dict.fromkeys((plain, singular(plain), *spellings))) if plain else ()


def condition(key: Key, value: str) -> Condition:
    """The condition of a value: `eq`, `like` of a part, the operator of a sign (`< 0`); of an empty one `isnull`."""
    if not value:
        return compared("isnull", key.name)
    if value.startswith(PART):
        return compared("like", key.name, value.removeprefix(PART))
    sign, _, number = value.partition(" ")
    if sign in _SIGNS and key.kind in NUMERIC:
        return Condition(_SIGNS[sign], key.name, (Literal_(number, bare=True),))
    return compared("eq", key.name, value)


def opposite(key: Key, value: str) -> Condition | None:
    """The condition of rows with another value; None where the language cannot say it."""
    if key.kind == "flag":
        return condition(key, "false" if value == "true" else "true")
    plain = condition(key, value)
    return replace(plain, operator="neq") if plain.operator == "eq" else None


def flag_phrases(flag: Key, words: Phrases) -> dict[str, tuple[str, ...]]:
    """Phrases by the value of a flag: rings and no rings of `has_rings`, radioactive of `is_radioactive`."""
    plain = flag.name.removeprefix("has_").removeprefix("is_").replace("_", " ").replace(" to ", " to the~ ")
    absent = [f"{no} {plain}" for no in ("no", "not", "non", "without", "no longer")]
    absent += [f"{plain} free", f"{plain}-free", f"un{plain}"]
    absent += [f"{no} {one}" for no in ("no", "without") for one in words if one.isalpha()]
    # Out of stock, out of warranty.
    absent += [f"out of {state}" for within in ("in ", "under ") if (state := plain.removeprefix(within)) != plain]
    opposites = english().opposites
    return {
        "false": (*absent, *opposites.get(plain, opposites.get(plain.partition(" ")[0], ()))),
        "true": (plain, *words),
    }


def is_joint(tokens: Tokens, place: Range, beside: Iterable[Range]) -> bool:
    """Whether a value asks or joins others: `long` behind "how"; `in` of movements in and out, beside none of these."""
    if tokens.word_before(place) == "how":
        return True
    words = (tokens.word(index) for index in range(place.first, place.end))
    return all(word in tokens.fillers for word in words) and not any(one.near(place) == 0 for one in beside)
