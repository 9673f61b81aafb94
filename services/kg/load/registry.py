"""Who is who while a source is loaded: names become identifiers, those that the graph has or new ones.

How entities of a kind are identified is data, `identity.yaml` beside a domain's sources; what it does not mention goes
by the slug of its name.

    movie: {apart: release_date, merge: true}          # films of one title and different dates are two
    song: {of: true}                                   # identified by its maker and its title
    nba_team: {prefix: nba-, columns: {sport: nba}}    # kinds that share a table
    company: {new: "[A-Z]+"}                           # only what looks so can be new, and is its own identifier

A kind whose names are spelt by Python (`spellings`) is found by any of them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict
from sqlalchemy import select

from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph, Row
from services.kg.load.identity import slug
from services.kg.store.names import normalise

# The forms of an entity's name with how much each tells, of a name and an identifier.
Spellings = Callable[[str, str], Iterable[tuple[str, float]]]


class Identity(BaseModel):
    """How entities of a kind are identified."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    apart: str | None = None  # the column, a date, that tells entities of one name from each other
    of: bool = False  # identifiers are made of the name of the one that it belongs to, and its own
    prefix: str = ""  # begins new identifiers
    columns: dict[str, str | int | float | bool] = {}  # what all entities of the kind have in their table
    same: dict[str, str] = {}  # slugs of other spellings -> the slug
    # What a name looks like that may become an entity and its identifier; any, where it is not given.
    new: str | None = None
    # One that was identified by its name becomes the one of that name that a source numbers, once that comes.
    merge: bool = False


