"""What a domain's `words.yaml` says, and English that all domains share.

The catalogue's own words are words already: names, labels and aliases of functions, keys and facets need not be said
again. A file says what people say beside them, what fits no single key, and what the graph does not know.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from services.kg.definition.folder import PACKAGED, Part
from services.kg.generate.rules.phrases import BadPhrase, pattern
from services.kg.language.tree import Operator


def _readable(phrases: tuple[str, ...]) -> tuple[str, ...]:
    for phrase in phrases:
        try:
            pattern(phrase)
        except BadPhrase as error:
            raise ValueError(str(error)) from error
    return phrases


def _several(value: Any) -> Any:
    """The values as a tuple of words; one phrase is a list of one."""
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(one, bool) for one in values):
        raise ValueError("YAML reads a word here as yes or no; write it in quotes")
    return tuple(str(one) if isinstance(one, int | float) else one for one in values)


def _either(value: Any) -> Any:
    """The choices as a tuple; a bare key is one that its own words choose."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple({"key": one} if isinstance(one, str) else one for one in values)


# A reading's function where the graph knows no answer.
NOTHING = "none"

Phrases = Annotated[tuple[str, ...], BeforeValidator(_several), AfterValidator(_readable)]
WordSet = Annotated[frozenset[str], BeforeValidator(str.split)]
Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
Place: TypeAlias = tuple[str | int, ...]
# What words can ask of each function; None where its entities may have any key.
KeysByFunction: TypeAlias = Mapping[str, frozenset[str] | None]
Amount = Literal["none", "some", "one", "several", "any"]


class KindWords(Part):
    """Nouns for a kind of names."""

    words: Phrases = ()  # film, movie
    named: Phrases = ()  # what decides for this kind where one name is of several: `song _`
    unless: Phrases = ()  # what decides against it all the same


class KeyWords(Part):
    """What asks for a key or facet."""

    words: Phrases = ()  # phrases beside its name, label and aliases
    unless: Phrases = ()  # phrases that mean something else by these words
    only: bool = False  # whether the catalogue's own words for it do not count
    more: Names = ()  # adjectives of a great value: long, expensive; old of an age, and late of a date
    less: Names = ()  # adjectives of a small value; of a date, of an early one
    also: Phrases = ()  # words that may stand in such a question and ask nothing
    # A value of the key -> phrases for it; by these words a question narrows the rows.
    values: Mapping[str, Phrases] = {}
    unit: Phrases = ()  # words behind its numbers: metres, people
    currency: str = ""  # the sign before its numbers
    # Whether the key's values in the store are its phrases; for keys with some hundred values at most.
    open: bool = False


class Show(Part):
    """A key that a reading shows: by the key's own words, or when one of these phrases stands there."""

    key: str  # its name, or a facet's
    when: Phrases = ()  # phrases that choose it; its own words where there are none
    unless: Phrases = ()  # phrases that refuse it


class Narrow(Part):
    """A condition of a reading."""

    key: str  # what it is on; by the words of the key's `values` unless `value` or `compare` is given
    value: str | int | bool | None = None  # what it always is
    compare: str = ""  # the other key, for rows in which two keys differ; with `sign`
    sign: Literal["gt", "lt"] = "gt"  # gt or lt
    when: Phrases = ()  # phrases, or it does not hold
    unless: Phrases = ()  # phrases with which it does not hold


class Order(Part):
    """What a reading sorts by."""

    key: str  # of a superlative
    when: Phrases = ()  # phrases; the general words for first and last, greatest and least where there are none
    top: int = 1  # rows that are shown
    least: bool | None = None  # whether the smallest come first; None: by the question's words


class Default(Part):
    """The time of a question that says none."""

    value: str
    when: Phrases = ()


