"""The catalogue of domains: functions over views with keys, for prompts, validation, completion and decoding grammars.

A function is a view, a SELECT whose columns are its keys, and its parameters are filters of that view. So every
combination of conditions, sorting and counting means the same for every function, and a new function is data.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from rapidfuzz import fuzz, process
from sqlalchemy import ColumnElement, Connection, Table, TextualSelect

from services.kg.definition.folder import Folder
from services.kg.definition.schema import Facet, Fixed, Identity, KeyKind, NameWords, ParameterKind, Popularity
from services.kg.errors import UnknownKey, UnknownName
from services.kg.language.tree import Operator, Project, Step
from services.kit.text.times import PACIFIC, Calendar

if TYPE_CHECKING:
    from services.kg.definition.texts import Texts

# Kinds of keys that are summed, averaged and compared as numbers.
NUMERIC = frozenset({"integer", "number", "money", "percent", "flag"})
# A unit that is a currency: EUR.
CURRENCY = re.compile(r"[A-Z]{3}")
# A similarity from which on a spelling means a name of the catalogue; by trial a person agrees with nearly all.
NEAR = 80.0

Compare = Callable[[Any, Operator, tuple[Any, ...]], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Key:
    """A column of a view."""

    name: str  # as programs spell it
    kind: KeyKind = "text"  # of its values; money is in the currency of the row or US dollars
    aliases: tuple[str, ...] = ()  # other spellings that people and models use
    label: str = ""  # in words, when it is not the name
    unit: str = ""  # behind a value in words
    entity: str = ""  # the kind of names, where its values are names
    id_column: str = ""  # the view's column with the identifiers of those entities
    # The comparison of conditions where the plain one is wrong: (columns of the view, operator, values) -> clause.
    compare: Compare | None = None
    # The way to write a value: `plain` (a number without separators), `country` or `language` (a code with its words),
    # `age` (a birthday with the age); or the words of each code.
    spell: Literal["", "plain", "country", "language", "age"] | Mapping[str, str] = field(default="", hash=False)
    ages: bool = False  # whether the text says the age at this date of a person whose birthday is in the same program

    @property
    def is_money(self) -> bool:
        """Whether its numbers are money, in any currency."""
        return self.kind == "money" or CURRENCY.fullmatch(self.unit) is not None

    @property
    def words(self) -> str:
        return self.label or self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument by position."""

    name: str  # as a keyword spells it
    # Entity (resolved through the name index), time (through the time resolver), integer, text.
    kind: ParameterKind = "entity"
    column: str = ""  # the view's column that it filters
    entities: tuple[str, ...] = ()  # the kinds of names that it may be
    required: bool = False  # whether a call without it asks for too much
    series: bool = False  # under ALL, every entity whose name begins so is meant: a series of films
    text_column: str = ""  # the view's column that holds the name itself, for things that the graph has no entity of
    # The filter where no column holds it: (columns of the view, values) -> clause.
    clause: Callable[[Any, tuple[Any, ...]], ColumnElement[bool]] | None = None


@dataclass(frozen=True, eq=False)
class Function:
    """A view with its parameters."""

    name: str  # `get_...`
    domain: str  # the domain that defines it
    summary: str  # its purpose, in the prompt
    parameters: tuple[Parameter, ...]  # by position
    view: TextualSelect  # columns named as the keys, and hidden ones with a leading underscore
    keys: tuple[Key, ...]  # to project, compare and sort by
    subject: tuple[str, ...] = ()  # keys that name a row, always fetched
    default: tuple[str, ...] = ()  # keys that are shown when none is projected
    # Parameter -> those keys when it is the only one of the pair that is given.
    default_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()  # default order, a leading `-` for descending
    # Two parameters whose entities the rows link; counting with one given counts entities of the other, and several
    # names for one mean those that all of them share.
    pair: tuple[str, str] | None = None
    grouped: bool = False  # whether a row stands for all of its subject, with their `count`
    # Parameter, or parameter with one condition as `person job=director`, -> relation of `stated_total`.
    totals: Mapping[str, str] = field(default_factory=dict)
    event: str = ""  # the key whose date, after the query time, hides a row
    facets: Mapping[str, Facet] = field(default_factory=dict)  # keys that are another function's rows
    dynamic: bool = False  # whether rows are `key` and `value`, so that any key of the entity can be projected
    prose: str = ""  # the key of a dynamic function whose value is prose, which speaks for itself
    percent: tuple[str, ...] = ()  # words in keys of a dynamic function whose numbers are shares
    # Key -> the key that tells its namesakes apart, shown beside it.
    apart: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)  # people's words -> keys, for a dynamic function
    span: tuple[str, str] | None = None  # two parameters that are the first and the last of a range
    presets: Mapping[str, Fixed] = field(default_factory=dict)  # key -> the value that its rows have
    limit: int | None = None  # rows at most, for functions that mean one row
    aliases: tuple[str, ...] = ()  # other spellings
    # The domain's own rules for time and order; they change the `Scope` that they are given.
    refine: Callable[..., Any] | None = None
    narrates: bool = False  # whether the domain's wording of a row is a sentence that says all of it
    conditioned: bool = False  # whether a call may end with a condition or a list of them
    whole: bool = False  # whether a call without arguments means all rows; else it asks for too much
    hidden: bool = False  # whether prompts lack it, because another function's facet is shorter

    @cached_property
    def exact_keys(self) -> Mapping[str, Key]:
        """The keys by their names alone."""
        return {key.name: key for key in self.keys}

    @property
    def projected(self) -> tuple[str, ...]:
        """The names that a program may project: keys and facets."""
        return tuple(dict.fromkeys((*self.exact_keys, *self.facets)))

    @cached_property
    def _spelt(self) -> Mapping[str, Key]:
        return {spelling(one): key for key in self.keys for one in (*key.aliases, key.name)}

    @cached_property
    def _facets(self) -> Mapping[str, Facet]:
        spelt = [(spelling(one), facet) for name, facet in self.facets.items() for one in (name, *facet.aliases)]
        return dict(reversed(spelt))

    def find_key(self, name: str) -> Key | None:
        """The key of this name or alias; None for a name that is nowhere near any."""
        wanted = spelling(name)
        if wanted in self._spelt:
            return self._spelt[wanted]
        near = process.extractOne(wanted, self._spelt.keys(), scorer=fuzz.ratio, score_cutoff=NEAR)
        return self._spelt[near[0]] if near else None

    def facet_of(self, steps: Sequence[Step]) -> Facet | None:
        """The facet that the first step projects alone: of `get_person(x)["music"]` the works."""
        match steps:
            case [Project([key]), *_]:
                return self._facets.get(spelling(key))
        return None

    def key(self, name: str) -> Key:
        """The key of this name.

        Raises:
            UnknownKey: with the keys that there are.
        """
        if (match := self.find_key(name)) is not None:
            return match
        message = f'{self.name} has no "{name}"; it has {", ".join(self.projected)}'
        raise UnknownKey(message, expected=nearest(name, self.projected))


