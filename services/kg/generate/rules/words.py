"""What a domain's `words.yaml` says, and English that all domains share.

The catalogue's own words are words already: names, labels and aliases of functions, keys and facets need not be said
again. A file says what people say beside them, what fits no single key, and what the graph does not know.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from services.kg.definition.folder import Part
from services.kg.generate.rules.phrases import BadPhrase, pattern


def _readable(phrases: tuple[str, ...]) -> tuple[str, ...]:
    for phrase in phrases:
        try:
            pattern(phrase)
        except BadPhrase as error:
            raise ValueError(str(error)) from error
    return phrases


def _several(value: Any) -> Any:
    """One phrase stands for a list of one; a number is the word that it was."""
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(one, bool) for one in values):
        raise ValueError("YAML reads a word here as yes or no; write it in quotes")
    return tuple(str(one) if isinstance(one, int | float) else one for one in values)


def _either(value: Any) -> Any:
    """A list of choices; a bare key is one that its own words choose."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple({"key": one} if isinstance(one, str) else one for one in values)


# A reading's function where the graph knows no answer.
NOTHING = "none"

Phrases = Annotated[tuple[str, ...], BeforeValidator(_several), AfterValidator(_readable)]
Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
Place: TypeAlias = tuple[str | int, ...]
Amount = Literal["none", "some", "one", "several", "any"]


class KindWords(Part):
    """Nouns for a kind of names.

    Args:
        words: film, movie.
        named: what decides for this kind where one name is of several: `song _`.
        unless: what decides against it all the same.
    """

    words: Phrases = ()
    named: Phrases = ()
    unless: Phrases = ()


class KeyWords(Part):
    """What asks for a key or facet.

    Args:
        words: phrases beside its name, label and aliases.
        unless: phrases that mean something else by these words.
        only: whether the catalogue's own words for it do not count.
        more: adjectives of a great value: long, expensive; old of an age, and late of a date.
        less: adjectives of a small value; of a date, of an early one.
        also: words that may stand in such a question and ask nothing.
        values: a value of the key -> phrases for it; by these words a question narrows the rows.
        unit: words behind its numbers: metres, people.
        currency: the sign before its numbers.
        open: whether the key's values in the store are its phrases; for keys with some hundred values at most.
    """

    words: Phrases = ()
    unless: Phrases = ()
    only: bool = False
    more: Names = ()
    less: Names = ()
    also: Phrases = ()
    values: Mapping[str, Phrases] = {}
    unit: Phrases = ()
    currency: str = ""
    open: bool = False


class Show(Part):
    """A key that a reading shows: by the key's own words, or when one of these phrases stands there.

    Args:
        key: its name, or a facet's.
        when: phrases that choose it; its own words where there are none.
        unless: phrases that refuse it.
    """

    key: str
    when: Phrases = ()
    unless: Phrases = ()


class Narrow(Part):
    """A condition of a reading.

    Args:
        key: what it is on; by the words of the key's `values` unless `value` or `compare` is given.
        value: what it always is.
        compare: the other key, for rows in which two keys differ; with `sign`.
        sign: gt or lt.
        when: phrases, or it does not hold.
        unless: phrases with which it does not hold.
    """

    key: str
    value: str | int | bool | None = None
    compare: str = ""
    sign: Literal["gt", "lt"] = "gt"
    when: Phrases = ()
    unless: Phrases = ()


class Order(Part):
    """What a reading sorts by.

    Args:
        key: of a superlative.
        when: phrases; the general words for first and last, greatest and least where there are none.
        top: rows that are shown.
        least: whether the smallest come first; None: by the question's words.
    """

    key: str
    when: Phrases = ()
    top: int = 1
    least: bool | None = None


class Default(Part):
    """What stands for a time that is not said."""

    value: str
    when: Phrases = ()