class Reading(Part):
    """One way to read a question: the first of a domain's that fits writes its program."""

    function: str  # what it calls; `none`: the graph does not know what is asked, and no further reading is tried
    facet: str = ""  # whose rows it means, where it means those of another function
    when: Phrases = ()  # phrases of which one must stand in the question
    also_when: Phrases = ()  # further phrases of which one must
    unless: Phrases = ()  # phrases of which none may
    names: Mapping[str, Amount] = {}  # kind of names -> how many the question has
    # Parameter -> kind of its names; a call for each name of the first. By default all that the catalogue allows.
    by: Mapping[str, str] | None = None
    guess: bool = False  # whether words that ask nothing may be a name that the graph spells otherwise
    guess_after: Phrases = ()  # phrases behind which such a name stands
    strip: Phrases = ()  # words that end a guessed name and are none of it
    each: int = 3  # calls at most
    together: Phrases = ()  # phrases by which all names are meant in one call
    compares: bool | None = None  # whether names must stand beside each other, or must not
    # What the question must say: `years` or `no_years`, `dated` (a time) or `no_time` (none, or the next), `window` (of
    # several days), `number`, `show`, `value`, `hop`, or a key by the words of its values.
    needs: Names = ()
    years: str = ""  # the key that years narrow; or `argument` where they are the function's own
    time: bool = True  # whether the function's time is taken from the question
    no_time: Phrases = ()  # time words that mean no time here
    default_time: tuple[Default, ...] = ()  # what stands for one that is not said
    value: str = ""  # key whose value is taken over from the question's words (`<text>`)
    value_when: Phrases = ()  # those phrases
    where: Annotated[tuple[Narrow, ...], BeforeValidator(_either)] = ()  # conditions
    show: Annotated[tuple[Show, ...], BeforeValidator(_either)] = ()  # keys, the first that is chosen
    otherwise: str = ""  # the key that is shown when none is
    # Phrases that ask for a number of rows; `never`, `always`, or the general ones.
    count: Literal["never", "always"] | Phrases = ()
    count_unless: Phrases = ()  # phrases by which they do not
    total: Names = ()  # keys that are summed up when a total is asked for, and in windows
    windows: Mapping[str, Literal["avg", "sum", "min", "max"]] = {}  # key -> how several days are made one value
    order: tuple[Order, ...] = ()  # superlatives
    first: str = ""  # the key by which rows have a first and a last
    every: bool = False  # whether all rows are listed when nothing else is said
    many: bool = False  # whether several names are meant even where nothing compares them
    then: "tuple[Hop, ...]" = ()  # a reading that goes on with the rows of this one
    also: "tuple[Reading, ...]" = ()  # a reading that adds its statements

    def faults(self, functions: KeysByFunction, kinds: frozenset[str]) -> "list[tuple[Place, str]]":
        """As `Words.faults`, for one reading; paths are its own."""
        faults: list[tuple[Place, str]] = []
        faults += [(("names", one), f"there is no kind {one}") for one in self.names if one not in kinds]
        if self.function == NOTHING:
            return faults
        if self.function not in functions:
            return [*faults, (("function",), f"there is no function {self.function}")]
        keys = [("show", one.key) for one in self.show] + [("where", one.key) for one in self.where]
        keys += [("order", one.key) for one in self.order] + [("windows", one) for one in self.windows]
        keys += [("first", self.first), ("otherwise", self.otherwise), ("value", self.value)]
        own = functions[self.function]
        faults += [((field,), f"{self.function} has no key {key}") for field, key in keys if key and not _has(own, key)]
        for index, other in enumerate(self.also):
            faults += [(("also", index, *path), reason) for path, reason in other.faults(functions, kinds)]
        return faults


class Hop(Part):
    """A fact of a fact: of the capital of a country, its height."""

    key: str  # what the first statement shows and the second goes on with
    when: Phrases = ()  # phrases that say so
    function: str = ""  # of the second; that of the first where none is given
    show: Annotated[tuple[Show, ...], BeforeValidator(_either)] = ()  # keys of the second, the first that is chosen
    count: Phrases = ()  # whether rows of the second are counted


class Total(Part):
    """A total that a function's rows are summed up to, as wins of games."""

    where: Mapping[str, str] = {}  # conditions of the rows that it counts, key -> value
    summed: str = ""  # the key that it sums up, where it counts no rows
    words: Phrases = ()  # what asks for it
    also: Phrases = ()  # words that may stand in such a question and ask nothing


class FunctionWords(Part):
    """What asks for a function, and words of its keys that hold there only."""

    words: Phrases = ()  # what asks for the number of its rows
    also: Phrases = ()  # words that may stand in such a question and ask nothing
    keys: Mapping[str, KeyWords] = {}  # as those of the domain; what is given here replaces it
    counted: Mapping[str, Total] = {}  # totals by the name of their column
    sides: Mapping[str, Mapping[str, str]] = {}  # key -> value -> how the column begins that counts such rows only
    once: Names = ()  # keys of which a row is counted once


class Editions(Part):
    """Numbers of yearly events: the 61st of what began after 1957 is of 2018."""

    words: Phrases  # what stands behind such a number
    before: int  # the year before the first


