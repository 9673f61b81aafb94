"""Loading a source as a whole: what its files are, in which order they go, and all of it or nothing."""

import fcntl
import hashlib
import json
import os
import shutil
import time
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
from services.kg.load.files import check, digest
from services.kg.load.graph import Graph
from services.kg.load.plan import Bad, Done, Format, format_of
from services.kg.load.reading import Writer
from services.kg.load.reconcile import merge
from services.kg.load.registry import Registry
from services.kg.load.rows import RowAction
from services.kg.load.schema import Described, Sources, sources_of
from services.kg.load.surfaces import index_names
from services.kg.store.base import METADATA
from services.kg.store.names import name_table
from services.kg.store.tables import source as source_table

# Part of each digest: what was loaded in another way is loaded again.
VERSION = 2
PROBLEMS_SHOWN = 20
DEMO = "demo.jsonl"
# Notes beside data.
_NO_DATA = frozenset({".md", ".txt", ".license", ".py", ".ipynb", ".yaml", ".yml"})

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that was skipped. `line` is 0 where a file has no lines."""

    line: int
    field: str
    reason: str


@dataclass(slots=True)
class FileReport:
    """What became of one file."""

    name: str
    format: str
    rows: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    problems: list[Problem] = field(default_factory=list)
    # Read before, and not changed since.
    unchanged: bool = False


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
        """Nothing was to do."""
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
class _Load:
    """What a load is to take, and who is told of it. `aside` gets the records that cannot be used, a JSON a line."""

    catalogue: Catalogue
    sources: Sources
    given: Described | None
    domain: str | None
    tell: Progress
    aside: TextIO | None


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

    A file that was loaded before and has not changed is skipped; one that has changed is merged over what it gave. A
    SQLite database is written beside and put in place as a whole, so that readers go on, and a kill changes nothing.
    `source` is a file, a folder, or "demo" for the graph that comes with the service; its tables are made where they
    are missing. Without `mapping`, YAML that says which fields of the files go where, those of the domains are used.
    Only what belongs to `domain` is taken; records that cannot be used go to `aside` with reasons; `progress` is told
    what is being done, how much of it, and how much there is, in bytes while reading.

    Raises:
        LoadError: nothing was loaded; the message says why.
    """
    begin = time.monotonic()
    if source != "demo" and not Path(source).exists():
        raise LoadError(f"there is no {source}")
    try:
        sources = sources_of(catalogue)
    except BrokenDomain as error:
        raise BadMapping(str(error)) from None
    given = sources.describe(mapping) if mapping else None
    with _writable(engine) as target, aside.open("w", encoding="utf-8") if aside else nullcontext() as rejects:
        task = _Load(catalogue, sources, given, domain, progress or (lambda *_: None), rejects)
        with target.begin() as connection:
            METADATA.create_all(connection)
            catalogue.create_tables(connection)
        with target.begin() as connection:
            steps, unknown = _plan(source, task, connection)
            _run([step for step in steps if not step.report.unchanged], connection, task)
            tables = {
                table.name: connection.scalar(select(func.count()).select_from(table)) or 0
                for table in (*sources.tables.values(), source_table, name_table)
            }
    reports = list({step.name: step.report for step in steps}.values())
    return LoadReport(reports, unknown, tables, time.monotonic() - begin)


@contextmanager
def _writable(engine: Engine) -> Iterator[Engine]:
    """The engine, or for a SQLite file one of a copy that takes its place at the end."""
    path = Path(engine.url.database or "")
    if engine.dialect.name != "sqlite" or engine.url.database in (None, "", ":memory:"):
        yield engine
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    copy = path.with_name(path.name + ".loading")
    with _alone(path):
        # What a killed load left would be rolled back into the copy.
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
    """The only load that writes this database, told by a lock that goes with the process."""
    beside = path.with_name(path.name + ".lock")
    with beside.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had the lock before may have removed the file that was opened here.
            mine = os.fstat(lock.fileno()).st_ino == beside.stat().st_ino
        except OSError:
            mine = False
        if not mine:
            raise LoadError(f"another load is writing {path}")
        try:
            yield
        finally:
            beside.unlink(missing_ok=True)