class Reading(Part):
    """One way to read a question: the first of a domain's that fits writes its program.

    Args:
        function: what it calls; `none`: the graph does not know what is asked, and no further reading is tried.
        facet: whose rows it means, where it means those of another function.
        when: phrases of which one must stand in the question.
        also_when: further phrases of which one must.
        unless: phrases of which none may.
        names: kind of names -> how many the question has.
        by: parameter -> kind of its names; a call for each name of the first. By default all that the catalogue allows.
        guess: whether words that ask nothing may be a name that the graph spells otherwise.
        guess_after: phrases behind which such a name stands.
        strip: words that end a guessed name and are none of it.
        each: calls at most.
        together: phrases by which all names are meant in one call.
        compares: whether names must stand beside each other, or must not.
        needs: what the question must say: `years` or `no_years`, `dated` (a time) or `no_time` (none, or the next),
            `window` (of several days), `number`, `show`, `value`, `hop`, or a key by the words of its values.
        years: the key that years narrow; or `argument` where they are the function's own.
        time: whether the function's time is taken from the question.
        no_time: time words that mean no time here.
        default_time: what stands for one that is not said.
        value: key whose value is taken over from the question's words (`<text>`).
        value_when: those phrases.
        where: conditions.
        show: keys, the first that is chosen.
        otherwise: the key that is shown when none is.
        count: phrases that ask for a number of rows; `never`, `always`, or the general ones.
        count_unless: phrases by which they do not.
        total: keys that are summed up when a total is asked for, and in windows.
        windows: key -> how several days are made one value.
        order: superlatives.
        first: the key by which rows have a first and a last.
        every: whether all rows are listed when nothing else is said.
        many: whether several names are meant even where nothing compares them.
        then: a reading that goes on with the rows of this one.
        also: a reading that adds its statements.
    """

    function: str
    facet: str = ""
    when: Phrases = ()
    also_when: Phrases = ()
    unless: Phrases = ()
    names: Mapping[str, Amount] = {}
    by: Mapping[str, str] | None = None
    guess: bool = False
    guess_after: Phrases = ()
    strip: Phrases = ()
    each: int = 3
    together: Phrases = ()
    compares: bool | None = None
    needs: Names = ()
    years: str = ""
    time: bool = True
    no_time: Phrases = ()
    default_time: tuple[Default, ...] = ()
    value: str = ""
    value_when: Phrases = ()
    where: Annotated[tuple[Narrow, ...], BeforeValidator(_either)] = ()
    show: Annotated[tuple[Show, ...], BeforeValidator(_either)] = ()
    otherwise: str = ""
    count: Literal["never", "always"] | Phrases = ()
    count_unless: Phrases = ()
    total: Names = ()
    windows: Mapping[str, Literal["avg", "sum", "min", "max"]] = {}
    order: tuple[Order, ...] = ()
    first: str = ""
    every: bool = False
    many: bool = False
    then: "tuple[Hop, ...]" = ()
    also: "tuple[Reading, ...]" = ()

    def faults(self, known: Mapping[str, frozenset[str] | None], kinds: frozenset[str]) -> "list[tuple[Place, str]]":
        """As `Words.faults`, for one reading; paths are its own."""
        found: list[tuple[Place, str]] = []
        found += [(("names", one), f"there is no kind {one}") for one in self.names if one not in kinds]
        if self.function == NOTHING:
            return found
        if self.function not in known:
            return [*found, (("function",), f"there is no function {self.function}")]
        keys = [("show", one.key) for one in self.show] + [("where", one.key) for one in self.where]
        keys += [("order", one.key) for one in self.order] + [("windows", one) for one in self.windows]
        keys += [("first", self.first), ("otherwise", self.otherwise), ("value", self.value)]
        mine = known[self.function]
        found += [((field,), f"{self.function} has no key {key}") for field, key in keys if key and not _has(mine, key)]
        for index, other in enumerate(self.also):
            found += [(("also", index, *path), reason) for path, reason in other.faults(known, kinds)]
        return found


