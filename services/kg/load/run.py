"""Loading a source as a whole: what its files are, in which order they go, and all of it or nothing."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, create_engine, func, select

from services.kg.domains import CATALOGUE
from services.kg.load.errors import BadRow, LoadError, UnknownFormat
from services.kg.load.files import check, digest
from services.kg.load.formats import Context, Format, format_of
from services.kg.load.graph import Graph
from services.kg.load.mapping import Mapping
from services.kg.load.reconcile import reconcile
from services.kg.load.rows import RowLoader
from services.kg.load.surfaces import index_names
from services.kg.store.base import METADATA
from services.kg.store.tables import source as source_table

# Part of each digest: what was loaded in another way is loaded again.
VERSION = 1
PROBLEMS_SHOWN = 20
DEMO = Path(__file__).parent.parent / "domains"
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
    path: Path
    name: str
    format: Format
    digest: str
    turn: int
    report: FileReport


def load(
    source: Path | Literal["demo"],
    engine: Engine,
    *,
    mapping: Path | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """Load a file or a folder into the graph, all or nothing, and index the names of what it holds.

    A file that was loaded before and has not changed is skipped; one that has changed is merged over what it gave.
    A SQLite database is written beside and put in place as a whole, so that readers go on, and a kill changes nothing.

    Args:
        source: a file, a folder, or "demo" for the graph that comes with the service.
        engine: of a database that may be written; its tables are made where they are missing.
        mapping: how the columns of a CSV or JSONL file of one's own relate to the tables.
        domain: take only what belongs to this domain.
        progress: told what is being done, how much of it, and how much there is; bytes while reading.

    Raises:
        LoadError: nothing was loaded; the message says why.
    """
    begin = time.monotonic()
    root = DEMO if source == "demo" else Path(source)
    if not root.exists():
        raise LoadError(f"there is no {root}")
    own = Mapping.read(mapping) if mapping else None
    tell = progress or _silent
    with _writable(engine) as target:
        with target.begin() as connection:
            METADATA.create_all(connection)
        with target.begin() as connection:
            steps, unknown = _plan(root, own, domain, connection, demo=source == "demo")
            _run([step for step in steps if not step.report.unchanged], connection, domain, tell)
            tables = {
                table.name: connection.scalar(select(func.count()).select_from(table)) or 0
                for table in METADATA.sorted_tables
                if not table.name.startswith("name_")
            }
    reports = list({step.name: step.report for step in steps}.values())
    return LoadReport(reports, unknown, tables, time.monotonic() - begin)


def _silent(step: str, done: int, total: int) -> None:
    pass


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


def _plan(
    root: Path, mapping: Mapping | None, domain: str | None, connection: Connection, *, demo: bool
) -> tuple[list[_Step], list[str]]:
    """The steps in order: what is referred to comes before what refers to it."""
    steps: list[_Step] = []
    unknown: list[str] = []
    for path in sorted(root.glob("*/demo.jsonl")) if demo else _files(root):
        name = f"demo/{path.parent.name}.jsonl" if demo else path.relative_to(root.parent).as_posix()
        check(path)
        known = format_of(path, mapping)
        if known is None:
            unknown.append(name)
            continue
        if domain and domain not in known.domains:
            continue
        mark = hashlib.sha256(f"{VERSION} {digest(path)} {mapping.digest if mapping else ''} {domain}".encode())
        report = FileReport(name, known.name)
        before = connection.scalars(select(source_table.c.digest).where(source_table.c.name == name)).all()
        report.unchanged = bool(before) and all(one == mark.hexdigest() for one in before)
        for turn in known.turns:
            steps.append(_Step(path, name, known, mark.hexdigest(), turn, report))
    if not steps:
        found = f" in {root}" if root.is_dir() else f": {root}"
        raise UnknownFormat(f"no file of a known format{found}; a CSV or JSONL file of your own needs --mapping")
    steps.sort(key=lambda step: (step.turn, step.name))
    return steps, unknown


def _files(root: Path) -> Sequence[Path]:
    if root.is_file():
        return [root]
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and path.suffix.lower() not in _NO_DATA
    ]


def _run(steps: list[_Step], connection: Connection, domain: str | None, tell: Progress) -> None:
    if not steps:
        return
    graph = Graph(connection)
    rows = RowLoader(graph)
    as_of: dict[tuple[str, str], str] = {}
    total = sum(step.path.stat().st_size for step in steps)
    before = 0
    for step in steps:
        graph.as_of = {}
        context = Context(graph, rows, domain, *_tellers(step, before, total, tell))
        step.format.load(context, step.path, step.turn)
        graph.flush()
        before += step.path.stat().st_size
        tell(step.name, before, total)
        for name, moment in graph.as_of.items():
            as_of[step.name, name] = max(moment, as_of.get((step.name, name), ""))
    rows.finish()
    touched = {name for step in steps for name in step.report.rows}
    reconcile(connection, touched)
    _note(graph, steps, as_of)
    index_names(connection, CATALOGUE, touched, tell)


def _tellers(
    step: _Step, before: int, total: int, tell: Progress
) -> tuple[Callable[[int, BadRow], None], Callable[[str, int], None]]:
    report = step.report

    def bad(line: int, error: BadRow) -> None:
        report.skipped += 1
        if len(report.problems) < PROBLEMS_SHOWN:
            report.problems.append(Problem(line, error.field, error.reason))

    def done(domain: str, end: int) -> None:
        report.rows[domain] = count = report.rows.get(domain, 0) + 1
        if count % 256 == 0:
            tell(step.name, before + end, total)

    return bad, done


def _note(graph: Graph, steps: list[_Step], as_of: dict[tuple[str, str], str]) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for step in {step.name: step for step in steps}.values():
        # Bad rows have no domain of their own: they count where most rows went.
        first = max(step.report.rows, key=lambda name: step.report.rows[name], default=step.format.domains[0])
        step.report.rows.setdefault(first, 0)
        for domain, count in step.report.rows.items():
            graph.put(
                source_table,
                name=step.name,
                domain=domain,
                digest=step.digest,
                loaded_at=now,
                as_of=as_of.get((step.name, domain)),
                rows=count,
                skipped=step.report.skipped if domain == first else 0,
            )
    graph.flush()
