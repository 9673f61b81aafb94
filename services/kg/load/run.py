"""Loading a source as a whole: what its files are, in which order they go, and all of it or nothing."""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TextIO

from sqlalchemy import Connection, Engine, create_engine, func, select

from services.kg.definition.folder import BrokenDomain
from services.kg.domains import CATALOGUE
from services.kg.language.catalogue import Catalogue
from services.kg.load.errors import BadMapping, BadRow, LoadError, UnknownFormat
from services.kg.load.files import Bad, check, digest
from services.kg.load.graph import Graph
from services.kg.load.plan import Done, Format, format_of
from services.kg.load.reading import Merge, Writer
from services.kg.load.rebuilding import rebuild_changed
from services.kg.load.reconcile import merge
from services.kg.load.registry import Registry
from services.kg.load.rows import RowAction
from services.kg.load.schema import MappingFile, Sources, sources_of
from services.kg.load.surfaces import index_names
from services.kg.store.names import name_table
from services.kg.store.tables import METADATA
from services.kg.store.tables import source as source_table

# Part of each digest: files that another version loaded are loaded again.
VERSION = 2
PROBLEMS_SHOWN = 20
MERGES_SHOWN = 3
DEMO = "demo.jsonl"
# Notes beside data.
_NO_DATA = frozenset({".md", ".txt", ".license", ".py", ".ipynb", ".yaml", ".yml"})

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that was skipped, by its line; 0 if the file has no lines."""

    line: int
    field: str
    reason: str


@dataclass(slots=True)
class FileReport:
    """What a load did with one file."""

    name: str
    format: str
    rows: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    problems: list[Problem] = field(default_factory=list)
    merged: int = 0
    merges: list[Merge] = field(default_factory=list)  # the first of them
    # Loaded before, and not changed since.
    unchanged: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether it has records, and none of them can be used."""
        return bool(self.skipped) and not any(self.rows.values())


@dataclass(slots=True)
class LoadReport:
    """What a load did. `tables` counts the rows of every table afterwards; `unknown` names files of no known format."""

    files: list[FileReport]
    unknown: list[str]
    tables: dict[str, int]
    seconds: float

    @property
    def rows(self) -> int:
        return sum(sum(file.rows.values()) for file in self.files)

    @property
    def skipped(self) -> int:
        return sum(file.skipped for file in self.files)

    @property
    def unchanged(self) -> bool:
        """Whether no file was new or changed."""
        return all(file.unchanged for file in self.files)


@dataclass(slots=True)
class _Step:
    """A pass over a file."""

    path: Path
    name: str
    format: Format
    digest: str
    order: int
    report: FileReport


@dataclass(frozen=True, slots=True)
class _Task:
    """What a load takes, and to whom it reports. `rejects` gets the records that cannot be used, a JSON a line."""

    catalogue: Catalogue
    sources: Sources
    mapping: MappingFile | None
    domain: str | None
    progress: Progress
    rejects: TextIO | None