class NameRules(NameWords):
    """The peculiarities of the names of a kind, with those in files of their own."""

    common_words: frozenset[str] = frozenset()  # single words of these are no such name
    # Squashed normal forms that are refused unless an entity has exactly that name.
    generic: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()  # those that are refused even then


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of names."""

    name: str  # as functions and the index call it
    entities: TextualSelect  # rows of an identifier, the main name and the others of `also`
    rules: NameRules = field(default_factory=NameRules)  # what is particular about its names
    also: tuple[float, ...] = ()  # share of the weight that each of the other columns' names has
    base: float = 0.0  # the least popularity, 0..1
    # Parts that are added to it, each with rows of an identifier and a number, or an identifier of the kind `of`.
    popularity: tuple[tuple[Popularity, TextualSelect], ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # normal form of a main name -> other names
    without_brackets: float = 0.0  # share of the weight that a name without its bracket has; 0 for none
    # The names of an entity, (main name, identifier) -> names with their share of the weight.
    spellings: Callable[[str, str], Iterable[tuple[str, float]]] | None = None
    table: str = ""  # the table of its entities
    id: str = ""  # the column of the identifier there
    key: str = ""  # the column of the main name there
    identity: Identity = field(default_factory=Identity)  # how a load tells its entities; only loaders read it


@dataclass(frozen=True, slots=True)
class Domain:
    """One area of the graph."""

    name: str  # the folder's name; of the bundled ones the classifier's label
    functions: tuple[Function, ...]  # in the order of the file
    kinds: Mapping[str, Kind]  # of names, by name
    tables: Mapping[str, Table]  # its own, by name
    wording: "Texts"  # of its rows and statements
    folder: Folder  # its files
    calendar: Calendar  # of its records
    timed: bool = False  # whether prompts have the date, on which questions lean
    bundled: bool = False  # whether it comes with the service
    # A question to answer at the start, with a name and a date, so that their readers are warm; the graph need not know
    # them.
    warm_up: str = ""

    @property
    def shown(self) -> tuple[Function, ...]:
        """The functions that prompts show."""
        return tuple(function for function in self.functions if not function.hidden)


class Catalogue:
    """All domains, looked up as programs spell things; no two have a name, a kind or a table in common."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self.domains = {domain.name: domain for domain in domains}
        self._functions: dict[tuple[str, str], Function] = {}
        for function in self.functions:
            for name in (function.name, *function.aliases):
                self._functions[function.domain, spelling(name)] = function
        # Names and aliases of all functions, as programs may spell them.
        self.spellings = frozenset(name for one in self.functions for name in (one.name, *one.aliases))

        self.kinds = {kind.name: kind for domain in self.domains.values() for kind in domain.kinds.values()}
        self.tables = {name: table for domain in self.domains.values() for name, table in domain.tables.items()}

    def asked(self, moment: datetime, domain: str) -> datetime:
        """A moment where questions of a domain are asked: the benchmark's in one place, whatever market is meant."""
        own = self.domains.get(domain)
        return moment.astimezone(own.calendar.zone if own is not None and not own.bundled else PACIFIC)

    def create_tables(self, connection: Connection) -> None:
        """Create the missing tables of the domains."""
        for metadata in {table.metadata for table in self.tables.values()}:
            mine = [table for table in self.tables.values() if table.metadata is metadata]
            metadata.create_all(connection, tables=mine)

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(function for domain in self.domains.values() for function in domain.functions)

    def function(self, name: str, domain: str) -> Function:
        """The function of this name; the domain's own comes before another's.

        Raises:
            UnknownName: with the nearest names.
        """
        wanted = spelling(name)
        for area in (domain, *self.domains):
            if (match := self._functions.get((area, wanted))) is not None:
                return match
        domains = [self.domains[domain]] if domain in self.domains else self.domains.values()
        near = nearest(name, (function.name for one in domains for function in one.shown))
        raise UnknownName(f"there is no function {name}", expected=near)


@lru_cache(maxsize=65_536)
def spelling(name: str) -> str:
    """The form that spellings of one name share: `Release Date`, `release_date` and `releaseDate`."""
    return "".join(char for char in name.lower() if char.isalnum())


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The three known names that are most alike, best first."""
    return tuple(match for match, _, _ in process.extract(name, tuple(known), scorer=fuzz.WRatio, limit=3))
