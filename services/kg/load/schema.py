"""What can be loaded into a domain: its tables, its kinds of entities, and the mappings of sources in its folder."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, RootModel, ValidationError
from sqlalchemy import Table

from services.kg.load.errors import BadMapping
from services.kg.load.graph import Graph, Row
from services.kg.load.mapper import Action, Compiler, Put, Writer
from services.kg.load.mapping import Source
from services.kg.load.registry import Identity, KindTable, Surfaces
from services.kg.load.transforms import TRANSFORMS, Transform
from services.kg.store.tables import stated_total

MAX_MAPPING_BYTES = 256 * 1024

M = TypeVar("M", bound=BaseModel)
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

    @property
    def fields(self) -> frozenset[str]:
        """The fields of the records."""
        return self.source.fields()


@dataclass(frozen=True, slots=True)
class Schema:
    """A domain as loaders see it.

    after: what its Python does once all is read, given the last moment that the source states.
    """

    name: str
    tables: Mapping[str, Table]
    kinds: Mapping[str, KindTable]
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    records: Mapping[str, Put] = field(default_factory=dict)
    filters: Mapping[str, Filter] = field(default_factory=dict)
    after: Callable[[Graph, str | None], None] | None = None

    def describe(self, name: str, text: bytes, origin: str) -> Described:
        """The mapping in a YAML text.

        Raises:
            BadMapping: it is no YAML, or names what is not there; the message says what and where.
        """
        source = parse(Source, text, origin)
        compiler = Compiler(self.name, self.tables, self.kinds, self.transforms, self.records)
        try:
            actions = tuple(compiler.action(rule) for rule in source.all_rules())
            if source.through is not None and source.through not in self.filters:
                raise ValueError(f"there is no filter {source.through!r}")
        except ValueError as error:
            raise BadMapping(f"{origin}: {error}") from None
        through = self.filters[source.through] if source.through else None
        return Described(name, source, actions, hashlib.sha256(text).hexdigest(), through)


def parse(model: type[M], text: bytes, origin: str) -> M:
    """A YAML text, checked.

    Raises:
        BadMapping: it is none, or does not fit.
    """
    if len(text) > MAX_MAPPING_BYTES:
        raise BadMapping(f"{origin} is longer than {MAX_MAPPING_BYTES // 1024} KiB")
    try:
        return model.model_validate(yaml.safe_load(text))
    except (yaml.YAMLError, RecursionError) as error:
        raise BadMapping(f"{origin} is no YAML: {' '.join(str(error).split())[:200]}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part)[0].isupper())
        raise BadMapping(f"{origin}: {place or 'the file'}: {first['msg']}") from None


class Sources:
    """The schemas of all domains and the mappings in their folders."""

    def __init__(self, schemas: Mapping[str, Schema], mappings: tuple[Described, ...]) -> None:
        self.schemas = schemas
        self.mappings = mappings
        self.tables: dict[str, Table] = {stated_total.name: stated_total}
        self.domain_by_table = {stated_total.name: ""}
        self.kinds: dict[str, KindTable] = {}
        for schema in schemas.values():
            self.tables |= schema.tables
            self.domain_by_table |= {name: schema.name for name in schema.tables if name != stated_total.name}
            self.kinds |= schema.kinds

    def describe(self, text: bytes, origin: str) -> Described:
        """A mapping that is not in a domain's folder.

        Raises:
            BadMapping: it is not valid, or of no domain that is there.
        """
        domain = parse(Source, text, origin).domain
        if domain not in self.schemas:
            raise BadMapping(f"{origin}: domain: there is no domain {domain!r}: {', '.join(self.schemas)}")
        return self.schemas[domain].describe("mapped", text, origin)


def _schema(name: str, folder: Traversable, tables: Mapping[str, Table], kinds: Mapping[str, tuple[str, str, str]]) -> Schema:
    identities: dict[str, Identity] = {}
    listed = folder / "sources" / "identity.yaml"
    if listed.is_file():
        identities = parse(_Identities, listed.read_bytes(), f"{name}/sources/identity.yaml").root
        unknown = sorted(set(identities) - set(kinds))
        if unknown:
            raise BadMapping(f"{name}/sources/identity.yaml: there is no kind {unknown[0]!r}: {', '.join(kinds)}")
    python = import_module(f"services.kg.domains.{name}.loading") if (folder / "loading.py").is_file() else None
    surfaces: Mapping[str, Surfaces] = getattr(python, "SURFACES", {})
    return Schema(
        name,
        {**tables, stated_total.name: stated_total},
        {
            kind: KindTable(
                kind, name, table, key, title, (identity := identities.get(kind, Identity())),
                surfaces[identity.surfaces] if identity.surfaces else None,
            )
            for kind, (table, key, title) in kinds.items()
        },
        {**TRANSFORMS, **getattr(python, "TRANSFORMS", {})},
        getattr(python, "RECORDS", {}),
        getattr(python, "FILTERS", {}),
        getattr(python, "after", None),
    )


def _mappings(schema: Schema, folder: Traversable) -> Iterator[Described]:
    sources = folder / "sources"
    for file in sorted(sources.iterdir(), key=lambda one: one.name) if sources.is_dir() else ():
        if file.name.endswith((".yaml", ".yml")) and file.name != "identity.yaml":
            described = schema.describe(file.name.rpartition(".")[0], file.read_bytes(), f"{schema.name}/sources/{file.name}")
            if described.source.domain != schema.name:
                raise BadMapping(f"{schema.name}/sources/{file.name}: domain: is not {schema.name}")
            yield described


# --- until the domains' folders say it ---
_KINDS = {
    "movie": {"movie": ("movie", "movie_id", "title"), "movie_person": ("movie_person", "person_id", "name")},
    "finance": {"company": ("company", "ticker", "name")},
    "music": {"artist": ("artist", "artist_id", "name"), "song": ("work", "work_id", "title")},
    "sports": {"nba_team": ("team", "team_id", "name"), "soccer_team": ("team", "team_id", "name")},
    "open": {"open": ("open_entity", "entity", "entity")},
}
_DATES = frozenset({"release_date", "birthday", "date", "begin_date", "end_date", "start", "end"})


@cache
def sources_of() -> Sources:
    schemas: dict[str, Schema] = {}
    mappings: list[Described] = []
    for name, kinds in _KINDS.items():
        module = import_module(f"services.kg.domains.{name}.tables")
        tables = {one.name: one for one in vars(module).values() if isinstance(one, Table)}
        for one in tables.values():
            for column in one.c:
                if column.name in _DATES:
                    column.info["type"] = "date"
        folder = files(f"services.kg.domains.{name}")
        schemas[name] = _schema(name, folder, tables, kinds)
        mappings += _mappings(schemas[name], folder)
    return Sources(schemas, tuple(mappings))