class Hop(Part):
    """A fact of a fact: of the capital of a country, its height.

    Args:
        key: what the first statement shows and the second goes on with.
        when: phrases that say so.
        function: of the second; that of the first where none is given.
        show: keys of the second, the first that is chosen.
        count: whether rows of the second are counted.
    """

    key: str
    when: Phrases = ()
    function: str = ""
    show: Annotated[tuple[Show, ...], BeforeValidator(_either)] = ()
    count: Phrases = ()


class Total(Part):
    """A total that a function's rows are summed up to, as wins of games.

    Args:
        where: conditions of the rows that it counts, key -> value.
        summed: the key that it sums up, where it counts no rows.
        words: what asks for it.
        also: words that may stand in such a question and ask nothing.
    """

    where: Mapping[str, str] = {}
    summed: str = ""
    words: Phrases = ()
    also: Phrases = ()


class FunctionWords(Part):
    """What asks for a function, and words of its keys that hold there only.

    Args:
        words: what asks for the number of its rows.
        also: words that may stand in such a question and ask nothing.
        keys: as those of the domain; what is given here replaces it.
        counted: totals by the name of their column.
        sides: key -> value -> how the column begins that counts such rows only.
        once: keys of which a row is counted once.
    """

    words: Phrases = ()
    also: Phrases = ()
    keys: Mapping[str, KeyWords] = {}
    counted: Mapping[str, Total] = {}
    sides: Mapping[str, Mapping[str, str]] = {}
    once: Names = ()


class Editions(Part):
    """Numbers of yearly events: the 61st of what began after 1957 is of 2018.

    Args:
        words: what stands behind such a number.
        before: the year before the first.
    """

    words: Phrases
    before: int


class Words(Part):
    """A domain's `words.yaml`.

    Args:
        kinds: kind of names -> nouns for it.
        keys: key or facet -> what asks for it, in every function that has it.
        functions: function -> what asks for it.
        unknown: what people ask of such things and the graph does not know; such a question gets no program.
        editions: yearly events that people number.
        fillers: words that ask nothing here.
        readings: how questions are read, in order; without any the matcher reads them by the catalogue alone.
        guided: whether the readings are all; else the matcher tries the catalogue when none fits.
    """

    kinds: Mapping[str, KindWords] = {}
    keys: Mapping[str, KeyWords] = {}
    functions: Mapping[str, FunctionWords] = {}
    unknown: Phrases = ()
    editions: Editions | None = None
    fillers: Names = ()
    readings: tuple[Reading, ...] = ()
    guided: bool = False

    def key(self, function: str, name: str) -> KeyWords:
        """What asks for a key of a function; nothing more than its name where the file says nothing."""
        own = self.functions.get(function)
        return (own.keys.get(name) if own else None) or self.keys.get(name) or _PLAIN

    def faults(self, known: Mapping[str, frozenset[str] | None], kinds: frozenset[str]) -> "list[tuple[Place, str]]":
        """Where the file speaks of a function, key or kind that the catalogue does not have: (path, reason).

        Args:
            known: function -> what words can ask of it; None where its entities may have any key.
            kinds: the domain's kinds of names.
        """
        found: list[tuple[Place, str]] = []
        found += [(("kinds", one), f"there is no kind {one}") for one in self.kinds if one not in kinds]
        if None not in known.values():
            every = frozenset[str]().union(*(one for one in known.values() if one is not None))
            found += [(("keys", one), f"no function has a key {one}") for one in self.keys if one not in every]
        for name, own in self.functions.items():
            if name not in known:
                found.append((("functions", name), f"there is no function {name}"))
                continue
            found += [
                (("functions", name, "keys", key), f"{name} has no key {key}")
                for key in own.keys
                if not _has(known[name], key)
            ]
        for index, reading in enumerate(self.readings):
            found += [(("readings", index, *path), reason) for path, reason in reading.faults(known, kinds)]
        return found


def _has(known: frozenset[str] | None, key: str) -> bool:
    return known is None or key in known


_PLAIN = KeyWords()