def _plan(source: Path | str, task: _Load, connection: Connection) -> tuple[list[_Step], list[str]]:
    """The passes in order: what is referred to comes before what refers to it."""
    steps: list[_Step] = []
    unknown: list[str] = []
    rows = RowAction(task.sources.tables, task.sources.domain_by_table)
    for name, path in _demo_files(task.catalogue) if source == "demo" else _named_files(Path(source)):
        check(path)
        form = format_of(path, rows, task.sources.mappings, task.given)
        if form is None:
            unknown.append(name)
            continue
        if task.domain and task.domain not in form.domains:
            continue
        described = " ".join(one.digest for one in form.described)
        mark = hashlib.sha256(f"{VERSION} {digest(path)} {described} {task.domain}".encode()).hexdigest()
        report = FileReport(name, form.name)
        before = connection.scalars(select(source_table.c.digest).where(source_table.c.name == name)).all()
        report.unchanged = bool(before) and all(one == mark for one in before)
        steps += [_Step(path, name, form, mark, order, report) for order in form.passes]
    if not steps:
        found = f" in {source}" if Path(source).is_dir() else f": {source}"
        raise UnknownFormat(f"no file of a known format{found}; a CSV or JSONL file of your own needs --mapping")
    steps.sort(key=lambda step: (step.order, step.name))
    return steps, unknown


def _demo_files(catalogue: Catalogue) -> Iterator[tuple[str, Path]]:
    """What domains bring to begin with."""
    for domain in catalogue.domains.values():
        if domain.folder.has(DEMO):
            yield f"demo/{domain.name}.jsonl", Path(str(domain.folder.place / DEMO))


def _named_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Files of a folder, by their place in it, without notes beside data."""
    for path in [root] if root.is_file() else sorted(root.rglob("*")):
        if path == root or (path.is_file() and not path.name.startswith(".") and path.suffix.lower() not in _NO_DATA):
            yield path.relative_to(root.parent).as_posix(), path


def _run(steps: list[_Step], connection: Connection, task: _Load) -> None:
    if not steps:
        return
    graph = Graph(connection, {**task.sources.tables, source_table.name: source_table})
    writer = Writer(graph, Registry(graph, task.sources.kinds))
    as_of: dict[tuple[str, str], str] = {}
    total = sum(step.path.stat().st_size for step in steps)
    before = 0
    for step in steps:
        graph.as_of = {}
        bad, done = _tellers(step, before, total, task)
        step.format.load(step.path, step.order, writer, bad, done, task.domain)
        graph.flush()
        before += step.path.stat().st_size
        task.tell(step.name, before, total)
        for name, moment in graph.as_of.items():
            as_of[step.name, name] = max(moment, as_of.get((step.name, name), ""))
    touched = {name for step in steps for name in step.report.rows}
    latest = {name: max((at for (_, one), at in as_of.items() if one == name), default=None) for name in touched}
    finish(graph, task.sources, latest)
    _note(graph, steps, as_of)
    index_names(connection, task.catalogue, touched, task.tell)


def finish(graph: Graph, sources: Sources, as_of: Mapping[str, str | None]) -> None:
    """What only the whole tells: who is one, and what the Python of a domain does then."""
    graph.flush()
    for name in sorted(set(as_of) & set(sources.schemas)):
        schema = sources.schemas[name]
        merge(graph, schema)
        if schema.after:
            schema.after(graph, as_of[name])


def _tellers(step: _Step, before: int, total: int, task: _Load) -> tuple[Bad, Done]:
    report = step.report

    def bad(line: int, error: BadRow, record: object) -> None:
        report.skipped += 1
        if len(report.problems) < PROBLEMS_SHOWN:
            report.problems.append(Problem(line, error.field, error.reason))
        if task.aside is not None:
            stated = {"file": step.name, "line": line, "field": error.field, "reason": error.reason, "record": record}
            task.aside.write(json.dumps(stated, ensure_ascii=False) + "\n")

    def done(domain: str, end: int) -> None:
        report.rows[domain] = count = report.rows.get(domain, 0) + 1
        if count % 256 == 0:
            task.tell(step.name, before + end, total)

    return bad, done


def _note(graph: Graph, steps: list[_Step], as_of: dict[tuple[str, str], str]) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for step in {step.name: step for step in steps}.values():
        # Bad records have no domain of their own: they count where most rows went.
        rows = step.report.rows
        first = max(rows, key=lambda name: rows[name], default=min(step.format.domains))
        rows.setdefault(first, 0)
        for domain, count in rows.items():
            row = {
                "name": step.name,
                "domain": domain,
                "digest": step.digest,
                "loaded_at": now,
                "as_of": as_of.get((step.name, domain)),
                "rows": count,
                "skipped": step.report.skipped if domain == first else 0,
            }
            graph.put(source_table.name, row)
    graph.flush()
