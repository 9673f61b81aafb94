"""The schemas of domains, and the mappings of sources in their folders; those that are not valid raise BrokenDomain."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from pydantic import RootModel
from sqlalchemy import Table

from services.kg.definition.folder import BrokenDomain, BrokenPart, Folder
from services.kg.definition.schema import Identity
from services.kg.language.catalogue import Catalogue, Domain, Kind
from services.kg.load.errors import BadMapping
from services.kg.load.mapper import Action, Compiler, Filter, Schema, column_named, named
from services.kg.load.mapping import Source
from services.kg.load.transforms import TRANSFORMS
from services.kg.store.tables import source as source_table
from services.kg.store.tables import stated_total

SOURCES = "sources"
IDENTITY = "identity.yaml"


class _Identities(RootModel[dict[str, Identity]]):
    """By kind."""


@dataclass(frozen=True, slots=True)
class MappingFile:
    """A mapping file: its name without the suffix, its content, and the actions of its rules."""

    name: str
    source: Source
    actions: tuple[Action, ...]
    digest: str
    through: Filter | None
    bundled: bool


def read_mapping(schema: Schema, folder: Folder, file: str, name: str, *, bundled: bool = True) -> MappingFile:
    """The mapping in a file.

    Raises:
        BrokenDomain: it is no YAML, or names something that does not exist; with the line and the key.
    """
    source, content = folder.model(file, Source)
    if source.domain != schema.name:
        raise BrokenDomain(schema.name, [content.fault(("domain",), f"is not {schema.name}")])
    actions = []
    for number, rule in enumerate(source.all_rules()):
        try:
            actions.append(Compiler(schema, rule).action())
        except BrokenPart as error:
            steps = ("rules", number, *error.place) if source.rules else ("tables", *error.place[1:])
            raise BrokenDomain(schema.name, [content.fault(steps, str(error))]) from None
    if source.through and source.through not in schema.filters:
        raise BrokenDomain(schema.name, [content.fault(("through",), f"there is no filter {source.through!r}")])
    through = schema.filters[source.through] if source.through else None
    digest = hashlib.sha256(folder.text(file).encode()).hexdigest()
    return MappingFile(name, source, tuple(actions), digest, through, bundled)


class Sources:
    """The schemas of all domains and the mappings in their folders."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.schemas = {domain.name: schema_of(domain) for domain in catalogue.domains.values()}
        self.mappings = tuple(
            mapping for domain in catalogue.domains.values() for mapping in _mappings(domain, self.schemas[domain.name])
        )
        self.tables: dict[str, Table] = {}
        self.kinds: dict[str, Kind] = {}
        self.domain_by_table: dict[str, str] = {}
        for schema in self.schemas.values():
            self.tables |= schema.tables
            self.kinds |= schema.kinds
            self.domain_by_table |= dict.fromkeys(schema.tables, schema.name)
        # The domain of such a row is in its `relation`.
        self.domain_by_table[stated_total.name] = ""
        # No rows of files go there.
        self.tables[source_table.name] = source_table

    def read(self, path: Path) -> MappingFile:
        """A mapping outside the domains' folders.

        Raises:
            BadMapping: it is not valid, or its domain does not exist.
        """
        folder = Folder(path.absolute().parent)
        try:
            mapping, content = folder.model(path.name, Source)
            if mapping.domain not in self.schemas:
                reason = f"there is no domain {mapping.domain!r}: {', '.join(self.schemas)}"
                raise BadMapping(str(content.fault(("domain",), reason)))
            return read_mapping(self.schemas[mapping.domain], folder, path.name, "mapped")
        except BrokenDomain as error:
            raise BadMapping("; ".join(map(str, error.faults[:5]))) from None


@lru_cache(maxsize=4)
def sources_of(catalogue: Catalogue) -> Sources:
    """The sources of a catalogue, read once."""
    return Sources(catalogue)


def schema_of(domain: Domain) -> Schema:
    """A domain as loaders see it."""
    identities = _identities(domain)
    is_python = domain.bundled and domain.folder.has("loading.py")
    python = import_module(f"services.kg.domains.{domain.name}.loading") if is_python else None
    return Schema(
        domain.name,
        {**domain.tables, stated_total.name: stated_total},
        {name: replace(kind, identity=identities.get(name, kind.identity)) for name, kind in domain.kinds.items()},
        {**TRANSFORMS, **getattr(python, "TRANSFORMS", {})},
        getattr(python, "RECORDS", {}),
        getattr(python, "FILTERS", {}),
        getattr(python, "after", None),
    )


def _identities(domain: Domain) -> Mapping[str, Identity]:
    """By kind, from the domain's folder."""
    file = f"{SOURCES}/{IDENTITY}"
    if not domain.folder.has(file):
        return {}
    model, content = domain.folder.model(file, _Identities)
    for name, identity in model.root.items():
        try:
            kind = named(domain.kinds, name, "kind")
            for column in filter(None, (*identity.columns, identity.apart)):
                column_named(domain.tables[kind.table], column)
        except BrokenPart as error:
            raise BrokenDomain(domain.name, [content.fault((name,), str(error))]) from None
    return model.root


def _mappings(domain: Domain, schema: Schema) -> Iterator[MappingFile]:
    place = domain.folder.place / SOURCES
    for file in sorted(place.iterdir(), key=lambda one: one.name) if place.is_dir() else ():
        name, _, ending = file.name.rpartition(".")
        if ending in {"yaml", "yml"} and file.name != IDENTITY and not name.startswith("."):
            yield read_mapping(schema, domain.folder, f"{SOURCES}/{file.name}", name, bundled=domain.bundled)