class Words(Part):
    """A domain's `words.yaml`."""

    kinds: Mapping[str, KindWords] = {}  # kind of names -> nouns for it
    keys: Mapping[str, KeyWords] = {}  # key or facet -> what asks for it, in every function that has it
    functions: Mapping[str, FunctionWords] = {}  # function -> what asks for it
    unknown: Phrases = ()  # what people ask of such things and the graph does not know; such a question gets no program
    editions: Editions | None = None  # yearly events that people number
    fillers: Names = ()  # words that ask nothing here
    # How questions are read, in order; without any the matcher reads them by the catalogue alone.
    readings: tuple[Reading, ...] = ()
    guided: bool = False  # whether the readings are all; else the matcher tries the catalogue when none fits

    def key(self, function: str, name: str) -> KeyWords:
        """What asks for a key of a function; nothing more than its name where the file says nothing."""
        return self.function(function).keys.get(name) or self.keys.get(name) or _PLAIN

    def function(self, name: str) -> FunctionWords:
        """What asks for a function; nothing where the file says nothing."""
        return self.functions.get(name) or _NO_WORDS

    def faults(self, functions: KeysByFunction, kinds: frozenset[str]) -> "list[tuple[Place, str]]":
        """Functions, keys and kinds of the file that the catalogue does not have: (path, reason)."""
        faults: list[tuple[Place, str]] = []
        faults += [(("kinds", one), f"there is no kind {one}") for one in self.kinds if one not in kinds]
        if None not in functions.values():
            every = frozenset(key for keys in functions.values() for key in keys or ())
            faults += [(("keys", one), f"no function has a key {one}") for one in self.keys if one not in every]
        for name, own in self.functions.items():
            if name not in functions:
                faults.append((("functions", name), f"there is no function {name}"))
                continue
            unknown = (key for key in own.keys if not _has(functions[name], key))
            faults += [(("functions", name, "keys", key), f"{name} has no key {key}") for key in unknown]
        for index, reading in enumerate(self.readings):
            faults += [(("readings", index, *path), reason) for path, reason in reading.faults(functions, kinds)]
        return faults


def _has(keys: frozenset[str] | None, key: str) -> bool:
    return keys is None or key in keys


_PLAIN, _NO_WORDS = KeyWords(), FunctionWords()


class English(Part):
    """Words of general English by what they ask for; see `english.yaml`."""

    count: Phrases
    average: Phrases
    total: Phrases
    reckoning: Phrases
    first: Phrases
    last: Phrases
    together: Phrases
    several: Phrases
    every: Phrases
    greatest: Phrases
    least: Phrases
    sooner: Phrases
    greater: Phrases
    lesser: Phrases
    difference: Phrases
    ratio: Phrases
    after: Phrases
    since: Phrases
    before: Phrases
    until: Phrases
    through: Phrases
    at: Phrases
    vague: Phrases
    before_months: WordSet
    or_later: Phrases
    or_earlier: Phrases
    or_more: Phrases
    or_less: Phrases
    between: Phrases
    over: Phrases
    under: Phrases
    whole: Phrases
    doing: Phrases
    beneath: Phrases
    dates: Phrases
    aside: Phrases
    excluding: Phrases
    listing: Phrases
    by: Phrases
    for_each: Phrases
    negating: WordSet
    between_not: WordSet
    before_values: WordSet
    without: WordSet
    having: WordSet
    none: WordSet
    before_nouns: WordSet
    before_kinds: WordSet
    before_counts: WordSet
    before_names: WordSet
    numbering: WordSet
    joints: WordSet
    span_joints: WordSet
    roughly: WordSet
    apiece: WordSet
    amounts: WordSet
    how_done: WordSet
    we: WordSet
    did: WordSet
    light: WordSet
    may: WordSet
    synonyms: Mapping[str, Phrases]
    opposites: Mapping[str, Phrases]
    fillers: WordSet

    @property
    def sums(self) -> Phrases:
        """What asks for all of it together."""
        return (*self.total, *self.reckoning)

    @property
    def time_operators(self) -> tuple[tuple[Operator, Phrases], ...]:
        """Operators of the language, with what says so before a time."""
        return ("gt", self.after), ("lt", self.before), ("ge", self.since), ("le", self.until), ("eq", self.at)

    @property
    def open_ends(self) -> tuple[tuple[Operator, Phrases], ...]:
        """Operators of the language, with what says so behind a time."""
        return ("ge", self.or_later), ("le", self.or_earlier)


@cache
def english() -> English:
    return PACKAGED.model("generate/rules/english.yaml", English)[0]
