"""Rows to words: one sentence a fact, with the resolved names, the window, the totals, and what is missing.

A generator reads this text as evidence, so nothing in it may mislead: numbers are whole or rounded, never cut; a list
that is not shown in full says so; an absence is said as an absence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from babel import Locale

from services.kg.definition.texts import Texts
from services.kg.language.catalogue import Domain, Function, Key
from services.kg.language.repair import is_sql
from services.kg.outcome import OF_SELECT, Outcome, Scalar
from services.kit.text.dates import whole_years
from services.kit.text.writing import number_text

# Items of one list at most, in a text that is too long fewer; the total is always said.
MAX_ITEMS = (10, 5, 3, 1)
# A generator's token is shorter than this in English, so a text within the characters is within the budget.
CHARS_PER_TOKEN = 3.5
# The least that a statement gets, whatever the others need.
MIN_CHARS = 200
AGGREGATES = {"avg": "average", "sum": "total", "min": "lowest", "max": "highest", "diff": "difference"}
STATUS = {
    "no_program": "No function of the knowledge graph fits the question.",
    "timeout": "The knowledge graph did not answer in time.",
}
# Below it three decimals lose most of a number.
SMALL = 0.01
MINUTES_OF_HOUR = 60
_ENGLISH = Locale("en")
# MusicBrainz's own codes beside ISO 3166.
OTHER_AREAS = {"XW": "worldwide", "XE": "Europe", "XG": "East Germany", "XC": "Czechoslovakia", "SU": "Soviet Union"}
# TMDB's spelling of Cantonese, which ISO 639-1 lacks.
OTHER_LANGUAGES = {"cn": "Cantonese"}


def verbalize(outcomes: Sequence[Outcome], domains: Mapping[str, Domain], today: date, *, max_tokens: int) -> list[str]:
    """The text of each statement; all together within `max_tokens`, by estimate.

    `today` is the date of the question, for ages.
    """
    budget = int(max_tokens * CHARS_PER_TOKEN)
    texts: list[str] = []
    for items in MAX_ITEMS:
        texts = [_statement(outcome, domains, today, items) for outcome in outcomes]
        if sum(map(len, texts)) <= budget:
            break
    else:
        share = max(MIN_CHARS, budget // max(1, len(texts)))
        texts = [_cut(text, share) for text in texts]
    ages = _ages(outcomes)
    if ages and texts:
        texts[-1] = f"{texts[-1]} {ages}"
    return texts


def _statement(outcome: Outcome, domains: Mapping[str, Domain], today: date, items: int) -> str:
    if outcome.function is not None:
        return _Facts(outcome, outcome.function, domains[outcome.function.domain].wording, today, items).text()
    possible = outcome.expected[:5] if outcome.status in ("unknown_key", "parse_error") else ()
    near = f" Possible: {', '.join(possible)}." if possible else ""
    return STATUS.get(outcome.status) or f"{_capital(outcome.message).rstrip('.')}.{near}"


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts of one statement on their way into words."""

    outcome: Outcome
    function: Function  # of the outcome
    wording: Texts  # of the function's domain
    today: date
    max_items: int  # of a list

    def text(self) -> str:
        outcome = self.outcome
        notes = f" (Note: {'; '.join(outcome.notes)}.)" if outcome.notes else ""
        if outcome.status == "no_event":
            return self.wording.missing(outcome) or f"Nothing is known of {self._names}{self._time}."
        if not outcome.rows and outcome.value is None:
            return f"The knowledge graph knows nothing of this: {self._rows}.{notes}"
        if outcome.aggregate == "len" and outcome.value is not None:
            body = f"Number of {self._rows}: {grouped(outcome.value)}."
            if outcome.rows:
                body += f" {self._list()}"
        elif outcome.aggregate:
            body = self._aggregate()
        elif outcome.summary and outcome.rows[0] == outcome.summary:
            body = ""
        elif self.function.grouped:
            by = " and ".join(self.function.exact_keys[name].words for name in self.function.subject)
            body = f"{_capital(self._rows)} by {by}: {self._list()}"
        elif len(outcome.rows) == 1 and self.function.pair is None and (fact := self._fact()):
            body = fact
        else:
            # Of several facts of an entity, or of one without a name, a list says one better than a sentence does.
            body = f"{_capital(self._rows)} ({grouped(outcome.total)}): {self._list()}"
        if outcome.summary and (outcome.total != 1 or not body):
            body = f"{self._names}{self._time}: {self.wording.totals(outcome.summary)}. {body}".rstrip()
        return body + notes

    @property
    def _names(self) -> str:
        return " and ".join(self.wording.names(self.outcome))

    @property
    def _rows(self) -> str:
        return f"{self.wording.rows(self.outcome)}{self._time}"

    @property
    def _time(self) -> str:
        # A window that the program gives by its dates is labelled by them once, not "A to B (A to B)".
        halves = [(label, label[: (len(label) - 3) // 2]) for label in self.outcome.windows]
        labels = [half if label == f"{half} ({half})" else label for label, half in halves]
        labels += self.outcome.conditions
        return f" ({', '.join(labels)})" if labels else ""

    def _fact(self) -> str:
        """ "The budget of the film "Alien" (1979) is $11,000,000." for each key; empty of a row without a name."""
        row = self.outcome.rows[0]
        if self._is_dynamic(row):
            # Prose speaks for itself: "Edward Hopper: ..." beside "The death date of Edward Hopper is ...".
            owner = self.wording.owner(row) or self._subject(row)
            if row["key"] == self.function.prose:
                return f"{owner}: {str(row['value']).rstrip('.')}."
            return f"The {_words(str(row['key']))} of {owner} is {_dynamic_value(self.function, row)}."
        if self.function.narrates:
            return f"{self._item(row)}."
        subject = self._subject(row)
        if not subject:
            return ""
        # What a SELECT found it by: "the harbour dues of call 26-0101 (vessel Tug III)".
        told = f" ({by})" if (by := ", ".join(self._found_by(subject))) else ""
        first, *rest = _keys(self.outcome)
        sentences = [self._sentence(first, subject, row.get(first.name), told)]
        return " ".join((*sentences, *(self._sentence(key, subject, row.get(key.name)) for key in rest)))

    def _found_by(self, subject: str) -> list[str]:
        """The names, conditions and order of a SELECT, in words; without a name that is just what it found."""
        names: dict[str, list[str]] = {}
        for one in self.outcome.entities:
            if one.how == OF_SELECT:
                names.setdefault(one.kind, []).append(one.name)
        named = [f"{_words(kind)} {' or '.join(of)}" for kind, of in names.items() if of != [subject]]
        return [*named, *self.outcome.conditions]

    def _sentence(self, key: Key, subject: str, value: Scalar, told: str = "") -> str:
        if value is None:
            return f"No {key.words} of {subject}{told} is known."
        if str(value) == subject:
            # "Breed: Boxer": the breed of Boxer is Boxer.
            return f"{_capital(key.words)}: {subject}{told}."
        return f"The {key.words} of {subject}{told} is {value_text(key, value, self.today)}."

    def _subject(self, row: Mapping[str, Scalar]) -> str:
        return self.wording.row(self.function.name, row)

    def _is_dynamic(self, row: Mapping[str, Scalar]) -> bool:
        return self.function.dynamic and row.get("key") is not None and "value" in row

    def _list(self) -> str:
        rows, total, count = self.outcome.rows, self.outcome.total, self.max_items
        items = [self._item(row) for row in rows[:count]]
        if total <= len(items):
            return f"{'; '.join(items)}."
        if len(rows) == total and len(rows) > count >= 3:
            # The ends of a sorted list are what questions ask for.
            tail = count // 3
            items = [*items[: count - tail], "...", *(self._item(row) for row in rows[-tail:])]
        return f"{'; '.join(items)} (showing {min(count, len(rows))} of {grouped(total)})."

    def _item(self, row: Mapping[str, Scalar]) -> str:
        function = self.function
        if self._is_dynamic(row):
            return f"{_words(str(row['key']))}: {_dynamic_value(function, row)}"
        keys = _keys(self.outcome)
        values = [(key, value) for key in keys if (value := row.get(key.name)) is not None]
        if function.narrates:
            return "; ".join([self._subject(row), *self._labelled(values, but=function.subject)])
        # The rows of a list are named by the keys of their subject that are shown, or by all of it.
        if not any(name in self.outcome.shown for name in function.subject):
            return ": ".join(filter(None, (self._subject(row), "; ".join(self._labelled(values)) or "not known")))
        (key, value), *rest = values or [(keys[0], "unknown")]
        more = self._labelled(rest)
        # Namesakes are told apart by their year, winners of several years as well; a person is of no year.
        apart = function.apart.get(key.name, "")
        if apart and row.get(apart) and not any(one.kind == "date" or one.name == apart for one in keys):
            more.insert(0, str(row[apart]))
        return value_text(key, value, self.today) + (f" ({', '.join(more)})" if more else "")

    def _labelled(self, values: Sequence[tuple[Key, Scalar]], but: Sequence[str] = ()) -> list[str]:
        """Values behind the words of their keys, "length 117 minutes"."""
        return [f"{key.words} {value_text(key, value, self.today)}" for key, value in values if key.name not in but]

    def _aggregate(self) -> str:
        outcome = self.outcome
        how = AGGREGATES.get(outcome.aggregate, outcome.aggregate)
        key = key_of(outcome, outcome.shown[-1])
        if outcome.value is None:
            return f"The {how} {key.words} cannot be computed: values are missing."
        of = self._names or self.wording.rows(outcome)
        kind = key if key.kind != "date" else Key(key.name, "integer", unit="days")
        text = f"The {how} {key.words} of {of}{self._time} is {value_text(kind, outcome.value, self.today)}"
        if outcome.aggregate in ("min", "max") and outcome.rows:
            return f"{text}, of {'; '.join(self._subject(row) for row in outcome.rows[:3])}."
        counted = f"{grouped(outcome.total)} value{'' if outcome.total == 1 else 's'}"
        if is_sql(outcome.source):
            # Where one of its values stands beside a total, a reader takes it for that.
            return f"{text}{_in_hours(kind, outcome.value)}, from {counted}."
        inputs = [
            f"{self._subject(row)}: {value_text(key, row[key.name], self.today)}"
            for row in outcome.rows[: self.max_items]
            if row.get(key.name) is not None
        ]
        return f"{text}, from {counted}: {'; '.join(inputs)}."


def _in_hours(key: Key, value: Scalar) -> str:
    """Minutes as hours, in parentheses: a small reader does not divide."""
    if key.unit != "minutes" or not isinstance(value, int | float) or value < MINUTES_OF_HOUR:
        return ""
    return f" ({grouped(round(value / MINUTES_OF_HOUR, 2))} hours)"


def _dynamic_value(function: Function, row: Mapping[str, Scalar]) -> str:
    number = row.get("number")
    if isinstance(number, int | float):
        key = str(row["key"]).lower()
        if any(word in key for word in function.percent) and abs(number) < 10:
            return f"{grouped(round(number * 100, 3))}%"
        return grouped(number)
    return str(row["value"])


def _words(key: str) -> str:
    """`fullTimeEmployees` and `death_date` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).replace("_", " ").lower()


def _ages(outcomes: Sequence[Outcome]) -> str:
    """Ages at the other dates of the same program: who asks for a birthday and a date means to subtract them."""
    firsts = [(one.function, one.rows[0], key) for one in outcomes if one.function and one.rows for key in _keys(one)]
    births = [(row.get(of.subject[0]), row.get(key.name)) for of, row, key in firsts if key.spell == "age"]
    dates = [row.get(key.name) for _, row, key in firsts if key.ages]
    ages = [(name, _age(birth, when), when) for name, birth in births for when in dates]
    return " ".join(f"{name} was {age} years old on {when}." for name, age, when in ages if age is not None)


def _age(birth: Scalar, when: Scalar | date) -> int | None:
    try:
        born, day = date.fromisoformat(str(birth)), date.fromisoformat(str(when)[:10])
    except ValueError:
        return None
    years = whole_years(born, day)
    return years if 0 <= years <= 150 else None


def value_text(key: Key, value: Scalar, today: date | None = None) -> str:
    """A value with its unit, rounded, its code spelt out; a day of birth with the age today, where that is given."""
    if isinstance(value, str) and key.kind != "date":
        return spell(key, value)
    match key.kind:
        case "money" if isinstance(value, int | float):
            return _money(value)
        case "flag":
            return "yes" if value else "no"
        case "date":
            age = _age(value, today) if today is not None and key.spell == "age" else None
            return str(value) + (f" (aged {age} on {today}, if alive)" if age is not None else "")
        case _:
            unit = f" {key.unit}" if key.unit else ""
            text = str(value) if key.spell == "plain" else grouped(value)
            return text + unit


def spell(key: Key, value: str) -> str:
    """A value with its code in words; any other value as it is."""
    if isinstance(key.spell, Mapping):
        return f"{value} ({key.spell[value]})" if value in key.spell else value
    if key.spell == "country" and len(value) == 2:
        name = OTHER_AREAS.get(value.upper()) or _ENGLISH.territories.get(value.upper())
        return f"{name} ({value.upper()})" if name else value
    if key.spell == "language" and len(value) in (2, 3):
        name = OTHER_LANGUAGES.get(value.lower()) or _ENGLISH.languages.get(value.lower())
        return f"{name} ({value.lower()})" if name else value
    return value


def _money(value: float) -> str:
    if 0 < abs(value) < SMALL:
        return f"${number_text(Decimal(repr(value)))}"
    if abs(value) < 1_000:
        return f"${value:,.4f}" if 0 < abs(value) < 0.1 else f"${value:,.2f}"
    scales = ((1e12, "trillion"), (1e9, "billion"))
    words = next((f" ({value / scale:.2f} {name})" for scale, name in scales if abs(value) >= scale), "")
    return f"${value:,.0f}{words}"


def grouped(value: Scalar) -> str:
    """A number with commas between its thousands and three decimals at most, below .01 more; anything else as it is."""
    if isinstance(value, float):
        if 0 < abs(value) < SMALL:
            return number_text(Decimal(repr(value)))
        return f"{value:,.0f}" if value.is_integer() else f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _keys(outcome: Outcome) -> list[Key]:
    return [key_of(outcome, name) for name in outcome.shown]


def key_of(outcome: Outcome, name: str) -> Key:
    """The key of a statement's rows with this name; a key of plain text where its function has none."""
    return (outcome.function.exact_keys.get(name) if outcome.function else None) or Key(name)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cut(text: str, chars: int) -> str:
    """A text up to the end of an item within so many characters."""
    if len(text) <= chars:
        return text
    start = text[:chars]
    end = max(start.rfind("; "), start.rfind(". "), start.rfind("\n"))
    return (start[:end] if end > chars // 2 else start.rpartition(" ")[0]) + " ... (cut to fit)"
