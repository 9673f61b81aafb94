"""Columns of CSV files: name in the graph, type, unit and words, guessed from the header and the cells."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from lab.draft.headers import abbreviated, column_name
from lab.draft.vocabulary import (
    DOERS,
    compounds,
    currency,
    deeds,
    english_of,
    measures,
    period_of,
    phrases_of,
    synonyms,
    unit_of_words,
    units,
    usual_words,
    words_of_names,
    words_of_unit,
)
from services.kg.generate.rules.inflection import inflections, irregular, singular
from services.kg.generate.rules.values import parts_of
from services.kg.generate.rules.words import english
from services.kg.load.values import truth

ColumnType = Literal["text", "date", "integer", "bigint", "number", "flag"]
DateOrder = Literal["", "day_first", "month_first"]
ColumnTransform = DateOrder | Literal["amount"]
NUMERIC = ("integer", "bigint", "number")
# Units of what lasts.
LASTING = ("minutes", "hours", "days")
MILLISECONDS = "ms"

# A column of more values, or of more values a row, does not sort rows, and no question is searched for them.
MOST_SORTS = 300
SORTED = 0.7
# The last word of a column's name may be an unknown unit if it is no longer: mah.
MAX_UNIT = 3
# A code is a short word without spaces: DE, LHR, ISBN-like identifiers.
MAX_CODE = 6
# Share of the values of a column of persons that look like one.
MOST_PERSONS = 0.8

_KEYS = ("id", "key", "code", "slug", "uuid", "symbol")
NUMBERED = (*_KEYS, "no", "nr", "number")
_OF_DAY = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")
# What asks for a flag `pets_ok`.
_PERMITS = ("{}", "(allow|take|accept) {}", "{} (is|are) (allowed|accepted)")
_CODE = re.compile(r"[A-Z]{1,5}[-/]?\d{1,8}(?:[-/]\d{1,6})?")
YEAR = re.compile(r"1\d{3}|20\d{2}")
_PERSON = re.compile(r"[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){1,3}")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a CSV file."""

    header: str  # as the file has it
    name: str  # as the table has it
    type: ColumnType  # of the table's column
    values: frozenset[str] = field(repr=False)  # its distinct values, stripped, without those that mean nothing
    filled: int  # rows with a value
    transform: ColumnTransform = ""  # from what its cells have to `values`: days in ISO 8601, figures without units
    timed: bool = False  # whether its cells have a time of day beside the day, which alone is kept
    keeps_unit: bool = False  # whether its key has its unit, as another of the table is the name without it

    @property
    def unique(self) -> bool:
        """Whether no two rows have the same value."""
        return len(self.values) == self.filled

    @property
    def numeric(self) -> bool:
        return self.type in NUMERIC

    @property
    def ticked(self) -> bool:
        """Whether it says yes where it says anything, as boxes that are ticked: an empty one says no."""
        return self.type == "flag" and all(map(truth, self.values))

    @property
    def code(self) -> bool:
        """Whether its values are codes: short words in capitals or digits, or numbers behind letters, ORG-001."""
        return self.type == "text" and all(
            (len(one) <= MAX_CODE and one == one.upper() and " " not in one) or _CODE.fullmatch(one)
            for one in self.values
        )

    @property
    def keyed(self) -> bool:
        """Whether its name is that of a key."""
        return self._last in _KEYS

    @property
    def numbered(self) -> bool:
        """Whether its name is that of a key or a number."""
        return self._last in NUMBERED

    @property
    def counts(self) -> bool:
        """Whether it may number the rows: whole numbers, none greater than the number of rows."""
        return self.type == "integer" and max(int(one.replace(",", "")) for one in self.values) <= self.filled

    @property
    def year(self) -> bool:
        return self._last == "year" and self.type == "integer" and not self._is_rate

    @property
    def made(self) -> bool:
        """Whether its dates or years are those of the things' beginning."""
        dated = self.type == "date" or self.year or self._last in words_of_names("done")
        return dated and not words_of_names("beginnings").isdisjoint(self.name.split("_"))

    @property
    def birth(self) -> bool:
        """Whether its dates are births."""
        return self.type == "date" and not words_of_names("births").isdisjoint(self.name.split("_"))

    @property
    def unit(self) -> str:
        unit = str((self._unit or self._leading).get("unit", ""))
        if self._is_rate and self.numeric and (spent := currency(self._rated.rpartition("_")[2])):
            return f"{spent} per {self._last}"
        return unit

    @property
    def unit_words(self) -> list[str]:
        """The words for its unit."""
        return words_of_unit(self._unit or self._leading)

    @property
    def adjectives(self) -> dict[str, list[str]]:
        """Adjectives of great values (`more`) and of small ones (`less`)."""
        return self._phrases if self.numeric or self.type == "date" else {}

    @property
    def words(self) -> list[str]:
        """The words that ask for it, beside its name: "how many kilometres"."""
        unit_words = _alternatives(self.unit_words)
        # "Hearing days", of a number of days.
        whole = [self.name.replace("_", " ")] if self._unit and len(self._last) > MAX_UNIT else []
        asked = [f"how many ({unit_words})"] if unit_words else []
        if self.keeps_unit and unit_words:
            # "Height in feet", beside one in metres.
            noun = self.name.removesuffix(f"_{self._last}").replace("_", " ")
            asked += [f"{noun} in ({unit_words})", f"({unit_words}) of {noun}"]
        # What holds tonnes holds no people.
        own = [one for one in self._phrases.get("words", []) if not (self._unit and "(people|" in one)]
        words = [*own, *whole, *asked, *self.other_names]
        front = self.measured.rpartition("_")[0].replace("_", " ")
        # "What does a car cost", of a `car_fare` beside others.
        words += [f"{front} {one}" for one in words if front and one.isalpha()]
        if self._is_rate:
            # "A kilo", of euros a kilo.
            base = _alternatives(words_of_unit(units().get(self._last, {})) or [self._last])
            words += [f"(a|an|per|each|by the) ({base})"] if self.numeric and base else []
            # "How many hours does she work", of `hrs_per_week`.
            words += words_of_unit(units().get(self._rated, {}))
        if self.key_type == "percent":
            noun = self.key.replace("_", " ")
            words += [f"{noun} (content|percentage|percent|share|rate)", f"percentage of {noun}"]
        if self.key.endswith("_by") and (verb := verb_of(self.key.removesuffix("_by"))):
            words.append(verb)
        if self.type == "flag":
            # "Who works remotely", of a flag `remote`.
            adverb = [f"{self.key}ly"] if f"{self.key}ly" in usual_words() else []
            words += [verb] if (verb := verb_of(self.key)) else adverb
            front, _, last = self.name.rpartition("_")
            words += [one.format(front.replace("_", " ")) for one in _PERMITS] if front and last == "ok" else []
            # "Which depots accept glass", of a flag `accepts_glass`.
            deed, _, thing = self.name.partition("_")
            words += [f"{verb} {thing}".replace("_", " ")] if thing and (verb := singular(deed)) != deed else []
        if self._last == "yr":
            words.append(f"{self.name.removesuffix(self._last).replace('_', ' ')}year")
        if self._last in ("no", "nr") and not self._unit:
            words.append(f"{self.name.removesuffix(self._last).replace('_', ' ')}number")
        if self.type == "date" and self.key.endswith("_date"):
            words.append(self.key.removesuffix("_date").replace("_", " "))
        if self.type == "date" and (verb := verb_of(self.key)):
            words.append(verb)
        if self.numeric or self.type == "date":
            words += deeds(singular(self.key.rpartition("_")[2]))
            if "_" not in self.key and singular(self.key) != self.key:
                # "What was downloaded most", of `downloads`.
                words.append(singular(self.key))
        return [*words, *self._words_of_parts, *self._written]

    @property
    def _written(self) -> list[str]:
        """Its header's own words, where abbreviations among them became others: "dob"."""
        if self.header and not column_name(self.header):
            return [self.header.casefold()]
        written = abbreviated(self.header)
        if not written:
            return compounds(self.key)
        if self._unit:
            written = written.removesuffix(f"_{self._last}")
        letters = written.split("_")
        initials = ["".join(letters)] if all(len(one) == 1 for one in letters) else []
        return [written.replace("_", " "), *initials]

    @property
    def _words_of_parts(self) -> list[str]:
        """The words that ask for it by the words before the last one of its key."""
        *front, last = self.key.split("_")
        if not front:
            return []
        noun, words = " ".join(front), list[str]()
        if last == "year" or self.type == "date":
            # "When was it discovered", of a `discovery_year`.
            words += deeds(front[-1])
        if last == "method":
            words += [f"how (is|are|was|were) ... {one}" for one in deeds(front[-1])]
        sized = last in words_of_names("sizes") or (last == "time" and self.unit in LASTING)
        if YEAR.fullmatch(last) or sized:
            words.append(noun)
        elif self.measured != self.key:
            words.append(self.measured.replace("_", " "))
        elif verb := verb_of(last):
            # "Tickets were sold", "dogs are allowed", "which trails allow dogs", "how many people did we rescue".
            how = [f"how (is|are|was|were|did) ... {verb}"] if noun == "how" else []
            words += [
                *how,
                f"{noun} (is|are|was|were) ={last}",
                f"({verb}|={last}) (the|any|their|its|his|her|our)~ {noun}",
            ]
            words += [f"how many {noun} ... {verb}"] if self.numeric else [f"={last} (for|in|to|at|with) {noun}"]
        return words

    @property
    def offered(self) -> str:
        """The words before the last one of a flag that ask for it, where no other key has them: winter_service."""
        front, _, last = self.key.rpartition("_")
        if self.type != "flag" or last not in words_of_names("offers") or verb_of(front):
            return ""
        return front if last == "opening" or front.rpartition("_")[2] in words_of_names("times") else ""

    @property
    def other_names(self) -> list[str]:
        """Other words for what it measures: a length may be a duration, and a ticket in numbers is its price."""
        if self.measured == "ticket" and self.numeric:
            return ["ticket price", *synonyms("ticket price")]
        if self.measured == "length" and self.numeric and self.unit in ("", "seconds", *LASTING):
            return [*synonyms("length"), "duration", *synonyms("duration")]
        return synonyms(self.measured)

    @property
    def measured(self) -> str:
        """The part of its key that names what is measured: price of price_eur_per_kg, battery of battery_mah."""
        base = self.key.partition("_per_")[0]
        front, _, last = base.rpartition("_")
        short = len(last) <= MAX_UNIT and last not in words_of_names("vague") and last not in measures()
        return front if front and self.numeric and not self.numbered and (last in units() or short) else base

    @property
    def value_words(self) -> dict[str, list[str]]:
        """The words for single values: codes of women and men, an empty date of death, heights below 0."""
        if self.type == "date" and {"died", "death"}.intersection(self.key.split("_")):
            return {"": ["alive", "living"]}
        heights = self.numeric and self.measured.rpartition("_")[2] in ("elevation", "altitude")
        if heights and any(value.startswith("-") for value in self.values):
            return {"< 0": ["below sea level"]}
        sexes = {"f": "female", "m": "male"}
        if self._last not in ("sex", "gender") or not {one.lower() for one in self.values} <= sexes.keys():
            return {}
        words = {one: sexes[one.lower()] for one in sorted(self.values)}
        return {one: [word, *english().synonyms[word]] for one, word in words.items()}

    @property
    def idle(self) -> list[str]:
        """The words that may stand beside it and ask nothing."""
        of = [self.name.removesuffix("_since").replace("_", " ")] if self.name.endswith("_since") else []
        # "How many people were evacuated", of a number `evacuated`.
        people = ["people", "person"] if self.numeric and verb_of(self.key) else []
        # "How long was it in the tank", of `days_in_tank`.
        spent = [one for one in self.name.split("_")[1:] if self._leading and one not in words_of_names("joints")]
        # "Which bugs were fixed", of a number `fixed_bugs`.
        verb = verb_of(self.key.partition("_")[0]) if self.numeric and "_" in self.key else ""
        called = ["=called"] if self._last in ("name", "nickname") else []
        # "How much does it cost a month", of a `monthly_cost`.
        first = self.key.partition("_")[0]
        period = period_of(first) or (first if first in words_of_names("spans") and self.numeric else "")
        every = [f"(a|per|each|every) {period}"] if period else []
        # "Which depots are open on Sundays", of a flag `sunday_opening`.
        deed = ["open"] if self.offered and self._last == "opening" else []
        beside = [*of, *people, *([verb] if verb else []), *called, *every, *deed]
        return [*self._phrases.get("also", []), *beside, *spent]

    @property
    def _phrases(self) -> dict[str, list[str]]:
        front = self.key.removesuffix("_date")
        if self.type == "date" and front != self.key:
            # "When was it released", of a `release_date`.
            of_deed = (phrases for one in (front, f"{front}d", f"{front}ed") if (phrases := phrases_of(one)))
            return {**phrases_of("date"), **next(of_deed, {})}
        if self.type == "text" and "_" in self.key and verb_of(self.key.rpartition("_")[2]):
            # How a thing was acquired is not when.
            return {}
        lasts = self.unit in LASTING
        if self.unit == MILLISECONDS:
            return measures()["latency"]
        if lasts and self.measured == "length":
            return measures()["duration"]
        if self._rated in units():
            # More hours a week are not longer.
            return {}
        of_itself = phrases_of(self.measured, of_persons=self._of_persons)
        return of_itself or (measures()["lasting"] if lasts else {})

    @property
    def _of_persons(self) -> bool:
        """Whether it says who did something, by its name, and most of its values look like persons: Ben Okafor."""
        if self.type != "text" or not self.measured.endswith(DOERS):
            # Reading all values takes time.
            return False
        named = sum(_PERSON.fullmatch(one) is not None for one in self.values)
        return named >= MOST_PERSONS * len(self.values)

    @property
    def sorts(self) -> bool:
        """Whether its values are few texts that sort the rows, so that questions have their words."""
        values = parts_of(self.values) or self.values
        return self.type == "text" and len(values) <= MOST_SORTS and len(values) <= SORTED * self.filled

    @property
    def of_day(self) -> bool:
        """Whether its values are times of a day: 08:15."""
        return self.type == "text" and all(_OF_DAY.fullmatch(one) for one in self.values)

    @property
    def examples(self) -> str:
        """Some of its values, for a comment."""
        return ", ".join(" ".join(one.split())[:30] for one in sorted(self.values)[:3])

    @property
    def key_type(self) -> str:
        """The type of the key: numbers in a currency are money."""
        if self.type == "bigint":
            return "integer"
        return str(units().get(self._last, {}).get("type", self.type)) if self.numeric else self.type

    @property
    def key(self) -> str:
        """The name of the key: the column's without its unit."""
        return self.name.removesuffix(f"_{self._last}") if self._unit and not self.keeps_unit else self.name

    @property
    def _unit(self) -> dict[str, Any]:
        """The unit of its numbers; empty without one, and for the base of a rate: a price per kilo, mg/l."""
        *_, before, last = ("", *self.name.split("_"))
        # Called to the bar, mg/l.
        is_none = before == "the" or (last == self._last and before in units())
        unit = unit_of_words(self._last, self.name.split("_"))
        return unit if self.numeric and not self._is_rate and not is_none else {}

    @property
    def _leading(self) -> dict[str, Any]:
        """The unit of its numbers where its name begins with that of a time: minutes_down, days_in_tank."""
        first, _, rest = self.name.partition("_")
        unit = units().get(first, {})
        lasts = unit.get("unit") in LASTING and len(first) > MAX_UNIT
        return unit if rest and lasts and self.numeric and not self._unit and not self._is_rate else {}

    @property
    def _rated(self) -> str:
        """What is told for one of the last word of a rate: price_eur of price_eur_per_kg."""
        return self.name.rpartition("_per_")[0] if self._is_rate else ""

    @property
    def _is_rate(self) -> bool:
        """Whether its last word is the base of a rate: a price_per_kg."""
        return self.name.endswith(f"_per_{self._last}")

    @property
    def _last(self) -> str:
        """The last word of its name, or the last two where they are a unit: million_eur."""
        words = self.name.split("_")
        two = "_".join(words[-2:])
        return two if len(words) > 2 and two in units() else words[-1]


def _alternatives(words: Iterable[str]) -> str:
    """Plain words as a phrase has them between brackets."""
    return "|".join(one for one in words if one.replace(" ", "").isalpha() and one.isascii())


def verb_of(participle: str) -> str:
    """The verb of a participle: `sell` of sold, `allow` of allowed, `save` of saved; empty for other words."""
    if forms := irregular(participle):
        return forms[0]
    stems = (participle.removesuffix("ed"), participle.removesuffix("d")) if participle.endswith("ed") else ()
    verbs = english_of(one for one in stems if participle in inflections(one))
    if participle.endswith("eed"):
        # Agreed is one, and speed is none.
        verbs = [one for one in verbs if one in usual_words()]
    return f"({'|'.join(verbs)})" if len(verbs) > 1 else "".join(verbs)
