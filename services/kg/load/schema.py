"""What can be loaded into a domain: its tables, its kinds of entities, and the mappings of sources in its folder.

A file of its `sources` that is not valid raises BrokenDomain.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, RootModel
from sqlalchemy import Table

from services.kg.definition.folder import BrokenDomain, Content, Fault, Folder
from services.kg.language.catalogue import Catalogue, Domain
from services.kg.load.errors import BadMapping
from services.kg.load.graph import Graph, Row
from services.kg.load.mapper import Action, Compiler, Misplaced, Put
from services.kg.load.mapping import Source
from services.kg.load.reading import Writer
from services.kg.load.registry import Identity, KindTable
from services.kg.load.transforms import TRANSFORMS, Transform
from services.kg.store.tables import stated_total

SOURCES = "sources"
IDENTITY = "identity.yaml"

# Sees all records of a file first, and then each one on its way.
Filter = Callable[[Writer, Callable[[], Iterator[Mapping[str, Any]]]], Callable[[Row], Row]]


class _Identities(RootModel[dict[str, Identity]]):
    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Described:
    """A mapping that was read: the file's name without its ending, what it says, and its actions."""

    name: str
    source: Source
    actions: tuple[Action, ...]
    digest: str
    through: Filter | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """A domain as loaders see it."""

    name: str
    tables: Mapping[str, Table]
    kinds: Mapping[str, KindTable]
    transforms: Mapping[str, Transform]
    records: Mapping[str, Put]
    filters: Mapping[str, Filter]
    # What its Python does once all is read, given the last moment that the source states.
    after: Callable[[Graph, str | None], None] | None

    def describe(self, folder: Folder, file: str, name: str) -> Described:
        """The mapping in a file.

        Raises:
            BrokenDomain: it is no YAML, or names what is not there; with the line and the key.
        """
        source, content = folder.model(file, Source)
        if source.domain != self.name:
            raise BrokenDomain(self.name, [content.fault(("domain",), f"is not {self.name}")])
        compiler = Compiler(self.name, self.tables, self.kinds, self.transforms, self.records)
        actions = []
        for number, rule in enumerate(source.all_rules()):
            try:
                actions.append(compiler.action(rule))
            except Misplaced as error:
                steps = ("rules", number, *error.place) if source.rules else ("tables", *error.place[1:])
                raise BrokenDomain(self.name, [content.fault(steps, str(error))]) from None
        if source.through and source.through not in self.filters:
            raise BrokenDomain(self.name, [content.fault(("through",), f"there is no filter {source.through!r}")])
        through = self.filters[source.through] if source.through else None
        digest = hashlib.sha256(folder.text(file).encode()).hexdigest()
        return Described(name, source, tuple(actions), digest, through)


class Sources:
    """The schemas of all domains and the mappings in their folders."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.schemas = {domain.name: schema_of(domain) for domain in catalogue.domains.values()}
        self.mappings = tuple(
            mapping for domain in catalogue.domains.values() for mapping in _mappings(domain, self.schemas[domain.name])
        )
        self.tables: dict[str, Table] = {}
        self.kinds: dict[str, KindTable] = {}
        self.domain_by_table: dict[str, str] = {}
        for schema in self.schemas.values():
            self.tables |= schema.tables
            self.kinds |= schema.kinds
            self.domain_by_table |= dict.fromkeys(schema.tables, schema.name)
        # Its rows name their domain.
        self.domain_by_table[stated_total.name] = ""

    def describe(self, path: Path) -> Described:
        """A mapping that is in no domain's folder.

        Raises:
            BadMapping: it is not valid, or of no domain that is there.
        """
        folder = Folder(path.absolute().parent)
        try:
            source, content = folder.model(path.name, Source)
            if source.domain not in self.schemas:
                reason = f"there is no domain {source.domain!r}: {', '.join(self.schemas)}"
                raise BadMapping(str(content.fault(("domain",), reason)))
            return self.schemas[source.domain].describe(folder, path.name, "mapped")
        except BrokenDomain as error:
            raise BadMapping("; ".join(map(str, error.faults[:5]))) from None


@lru_cache(maxsize=4)
def sources_of(catalogue: Catalogue) -> Sources:
    """The sources of a catalogue, read once."""
    return Sources(catalogue)


def schema_of(domain: Domain) -> Schema:
    """A domain as loaders see it."""
    file = f"{SOURCES}/{IDENTITY}"
    identities: Mapping[str, Identity] = {}
    if domain.folder.has(file):
        model, content = domain.folder.model(file, _Identities)
        identities = model.root
        for name, identity in identities.items():
            if fault := _wrong(domain, name, identity, content):
                raise BrokenDomain(domain.name, [fault])
    is_python = domain.bundled and domain.folder.has("loading.py")
    python = import_module(f"services.kg.domains.{domain.name}.loading") if is_python else None
    return Schema(
        domain.name,
        {**domain.tables, stated_total.name: stated_total},
        {
            kind.name: KindTable(
                kind.name, kind.table, kind.id, kind.key, identities.get(kind.name, Identity()), kind.spellings
            )
            for kind in domain.kinds.values()
        },
        {**TRANSFORMS, **getattr(python, "TRANSFORMS", {})},
        getattr(python, "RECORDS", {}),
        getattr(python, "FILTERS", {}),
        getattr(python, "after", None),
    )


def _wrong(domain: Domain, name: str, identity: Identity, content: Content) -> Fault | None:
    if name not in domain.kinds:
        return content.fault((name,), f"there is no kind {name!r}: {', '.join(domain.kinds)}")
    table = domain.tables[domain.kinds[name].table]
    for column in (*identity.columns, *([identity.apart] if identity.apart else [])):
        if column not in table.c:
            return content.fault((name,), f"table {table.name} has no column {column!r}: {', '.join(table.c.keys())}")
    return None


def _mappings(domain: Domain, schema: Schema) -> Iterator[Described]:
    place = domain.folder.place / SOURCES
    for file in sorted(place.iterdir(), key=lambda one: one.name) if place.is_dir() else ():
        name, _, ending = file.name.rpartition(".")
        if ending in {"yaml", "yml"} and file.name != IDENTITY and not name.startswith("."):
            yield schema.describe(domain.folder, f"{SOURCES}/{file.name}", name)