@dataclass(frozen=True, slots=True)
class KindTable:
    """A kind of entity, and where its entities are."""

    name: str
    table: str
    id: str
    title: str
    identity: Identity = field(default_factory=Identity)
    spellings: Spellings | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as a source mentions it."""

    kind: str
    name: str
    id: str | None = None  # the source's own identifier of it
    apart: str | None = None  # the value that tells it from its namesakes
    near: int | None = None  # a year; the namesake of that year, or of one beside it, is meant
    of: str | None = None  # whose it is
    fill: bool = False  # the mention adds what is unknown and corrects nothing
    columns: Row = field(default_factory=dict)  # what else the mention states of it


class Registry:
    """The entities that the graph has or that were put, by name."""

    def __init__(self, graph: Graph, kinds: Mapping[str, KindTable]) -> None:
        self.graph = graph
        self.kinds = kinds
        # Of each kind: slug of a name -> identifiers with the value that tells them apart.
        self._known: dict[str, dict[str, dict[str, str | None]]] = {}
        self._by_surface: dict[str, dict[str, dict[str, float]]] = {}
        self._spellings: dict[tuple[str, str], str] = {}
        self._mentioned: set[tuple[str, str]] = set()

    def find(self, mention: Mention) -> str | None:
        """The identifier of the entity, or none. Of namesakes the latest, or the first where nothing dates them."""
        kind = self.kinds[mention.kind]
        if kind.spellings:
            return self._by_name(kind, mention.name)
        known = self._index(kind).get(self._key(kind, mention.name), {})
        if kind.identity.apart is None:
            return next(iter(known), None)
        if mention.apart:
            same = (key for key, value in known.items() if value == mention.apart)
            return next(same, None) or next((key for key, value in known.items() if value is None), None)
        if mention.near is not None:
            distances = {key: abs(int(value[:4]) - mention.near) for key, value in known.items() if value}
            best = min(distances, key=lambda key: (distances[key], key), default=None)
            if best is not None and distances[best] <= 1:
                return best
            return next((key for key, value in known.items() if value is None), None)
        return max(known, key=lambda key: (known[key] or "", key), default=None)

    def make(self, mention: Mention) -> str:
        """The identifier of the entity, which is put where there is none; its name becomes the better spelling.

        Raises:
            BadRow: no name of that kind can be new that looks like this one.
        """
        kind = self.kinds[mention.kind]
        title = mention.name
        if kind.identity.of:
            identifier = mention.id or (f"{slug(mention.of)}/{slug(title)}" if mention.of else slug(title))
            fill = mention.fill or title.islower()
            self.graph.put(kind.table, {kind.id: identifier, kind.title: title, **mention.columns}, fill=fill)
            return identifier
        known, apart = mention.id or self.find(mention), mention.apart
        if kind.spellings and known and not mention.id:
            # A short form of the name, which corrects nothing.
            return known
        if known is None:
            apart = mention.apart or (str(mention.near) if mention.near else None)
        identifier = known or self._new(kind, mention.name, apart)
        if mention.id and not title.islower():
            self._spellings[kind.table, identifier] = title
        doubtful = mention.fill or (title.islower() and self._spellings.get((kind.table, identifier), title) == title)
        stated = any(value is not None for value in mention.columns.values())
        fill = doubtful or (bool(kind.identity.columns) and not stated)
        row: Row = {kind.id: identifier, kind.title: self._spelling(kind, identifier, title)}
        if kind.identity.apart:
            row[kind.identity.apart] = apart
        self.graph.put(kind.table, row | kind.identity.columns | mention.columns, fill=fill)
        self._learn(kind, identifier, title, apart)
        return identifier

    def name(self, kind: KindTable, identifier: str, otherwise: str) -> str:
        """The best spelling of its name so far."""
        return self._spellings.get((kind.table, identifier), otherwise)

    def mention(self, kind: str, name: str) -> None:
        """Note that a source names this one on its own somewhere: in a list it is one, too."""
        self._mentioned.add((kind, slug(name)))

    def knows(self, kind: str, name: str) -> bool:
        """Whether an entity of the kind has that name, or a source mentions one."""
        return slug(name) in self._index(self.kinds[kind]) or (kind, slug(name)) in self._mentioned

    def _new(self, kind: KindTable, name: str, apart: str | None) -> str:
        if kind.identity.new is not None:
            if not re.fullmatch(kind.identity.new, name):
                raise BadRow("", f"no {kind.name} is named {name[:60]!r}")
            return name
        key = kind.identity.prefix + self._key(kind, name)
        return f"{key}-{apart}" if kind.identity.apart and apart else key

    def _key(self, kind: KindTable, name: str) -> str:
        key = slug(name)
        return kind.identity.same.get(key, key)

    def _learn(self, kind: KindTable, identifier: str, name: str, apart: str | None) -> None:
        if kind.spellings:
            self._add(kind, self._surface_index(kind), identifier, name)
        elif kind.name in self._known:
            known = self._known[kind.name].setdefault(self._key(kind, name), {})
            known[identifier] = apart or known.get(identifier)

    def _spelling(self, kind: KindTable, identifier: str, name: str) -> str:
        """The better spelling: with capitals, with accents, the first."""
        best = self._spellings.setdefault((kind.table, identifier), name)
        if (best.islower() and not name.islower()) or (best.isascii() and not name.isascii() and not name.islower()):
            self._spellings[kind.table, identifier] = best = name
        return best

    def _rows(self, kind: KindTable) -> list[tuple[str, str, str | None]]:
        """Identifiers, names and what tells them apart."""
        self.graph.flush()
        table = self.graph.tables[kind.table]
        apart = table.c[kind.identity.apart or kind.title]
        statement = select(table.c[kind.id], table.c[kind.title], apart).order_by(table.c[kind.id])
        for column, value in kind.identity.columns.items():
            statement = statement.where(table.c[column] == value)
        rows = self.graph.connection.execute(statement).all()
        return [(row[0], row[1], row[2] if kind.identity.apart else None) for row in rows]

    def _index(self, kind: KindTable) -> dict[str, dict[str, str | None]]:
        known = self._known.get(kind.name)
        if known is None:
            known = self._known[kind.name] = {}
            for identifier, name, apart in self._rows(kind):
                known.setdefault(self._key(kind, name), {})[identifier] = apart
                self._spellings[kind.table, identifier] = name
        return known

    def _by_name(self, kind: KindTable, name: str) -> str | None:
        """By any of an entity's forms; none where nothing fits. Of several the one whose identifier is shortest."""
        index = self._surface_index(kind)
        found = index.get(f"={name.upper()}") or index.get(normalise(name))
        if not found:
            return None
        # A company's common stock has the shortest ticker; its warrants, units and notes append to it.
        best = max(found.values())
        return min((key for key, weight in found.items() if weight == best), key=lambda key: (len(key), key))

    def _surface_index(self, kind: KindTable) -> dict[str, dict[str, float]]:
        index = self._by_surface.get(kind.name)
        if index is None:
            index = self._by_surface[kind.name] = {}
            for identifier, name, _ in self._rows(kind):
                self._add(kind, index, identifier, name)
                self._spellings[kind.table, identifier] = name
        return index

    def _add(self, kind: KindTable, index: dict[str, dict[str, float]], identifier: str, name: str) -> None:
        index[f"={identifier}"] = {identifier: 1.0}
        for surface, weight in kind.spellings(name, identifier) if kind.spellings else ():
            known = index.setdefault(normalise(surface), {})
            known[identifier] = max(weight, known.get(identifier, weight))
