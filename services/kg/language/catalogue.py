"""What a domain offers: functions over views with keys. Prompt, validation, completion and decoding grammar read this.

A function is a view, a SELECT whose columns are its keys, and its parameters are filters upon that view. So every
combination of conditions, sorting and counting means the same for every function, and a new function is data.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rapidfuzz import fuzz, process
from sqlalchemy import ColumnElement, Connection, Table, TextualSelect

from services.kg.definition.folder import Folder
from services.kg.errors import UnknownName
from services.kg.language.tree import Aggregate, Operator
from services.kit.text.times import Calendar

KeyKind = Literal["text", "integer", "number", "money", "percent", "date", "flag"]
ParameterKind = Literal["entity", "time", "integer", "text"]

# What can be summed, averaged and compared as a number.
NUMERIC = frozenset({"integer", "number", "money", "percent", "flag"})
# A spelling that is not in the catalogue may still be meant; a person agrees with nearly all above this, by trial.
NEAR = 80.0

Compare = Callable[[Any, Operator, tuple[Any, ...]], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Key:
    """A column of a view.

    Args:
        name: as programs spell it.
        kind: what its values are; money is in the currency of the row or US dollars.
        aliases: other spellings that people and models use.
        label: in words, when it is not the name.
        unit: behind a value in words.
        entity: the kind of names that its values are.
        id_column: the view's column with the identifiers of those entities.
        compare: how a condition compares, where plain comparison would be wrong: (columns of the view, operator,
            values) -> clause.
        spell: how a value is written: `plain` (a number without separators), `country` or `language` (a code with its
            words), `age` (a birthday with the age); or the words behind each code.
        ages: the age of a person whose birthday the same program asks for is said at this date.
    """

    name: str
    kind: KeyKind = "text"
    aliases: tuple[str, ...] = ()
    label: str = ""
    unit: str = ""
    entity: str = ""
    id_column: str = ""
    compare: Compare | None = None
    spell: Literal["", "plain", "country", "language", "age"] | Mapping[str, str] = field(default="", hash=False)
    ages: bool = False

    @property
    def words(self) -> str:
        return self.label or self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument by position.

    Args:
        name: as a keyword spells it.
        kind: entity (resolved through the name index), time (through the time resolver), integer, text.
        column: the view's column that it filters.
        entities: the kinds of names that it may be.
        required: whether a call without it asks for too much.
        series: under ALL, every entity whose name begins so is meant: a series of films.
        text_column: the view's column that holds the name itself, for things that the graph has no entity of.
        clause: how it filters, where no column holds it: (columns of the view, values) -> clause.
    """

    name: str
    kind: ParameterKind = "entity"
    column: str = ""
    entities: tuple[str, ...] = ()
    required: bool = False
    series: bool = False
    text_column: str = ""
    clause: Callable[[Any, tuple[Any, ...]], ColumnElement[bool]] | None = None


@dataclass(frozen=True, slots=True)
class Preset:
    """A condition that a facet or a function always has."""

    key: str
    value: str | int | bool
    operator: Operator = "eq"