def load(
    source: Path | Literal["demo"],
    engine: Engine,
    *,
    mapping: Path | None = None,
    domain: str | None = None,
    catalogue: Catalogue = CATALOGUE,
    aside: Path | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """Load a file or a folder into the graph, all or nothing, and index the names of what it holds.

    An unchanged file that was loaded before is skipped; a changed one is merged over its earlier rows. A copy of a
    SQLite database is written and then takes its place, so that readers go on, and a kill changes nothing. `source` is
    a file, a folder, or "demo" for the graph that comes with the service; missing tables are made. `mapping` is YAML
    that says which fields of the files go where; without one, those of the domains are used. Only records of `domain`
    are loaded; those that cannot be used go to `aside` with reasons; `progress` is called with the step, how much of it
    is done, and how much there is, in bytes while reading.

    Raises:
        LoadError: nothing was loaded; the message says why.
    """
    started = time.monotonic()
    if source != "demo" and not Path(source).exists():
        raise LoadError(f"there is no {source}")
    try:
        sources = sources_of(catalogue)
    except BrokenDomain as error:
        raise BadMapping(str(error)) from None
    explicit = sources.read(mapping) if mapping else None
    with _writable(engine) as target, aside.open("w", encoding="utf-8") if aside else nullcontext() as rejects:
        task = _Task(catalogue, sources, explicit, domain, progress or (lambda *_: None), rejects)
        with target.begin() as connection:
            METADATA.create_all(connection)
            forgotten = rebuild_changed(connection, catalogue)
            catalogue.create_tables(connection)
            steps, unknown = _plan(source, task, connection)
            if missing := sorted(forgotten - {step.name for step in steps}):
                raise LoadError(
                    f"tables have other columns than before, and {', '.join(missing[:5])} filled them: load these too, "
                    "or into a new database (CRAGMESH_KG_DATABASE)"
                )
            _run([step for step in steps if not step.report.unchanged], connection, task)
            if refused := sorted({step.name for step in steps if step.name in forgotten and step.report.is_refused}):
                raise LoadError(f"tables have other columns than before, and no record of {refused[0]} fits them")
            tables = {
                table.name: connection.scalar(select(func.count()).select_from(table)) or 0
                for table in (*sources.tables.values(), name_table)
            }
    reports = list({step.name: step.report for step in steps}.values())
    return LoadReport(reports, unknown, tables, time.monotonic() - started)


@contextmanager
def _writable(engine: Engine) -> Iterator[Engine]:
    """The engine; for a SQLite file, an engine of a copy that takes the file's place at the end."""
    path = Path(engine.url.database or "")
    if engine.dialect.name != "sqlite" or engine.url.database in (None, "", ":memory:"):
        yield engine
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    copy = path.with_name(path.name + ".loading")
    with _alone(path):
        # The journal of a killed load would be rolled back into the copy.
        copy.with_name(copy.name + "-journal").unlink(missing_ok=True)
        if path.exists():
            shutil.copyfile(path, copy)
        else:
            copy.unlink(missing_ok=True)
        target = create_engine(f"sqlite:///{copy}")
        try:
            yield target
            target.dispose()
            with copy.open("rb+") as file:
                os.fsync(file.fileno())
            engine.dispose()
            copy.replace(path)
        finally:
            target.dispose()
            copy.unlink(missing_ok=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of the database's writer, which ends with the process.

    Raises:
        LoadError: another load holds it.
    """
    lock = path.with_name(path.name + ".lock")
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The former holder may have removed the file that was opened here.
            is_held = os.fstat(file.fileno()).st_ino == lock.stat().st_ino
        except OSError:
            is_held = False
        if not is_held:
            raise LoadError(f"another load is writing {path}")
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _plan(source: Path | str, task: _Task, connection: Connection) -> tuple[list[_Step], list[str]]:
    """The passes in their order, and the names of files of no known format."""
    steps: list[_Step] = []
    unknown: list[str] = []
    rows = RowAction(task.sources.tables, task.sources.domain_by_table)
    for name, path in _demo_files(task.catalogue) if source == "demo" else _named_files(Path(source)):
        check(path)
        file_format = format_of(path, rows, task.sources.mappings, task.mapping)
        if file_format is None:
            unknown.append(name)
            continue
        if task.domain and task.domain not in file_format.domains:
            continue
        mappings = " ".join(one.digest for one in file_format.mappings)
        current = hashlib.sha256(f"{VERSION} {digest(path)} {mappings} {task.domain}".encode()).hexdigest()
        report = FileReport(name, file_format.name)
        earlier = connection.scalars(select(source_table.c.digest).where(source_table.c.name == name)).all()
        report.unchanged = set(earlier) == {current}
        steps += [_Step(path, name, file_format, current, order, report) for order in file_format.passes]
    if not steps:
        place = f" in {source}" if Path(source).is_dir() else f": {source}"
        raise UnknownFormat(f"no file of a known format{place}; a CSV or JSONL file of your own needs --mapping")
    steps.sort(key=lambda step: (step.order, step.name))
    return steps, unknown


def _demo_files(catalogue: Catalogue) -> Iterator[tuple[str, Path]]:
    """The demo's files of the domains' folders."""
    for domain in catalogue.domains.values():
        if domain.folder.has(DEMO):
            yield f"demo/{domain.name}.jsonl", Path(str(domain.folder.place / DEMO))


def _named_files(root: Path) -> Iterator[tuple[str, Path]]:
    """A file, or the files of a folder without notes beside data, each with its path from the root's parent."""
    for path in [root] if root.is_file() else sorted(root.rglob("*")):
        if path == root or (path.is_file() and not path.name.startswith(".") and path.suffix.lower() not in _NO_DATA):
            yield path.relative_to(root.parent).as_posix(), path


def _run(steps: list[_Step], connection: Connection, task: _Task) -> None:
    if not steps:
        return
    graph = Graph(connection, task.sources.tables)
    writer = Writer(graph, Registry(graph, task.sources.kinds))
    # By file, then by domain.
    as_of: defaultdict[str, dict[str, str]] = defaultdict(dict)
    total = sum(step.path.stat().st_size for step in steps)
    finished = 0
    added = {domain.name for domain in task.catalogue.domains.values() if not domain.bundled}
    for step in steps:
        graph.as_of = as_of[step.name]
        bad, done = _callbacks(step, finished, total, task)
        # Records of public sources complement each other.
        writer.is_strict = step.format.domains <= added
        step.format.load(step.path, step.order, writer, bad, done, task.domain)
        step.report.merged += len(writer.merges)
        step.report.merges += writer.merges[: MERGES_SHOWN - len(step.report.merges)]
        graph.flush()
        finished += step.path.stat().st_size
        task.progress(step.name, finished, total)
    domains = {domain for step in steps for domain in step.report.rows}
    latest = {domain: [moments[domain] for moments in as_of.values() if domain in moments] for domain in domains}
    finish(graph, task.sources, {domain: max(moments, default=None) for domain, moments in latest.items()})
    _put_sources(graph, steps, as_of)
    index_names(connection, task.catalogue, domains, task.progress)


def finish(graph: Graph, sources: Sources, as_of: Mapping[str, str | None]) -> None:
    """Merge the entities of these domains, and run what their Python does after all files.

    `as_of` is the latest moment that the sources have data of, by domain.
    """
    graph.flush()
    for name in sorted(set(as_of) & set(sources.schemas)):
        schema = sources.schemas[name]
        merge(graph, schema)
        if schema.after:
            schema.after(graph, as_of[name])


def _callbacks(step: _Step, finished: int, total: int, task: _Task) -> tuple[Bad, Done]:
    """What reports bad records of a step, and its progress; the bytes of earlier steps are `finished`."""
    report = step.report

    def bad(line: int, error: BadRow, record: object) -> None:
        report.skipped += 1
        if len(report.problems) < PROBLEMS_SHOWN:
            report.problems.append(Problem(line, error.field, error.reason))
        if task.rejects is not None:
            reject = {"file": step.name, "line": line, "field": error.field, "reason": error.reason, "record": record}
            task.rejects.write(json.dumps(reject, ensure_ascii=False) + "\n")

    def done(domain: str, end: int) -> None:
        report.rows[domain] = count = report.rows.get(domain, 0) + 1
        if count % 256 == 0:
            task.progress(step.name, finished + end, total)

    return bad, done


def _put_sources(graph: Graph, steps: list[_Step], as_of: Mapping[str, Mapping[str, str]]) -> None:
    for step in {step.name: step for step in steps}.values():
        # Bad records have no domain of their own: they count where most rows went.
        rows = step.report.rows
        largest = max(rows, key=lambda name: rows[name], default=min(step.format.domains))
        rows.setdefault(largest, 0)
        for domain, count in rows.items():
            moment, skipped = as_of[step.name].get(domain), step.report.skipped if domain == largest else 0
            put_source(graph, step.name, domain, digest=step.digest, as_of=moment, rows=count, skipped=skipped)
    graph.flush()


def put_source(graph: Graph, name: str, domain: str, **columns: str | int | None) -> None:
    """Put the row that says what was loaded from a source into a domain, just now."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    graph.put(source_table.name, {"name": name, "domain": domain, "loaded_at": now, **columns})
