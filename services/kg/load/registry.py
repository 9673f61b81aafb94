"""The registry of entities while a source is loaded: names become identifiers, of the graph or new.

How entities of a kind are identified is data, `identity.yaml` beside a domain's sources; other kinds are identified by
the slug of the name. A kind whose names Python spells (`spellings`) is found by any of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import select

from services.kg.language.catalogue import Kind
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph, Row
from services.kg.load.identity import slug
from services.kg.store.names import normalise


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as a source mentions it."""

    kind: str
    name: str
    id: str | None = None  # the source's own identifier of it
    apart: str | None = None  # the value that tells it from its namesakes
    near: int | None = None  # the year of the namesake that is meant, give or take one
    of: str | None = None  # its owner's name
    fill: bool = False  # the mention sets only what is null
    columns: Row = field(default_factory=dict)  # other columns of its row


class Registry:
    """The entities of the graph and those that were put, by name."""

    def __init__(self, graph: Graph, kinds: Mapping[str, Kind]) -> None:
        self.graph = graph
        self.kinds = kinds
        # By kind: slug of a name -> identifiers with the value that tells them apart.
        self._by_slug: dict[str, dict[str, dict[str, str | None]]] = {}
        # By kind: form of a name -> identifiers with the form's weight.
        self._by_surface: dict[str, dict[str, dict[str, float]]] = {}
        self._spellings: dict[tuple[str, str], str] = {}
        self._mentioned: set[tuple[str, str]] = set()

    def find(self, mention: Mention) -> str | None:
        """The identifier of the entity, or None. Of namesakes the latest, or the first if nothing dates them."""
        kind = self.kinds[mention.kind]
        if kind.spellings:
            return self._find_by_surface(kind, mention.name)
        namesakes = self._slug_index(kind).get(self._key(kind, mention.name), {})
        if kind.identity.apart is None:
            return next(iter(namesakes), None)
        undated = next((key for key, value in namesakes.items() if value is None), None)
        if mention.apart:
            return next((key for key, value in namesakes.items() if value == mention.apart), undated)
        if mention.near is not None:
            distances = {key: abs(int(value[:4]) - mention.near) for key, value in namesakes.items() if value}
            nearest = min(distances, key=lambda key: (distances[key], key), default=None)
            return nearest if nearest is not None and distances[nearest] <= 1 else undated
        return max(namesakes, key=lambda key: (namesakes[key] or "", key), default=None)

    def make(self, mention: Mention) -> str:
        """The identifier of the entity, which is put if there is none; its name becomes the better spelling.

        Raises:
            BadRow: the entity is new, and its name is not of the kind's pattern.
        """
        kind = self.kinds[mention.kind]
        title = mention.name
        if kind.identity.of:
            identifier = mention.id or (f"{slug(mention.of)}/{slug(title)}" if mention.of else slug(title))
            fill = mention.fill or title.islower()
            self.graph.put(kind.table, {kind.id: identifier, kind.key: title, **mention.columns}, fill=fill)
            return identifier
        existing, apart = mention.id or self.find(mention), mention.apart
        if kind.spellings and existing and not mention.id:
            # A short form of the name, which corrects nothing.
            return existing
        if existing is None:
            apart = mention.apart or (str(mention.near) if mention.near else None)
        identifier = existing or self._new(kind, mention.name, apart)
        if mention.id and not title.islower():
            self._spellings[kind.table, identifier] = title
        doubtful = mention.fill or (title.islower() and self._spellings.get((kind.table, identifier), title) == title)
        has_values = any(value is not None for value in mention.columns.values())
        fill = doubtful or (bool(kind.identity.columns) and not has_values)
        row: Row = {kind.id: identifier, kind.key: self._spelling(kind, identifier, title)}
        if kind.identity.apart:
            row[kind.identity.apart] = apart
        self.graph.put(kind.table, row | kind.identity.columns | mention.columns, fill=fill)
        self._index(kind, identifier, title, apart)
        return identifier

    def name(self, kind: Kind, identifier: str, otherwise: str) -> str:
        """The best spelling of the entity's name so far, else the one given."""
        return self._spellings.get((kind.table, identifier), otherwise)

    def mention(self, kind: str, name: str) -> None:
        """Note that a source has an entity of that name on its own, so that it is one in a list too."""
        self._mentioned.add((kind, slug(name)))

    def knows(self, kind: str, name: str) -> bool:
        """Whether an entity of the kind has that name, or a source mentions one."""
        return slug(name) in self._slug_index(self.kinds[kind]) or (kind, slug(name)) in self._mentioned

    def _new(self, kind: Kind, name: str, apart: str | None) -> str:
        if kind.identity.new is not None:
            if not re.fullmatch(kind.identity.new, name):
                raise BadRow("", f"no {kind.name} is named {name[:60]!r}")
            return name
        key = kind.identity.prefix + self._key(kind, name)
        return f"{key}-{apart}" if kind.identity.apart and apart else key

    def _key(self, kind: Kind, name: str) -> str:
        key = slug(name)
        return kind.identity.same.get(key, key)

    def _index(self, kind: Kind, identifier: str, name: str, apart: str | None) -> None:
        if kind.spellings:
            self._add_surfaces(kind, self._surface_index(kind), identifier, name)
        elif kind.name in self._by_slug:
            namesakes = self._by_slug[kind.name].setdefault(self._key(kind, name), {})
            namesakes[identifier] = apart or namesakes.get(identifier)

    def _spelling(self, kind: Kind, identifier: str, name: str) -> str:
        """The better spelling: with capitals, with accents, the first."""
        best = self._spellings.setdefault((kind.table, identifier), name)
        if (best.islower() and not name.islower()) or (best.isascii() and not name.isascii() and not name.islower()):
            self._spellings[kind.table, identifier] = best = name
        return best

    def _rows(self, kind: Kind) -> list[tuple[str, str, str | None]]:
        """Identifiers, names and the values that tell them apart."""
        self.graph.flush()
        table = self.graph.tables[kind.table]
        apart = table.c[kind.identity.apart or kind.key]
        statement = select(table.c[kind.id], table.c[kind.key], apart).order_by(table.c[kind.id])
        for column, value in kind.identity.columns.items():
            statement = statement.where(table.c[column] == value)
        rows = self.graph.connection.execute(statement).all()
        self._spellings |= {(kind.table, row[0]): row[1] for row in rows}
        return [(row[0], row[1], row[2] if kind.identity.apart else None) for row in rows]

    def _slug_index(self, kind: Kind) -> dict[str, dict[str, str | None]]:
        index = self._by_slug.get(kind.name)
        if index is None:
            index = self._by_slug[kind.name] = {}
            for identifier, name, apart in self._rows(kind):
                index.setdefault(self._key(kind, name), {})[identifier] = apart
        return index

    def _find_by_surface(self, kind: Kind, name: str) -> str | None:
        """The entity that has this form of a name, of several the one with the shortest identifier; or None."""
        index = self._surface_index(kind)
        weights = index.get(f"={name.upper()}") or index.get(normalise(name)) or {}
        # A company's common stock has the shortest ticker; its warrants, units and notes append to it.
        return min(weights, key=lambda key: (-weights[key], len(key), key), default=None)

    def _surface_index(self, kind: Kind) -> dict[str, dict[str, float]]:
        index = self._by_surface.get(kind.name)
        if index is None:
            index = self._by_surface[kind.name] = {}
            for identifier, name, _ in self._rows(kind):
                self._add_surfaces(kind, index, identifier, name)
        return index

    def _add_surfaces(self, kind: Kind, index: dict[str, dict[str, float]], identifier: str, name: str) -> None:
        index[f"={identifier}"] = {identifier: 1.0}
        for surface, weight in kind.spellings(name, identifier) if kind.spellings else ():
            weights = index.setdefault(normalise(surface), {})
            weights[identifier] = max(weight, weights.get(identifier, weight))