@dataclass(frozen=True, slots=True)
class Facet:
    """A key that stands for another function over the same entity: `get_person(x)["music"]`.

    Args:
        function: the one whose rows it is.
        project: keys that are shown.
        presets: conditions on that function.
        aggregate: what is made of the rows.
        aliases: other spellings.
    """

    function: str
    project: tuple[str, ...] = ()
    presets: tuple[Preset, ...] = ()
    aggregate: Aggregate | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A view with its parameters.

    Args:
        name: `get_...`.
        domain: the domain that defines it.
        summary: what it is for, in the prompt.
        parameters: by position.
        view: columns named as the keys, and hidden ones with a leading underscore.
        keys: what can be projected, compared and sorted by.
        subject: keys that name a row, always fetched.
        default: keys that are shown when none is projected.
        default_of: parameter -> those keys when it is the only one of the pair that is given.
        order: default order, a leading `-` for descending.
        pair: two parameters whose entities the rows link; counting with one given counts entities of the other, and
            several names for one mean those that all of them share.
        totals: parameter, or parameter with one condition as `person job=director`, -> relation of `stated_total`.
        event: the key whose date, after the query time, hides a row.
        facets: keys that are another function's rows.
        dynamic: the view's rows are `key` and `value`, and any key that the entity has can be projected.
        prose: the key of a dynamic function whose value is prose, which speaks for itself.
        percent: words in keys of a dynamic function whose numbers are shares.
        spellings: people's words -> keys, for a dynamic function.
        span: two parameters that are the first and the last of a range.
        presets: conditions that always hold.
        limit: rows at most, for functions that mean one row.
        aliases: other spellings.
        refine: the domain's own rules for time and order; they change the `Scope` that they are given.
        narrates: the domain's wording of a row is a sentence that says all of it.
        apart: key -> the key that tells its namesakes apart, shown beside it.
        conditioned: whether a call may end with a condition or a list of them.
        whole: a call without arguments means all rows; else it asks for too much.
        hidden: not shown to the model: another function's facet says it shorter.
    """

    name: str
    domain: str
    summary: str
    parameters: tuple[Parameter, ...]
    view: TextualSelect
    keys: tuple[Key, ...]
    subject: tuple[str, ...] = ()
    default: tuple[str, ...] = ()
    default_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None
    totals: Mapping[str, str] = field(default_factory=dict)
    event: str = ""
    facets: Mapping[str, Facet] = field(default_factory=dict)
    dynamic: bool = False
    prose: str = ""
    percent: tuple[str, ...] = ()
    apart: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    span: tuple[str, str] | None = None
    presets: tuple[Preset, ...] = ()
    limit: int | None = None
    aliases: tuple[str, ...] = ()
    refine: Callable[..., Any] | None = None
    narrates: bool = False
    conditioned: bool = False
    whole: bool = False
    hidden: bool = False

    def find_key(self, name: str) -> Key | None:
        """The key of this name or alias; None for a name that is nowhere near any."""
        wanted = spelling(name)
        spellings = {spelling(one): key for key in self.keys for one in (*key.aliases, key.name)}
        if wanted in spellings:
            return spellings[wanted]
        near = process.extractOne(wanted, spellings.keys(), scorer=fuzz.ratio, score_cutoff=NEAR)
        return spellings[near[0]] if near else None

    def find_facet(self, name: str) -> Facet | None:
        wanted = spelling(name)
        for facet_name, facet in self.facets.items():
            if wanted in {spelling(one) for one in (facet_name, *facet.aliases)}:
                return facet
        return None

    def key(self, name: str) -> Key:
        """The key of this name.

        Raises:
            UnknownName: with the keys that there are.
        """
        found = self.find_key(name)
        if found is None:
            known = (*(key.name for key in self.keys), *self.facets)
            raise UnknownName(
                "key", f'{self.name} has no "{name}"; it has {", ".join(known)}', expected=nearest(name, known)
            )
        return found


@dataclass(frozen=True, slots=True)
class Measure:
    """A part of an entity's popularity.

    Args:
        share: of the whole.
        numbers: rows of an identifier and a number, or an identifier of the kind `of`.
        top: the number that counts as 1.
        stated: relations of `stated_total` whose larger number counts.
        of: the kind whose most popular entity's popularity it is, in place of a number.
    """

    share: float
    numbers: TextualSelect
    top: float = 0.0
    stated: tuple[str, ...] = ()
    of: str = ""


@dataclass(frozen=True, slots=True)
class NameRules:
    """What is particular about the names of a kind.

    Args:
        light_words: words that say little in such a name, beside articles and prepositions.
        telling_words: words that make a name another thing's.
        trade_words: words that half of the names have.
        about_words: words in brackets behind a name that say what it is: "(film)".
        common_words: single words of these are no such name.
        generic: squashed normal forms of what is refused unless an entity has exactly that name.
        never: of what is refused even then.
        numbers: whether digits alone may be such a name.
        codes: identifiers are codes that people write, and one letter apart is another's, as stock tickers are.
        beside_codes: words that may stand beside a code.
        code_marks: words that stand before a code in brackets.
    """

    light_words: frozenset[str] = frozenset()
    telling_words: frozenset[str] = frozenset()
    trade_words: frozenset[str] = frozenset()
    about_words: frozenset[str] = frozenset()
    common_words: frozenset[str] = frozenset()
    generic: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    numbers: bool = False
    codes: bool = False
    beside_codes: frozenset[str] = frozenset()
    code_marks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of names.

    Args:
        name: as functions and the index call it.
        domain: the domain that defines it.
        entities: rows of an identifier, the main name and the others of `also`.
        rules: what is particular about its names.
        also: share of the weight that each of the other columns' names has.
        base: the least popularity, 0..1.
        popularity: what is added to it.
        aliases: normal form of a main name -> other names.
        without_brackets: share of the weight that a name without its bracket has; 0 for none.
        spellings: the names of an entity, (main name, identifier) -> names with their share of the weight.
        table: where its entities are.
        id: the column of the identifier there.
        key: the column of the main name there.
    """

    name: str
    domain: str
    entities: TextualSelect
    rules: NameRules = field(default_factory=NameRules)
    also: tuple[float, ...] = ()
    base: float = 0.0
    popularity: tuple[Measure, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    without_brackets: float = 0.0
    spellings: Callable[[str, str], Iterable[tuple[str, float]]] | None = None
    table: str = ""
    id: str = ""
    key: str = ""


class Wording(Protocol):
    """How a domain reads. Outcomes are `services.kg.outcome.Outcome`s."""

    def row(self, function: str, row: Mapping[str, Any]) -> str:
        """A row's subject in words: 'the film "Alien" (1979)'."""
        ...

    def rows(self, outcome: Any) -> str:
        """What a statement's rows are in words: 'films in which Sigourney Weaver acted'."""
        ...

    def names(self, outcome: Any) -> list[str]:
        """Whom a statement is about, once each."""
        ...

    def owner(self, row: Mapping[str, Any]) -> str:
        """Whose a row is, for facts of any name; "" where the row does not say."""
        ...

    def missing(self, outcome: Any) -> str:
        """A known absence: "Arsenal had no game in May 2024."."""
        ...

    def totals(self, summary: Mapping[str, Any]) -> str:
        """Totals of a window."""
        ...


@dataclass(frozen=True, slots=True)
class Domain:
    """One area of the graph.

    Args:
        name: the folder's name; of the bundled ones the classifier's label.
        summary: what it knows, in the prompt.
        functions: what can be asked.
        kinds: of names, by name.
        tables: its own, by name.
        wording: how it reads.
        folder: its files.
        calendar: how its records lie in time.
        timed: questions lean on the date, which prompts then have.
        bundled: it comes with the service.
        warm_up: a question that is answered when the service starts, with a name and a date, so that what reads
            them is met; the graph need not know them.
    """

    name: str
    summary: str
    functions: tuple[Function, ...]
    kinds: Mapping[str, Kind]
    tables: Mapping[str, Table]
    wording: Wording
    folder: Folder
    calendar: Calendar
    timed: bool = False
    bundled: bool = False
    warm_up: str = ""


class Catalogue:
    """All domains, looked up as programs spell things; no two have a name, a kind or a table in common."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self.domains = {domain.name: domain for domain in domains}
        self._functions: dict[tuple[str, str], Function] = {}
        for domain in self.domains.values():
            for function in domain.functions:
                for name in (function.name, *function.aliases):
                    self._functions[domain.name, spelling(name)] = function
        # Names and aliases of all functions, as programs may spell them.
        self.spellings = frozenset(name for one in self.functions for name in (one.name, *one.aliases))

        self.kinds = {kind.name: kind for domain in self.domains.values() for kind in domain.kinds.values()}
        self.tables = {name: table for domain in self.domains.values() for name, table in domain.tables.items()}

    def create_tables(self, connection: Connection) -> None:
        """Create what tables of the domains are missing."""
        for metadata in {table.metadata for table in self.tables.values()}:
            mine = [table for table in self.tables.values() if table.metadata is metadata]
            metadata.create_all(connection, tables=mine)

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(function for domain in self.domains.values() for function in domain.functions)

    def names(self, domain: str = "") -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                function.name
                for function in self.functions
                if not function.hidden and (not domain or function.domain == domain)
            )
        )

    def function(self, name: str, domain: str) -> Function:
        """The function of this name, this domain's before another's.

        Raises:
            UnknownName: with the nearest names.
        """
        wanted = spelling(name)
        for area in (domain, *self.domains):
            if (found := self._functions.get((area, wanted))) is not None:
                return found
        near = nearest(name, self.names(domain) or self.names())
        raise UnknownName("function", f"there is no function {name}", expected=near)


def spelling(name: str) -> str:
    """What two spellings of one name have in common: `Release Date`, `release_date` and `releaseDate`."""
    return "".join(char for char in name.lower() if char.isalnum())


def nearest(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Known names by likeness, best first."""
    return tuple(match for match, _, _ in process.extract(name, tuple(known), scorer=fuzz.WRatio, limit=limit))
