"""The one value of a statement, where it has one and the question asks for it, and its measure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

from services.kg.generate.rules.inflection import degrees
from services.kg.generate.rules.lexicon import Lexicon, catalogue_words, verbs_of
from services.kg.generate.rules.phrases import compiled, vocabulary
from services.kg.generate.rules.words import KeyWords, Total
from services.kg.language.catalogue import NUMERIC, Function
from services.kg.outcome import Outcome
from services.kit.text.writing import number_text

Value: TypeAlias = Decimal | date

_PROJECTED = re.compile(r'\["([A-Za-z_ ]+)"\]')
_CONDITION = re.compile(r'\beq\((\w+), (?:"([^"]*)"|(\w+))\)')
_NUMERAL = re.compile(r"-?[$€£]?[0-9][0-9,]*(?:\.[0-9]+)?")
_COMPUTED = re.compile(r"[()*+<>=|]")
# Notes that say how a count was made, and qualify nothing.
_HARMLESS_NOTE = re.compile(r"the source (?:counts \d+ and lists \d+|states that there are none)")

# Shorter parts of a name name nothing.
MIN_SPOKEN = 4
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


@dataclass(frozen=True, slots=True)
class Fact:
    """The value of an entity by one statement."""

    name: str
    spoken: str  # the part of the name that the question has
    at: int  # where it stands
    value: Value
    measure: Measure
    shape: str  # the statement with `*` in place of the name
    outcome: Outcome
    key: str  # the key or total that the value is of

    @property
    def words(self) -> str:
        value = self.value.isoformat() if isinstance(self.value, date) else number_text(self.value)
        return f"{self.name}: {self.outcome.source.strip()} = {value}"


def fact_of(query: str, outcome: Outcome, lexicons: Mapping[str, Lexicon]) -> Fact | None:
    """The one value of a statement; None when it has none, several, or one that the question does not ask for.

    `query` is in lower case, with single spaces.
    """
    function = outcome.function
    if function is None or len(outcome.entities) != 1 or function.domain not in lexicons:
        return None
    if not all(map(is_harmless, outcome.notes)):
        return None
    name = outcome.entities[0].name.lower().strip()
    spoken = _spoken(query, name)
    lexicon = lexicons[function.domain]
    raw, key = _value(outcome, function, lexicon)
    value = typed(raw)
    measure = measure_of(lexicon, function, key)
    if spoken is None or value is None or measure is None or not measure.needed.search(query):
        return None
    if not _rows_as_meant(outcome, function, lexicon, query):
        return None
    shape = outcome.source.lower().replace(f'"{name}"', '"*"').replace(f"'{name}'", "'*'")
    return Fact(name, *spoken, value, measure, shape, outcome, key)


def is_harmless(note: str) -> bool:
    """Whether a note of an outcome qualifies nothing."""
    return _HARMLESS_NOTE.fullmatch(note) is not None


def projected(source: str) -> str:
    """The key that a statement shows last; empty when it shows none."""
    keys = _PROJECTED.findall(source)
    return str(keys[-1]) if keys and keys[-1] != "len" else ""


def _value(outcome: Outcome, function: Function, lexicon: Lexicon) -> tuple[Any, str]:
    """The value of a statement and the key or total that it is of."""
    key = projected(outcome.source)
    words = lexicon.words.function(function.name)
    totals = outcome.rows[0] if len(outcome.rows) == 1 else {}
    if words.counted.keys() & totals.keys():
        total, column = _total_of(outcome, key, words.counted, words.sides)
        return totals.get(column), total
    if outcome.value is not None and outcome.aggregate != "len":
        return outcome.value, _canonical(function, key)
    if outcome.value is not None:
        # A count has no key; one of rows of a kind has that kind's.
        return outcome.value, _total_of(outcome, "", words.counted, words.sides)[0] if words.counted else COUNTED
    if outcome.aggregate or len(outcome.rows) != 1 or outcome.total != 1:
        return None, key
    row = outcome.rows[0]
    if function.dynamic:
        number = row.get("number")
        return (row.get("value") if number is None else number), key
    if not key and len(function.default) == 1:
        key = function.default[0]
    key = _canonical(function, key)
    return row.get(key), key


def _canonical(function: Function, key: str) -> str:
    """The name of the key that a program spells so; the spelling where the function has none."""
    match = function.find_key(key) if key else None
    return match.name if match is not None else key


def _total_of(
    outcome: Outcome, key: str, totals: Mapping[str, Total], sides: Mapping[str, Mapping[str, str]]
) -> tuple[str, str]:
    """The total over a window that a program means, and its column: wins at home are in `home_wins`."""
    if outcome.aggregate == "sum" and key:
        return key, key
    conditions = {name: text or bare for name, text, bare in _CONDITION.findall(outcome.source)}
    prefix = "".join(sides[name].get(value, "") for name, value in conditions.items() if name in sides)
    others = {name: value for name, value in conditions.items() if name not in sides}
    for name, total in totals.items():
        if dict(total.where) == others and (others or not prefix) and not total.summed:
            return name, f"{prefix}{name}"
    return COUNTED, ""


def _rows_as_meant(outcome: Outcome, function: Function, lexicon: Lexicon, query: str) -> bool:
    """Whether the rows are those that the question counts: wins only where it speaks of wins, each of them once."""
    conditions = {name for name, _, _ in _CONDITION.findall(outcome.source)}
    for key in function.keys:
        unless = lexicon.key(function.name, key.name).unless
        if key.kind != "flag" or not unless or key.name in function.presets:
            continue
        if (key.name in conditions) == (compiled(unless).search(query) is not None):
            return False
    once = lexicon.words.function(function.name).once
    if outcome.aggregate != "len" or not once or not all(set(once) <= set(row) for row in outcome.rows):
        return True
    return len({tuple(row[name] for name in once) for row in outcome.rows}) == len(outcome.rows)


def typed(raw: Any) -> Value | None:
    """A number, a whole date, or None."""
    if isinstance(raw, bool) or raw is None:
        return None
    if isinstance(raw, int | float):
        value = Decimal(str(raw))
        return value if value.is_finite() else None
    text = str(raw).strip()
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    if _NUMERAL.fullmatch(text):
        return Decimal(re.sub(r"[$€£,]", "", text))
    return None


def _spoken(query: str, name: str) -> tuple[str, int] | None:
    """The longest run of a name's words, from its beginning or to its end, that the question has: Tern of MV Tern.

    With where it stands; None where the question has none.
    """
    words = name.split()
    parts = (" ".join(part) for size in range(len(words), 0, -1) for part in (words[:size], words[-size:]))
    parts = (one for one in parts if len(one) >= MIN_SPOKEN or one == name)
    return next(((one, at) for one in parts if (at := position_of(query, one)) is not None), None)


def position_of(query: str, name: str) -> int | None:
    """Where the question first names an entity, in whole words."""
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query) if name else None
    return match.start() if match else None


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
    if column is not None and _COMPUTED.search(column.words):
        # What a SELECT computes has its expression for words.
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
    verbs = verbs_of(key.words) if key is not None else ()
    known = vocabulary((*phrases, *verbs, *words.also, *own.also, *nouns, *lexicon.words.fillers, unit)) | more | less
    currency, birth = bool(words.currency) or money, key is not None and key.spell == "age"
    return Measure(compiled(tuple(dict.fromkeys(phrases))), known, more, less, unit, currency, birth)
