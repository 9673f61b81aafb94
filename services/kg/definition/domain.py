"""Domains out of their folders, and the catalogue of all."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from jinja2 import Template
from sqlalchemy import MetaData

from services.kg.definition.folder import BrokenDomain, BrokenPart, Content, Fault, Folder
from services.kg.definition.functions import Builder, check_facets
from services.kg.definition.kinds import kind_of
from services.kg.definition.schema import DomainFile
from services.kg.definition.tables import read_tables
from services.kg.definition.texts import Texts, template
from services.kg.definition.views import Sources, read_query
from services.kg.language.catalogue import Catalogue, Domain, Function, Kind
from services.kg.store.names import INDEX_TABLES, name_table
from services.kg.store.tables import source, stated_total
from services.kit.text.times import Calendar

PACKAGE = "services.kg.domains"
NAME_TAKEN = "there is another domain of this name"
# Tables of the store itself.
STORE = frozenset(table.name for table in (source, stated_total, name_table, *INDEX_TABLES))


def read_domain(place: Traversable, metadata: MetaData | None = None, *, bundled: bool = False) -> Domain:
    """The domain of a folder.

    Its tables go to `metadata`, by default one of its own; the Python of a bundled one may be imported.

    Raises:
        BrokenDomain: with all faults of its files.
    """
    return _Reading(Folder(place), metadata if metadata is not None else MetaData(), bundled).domain()


def read_catalogue(bundled: Catalogue, folder: Path | None) -> Catalogue:
    """The bundled domains and those of a folder of folders.

    Raises:
        BrokenDomain: one of them is broken, or has the name, a table or a kind of another.
    """
    if folder is None:
        return bundled
    if not folder.is_dir():
        raise BrokenDomain(str(folder), [Fault(str(folder), 1, "", "there is no such folder")])
    catalogue = bundled
    for place in sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith((".", "_"))):
        catalogue = with_domain(catalogue, read_domain(place))
    return catalogue


def with_domain(catalogue: Catalogue, domain: Domain) -> Catalogue:
    """The domains of a catalogue and one more.

    Raises:
        BrokenDomain: it has the name, a table or a kind of another.
    """
    if faults := list(_taken(domain, catalogue.domains)):
        raise BrokenDomain(domain.name, faults)
    return Catalogue((*catalogue.domains.values(), domain))


def _taken(domain: Domain, others: Mapping[str, Domain]) -> Iterator[Fault]:
    file = str(domain.folder.place)
    if domain.name in others:
        yield Fault(file, 1, domain.name, NAME_TAKEN)
    for name in sorted(domain.tables.keys() & STORE):
        yield Fault(file, 1, name, "the store has a table of this name; take another")
    for other in others.values():
        for what, mine, theirs in (
            ("table", domain.tables.keys(), other.tables.keys()),
            ("kind", domain.kinds.keys(), other.kinds.keys()),
        ):
            for name in sorted(mine & theirs):
                yield Fault(file, 1, name, f"the domain {other.name} has a {what} of this name; take another")


class _Reading:
    """One folder being read, with its faults, so that a person sees all of them at once."""

    def __init__(self, folder: Folder, metadata: MetaData, bundled: bool) -> None:
        self.folder = folder
        self.metadata = metadata
        self.bundled = bundled
        self.faults: list[Fault] = []

    def domain(self) -> Domain:
        name = self.folder.name
        if not name.isidentifier() or not name.islower() or len(name) > 40:
            reason = "a folder's name is its domain's, as chemical_elements"
            raise BrokenDomain(name, [Fault(str(self.folder.place), 1, "", reason)])
        file, content = self.folder.model("domain.yaml", DomainFile)
        tables = read_tables(self.folder, self.metadata)
        views: dict[str, Any] = {}
        for view, sql in file.views.items():
            with self._part(content, "views", view, block=True):
                views[view] = read_query(sql, Sources(tables, dict(views)))
        sources = Sources(tables, views)
        kinds = dict(self._kinds(file, content, sources))
        functions = dict(self._functions(file, content, sources))
        # A function that could not be read would be missed by the facets of the others.
        for one in functions if len(functions) == len(file.functions) else ():
            with self._part(content, "functions", one):
                check_facets(functions, one)
        texts = Texts(file, partial(self._template, content))
        calendar = self._calendar()
        if self.faults:
            raise BrokenDomain(name, sorted(set(self.faults), key=lambda fault: (fault.file, fault.line)))
        values = (tuple(functions.values()), kinds, tables, texts, self.folder, calendar)
        return Domain(name, *values, file.timed, self.bundled, file.warm_up)

    def hook(self, name: str) -> Callable[..., Any]:
        """A function of the folder's Python, `module.function`.

        Raises:
            BrokenPart: there is no such function, or the folder is not bundled.
        """
        module, _, function = name.partition(".")
        if not self.bundled:
            raise BrokenPart("no Python is taken from this folder", "python")
        try:
            hook: Callable[..., Any] = getattr(import_module(f"{PACKAGE}.{self.folder.name}.{module}"), function)
        except (ImportError, AttributeError) as error:
            raise BrokenPart(str(error), "python") from None
        return hook

    def _kinds(self, file: DomainFile, content: Content, sources: Sources) -> Iterator[tuple[str, Kind]]:
        for name, part in file.kinds.items():
            with self._part(content, "kinds", name):
                others = {one.of for one in part.popularity if one.of} - file.kinds.keys()
                if others:
                    raise BrokenPart(f"there is no kind {', '.join(sorted(others))}", "popularity")
                yield name, kind_of(name, part, self.folder, sources, self.hook)

    def _functions(self, file: DomainFile, content: Content, sources: Sources) -> Iterator[tuple[str, Function]]:
        builder = Builder(self.folder, sources, frozenset(file.kinds), self.hook)
        for name, part in file.functions.items():
            with self._part(content, "functions", name):
                yield name, builder.function(name, part)

    @contextmanager
    def _part(self, content: Content, *path: str, block: bool = False) -> Iterator[None]:
        """Turn the errors of a part of the file into faults."""
        try:
            yield
        except BrokenPart as error:
            self.faults.append(content.fault((*path, *error.place), str(error), error.line + block))
        except BrokenDomain as error:
            self.faults += error.faults

    def _calendar(self) -> Calendar:
        if not self.folder.has("calendar.yaml"):
            return Calendar()
        content = self.folder.content("calendar.yaml")
        try:
            return Calendar.of(content.data if isinstance(content.data, dict) else {"calendar": content.data})
        except ValueError as error:
            self.faults.append(content.fault((), str(error)))
            return Calendar()

    def _template(self, content: Content, text: str, names: frozenset[str], *path: str) -> Template | None:
        if text:
            with self._part(content, *path):
                return template(text, names)
        return None
