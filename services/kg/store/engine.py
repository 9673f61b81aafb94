"""The graph's database: SQLite in a file, read-only, or PostgreSQL by URL. Queries have a deadline in both."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from services.kg.errors import ExecutionTimeout, StoreError
from services.kg.store.texts import LOWERED

# SQLite checks the deadline after so many of its instructions: a tenth of a millisecond.
STEPS_BETWEEN_CHECKS = 2_000
# Of a text or a row that a statement makes; a longer one is an error.
MAX_BYTES = 10_000_000
# Pages that SQLite maps instead of copying; the graph is read far more than it is written.
MMAP_BYTES = 1 << 30

_deadline = threading.local()


def open_store(url: str, *, read_only: bool = True) -> Engine:
    """An engine over the graph; the service only reads, loaders write.

    Raises:
        StoreError: the URL is no URL, or of another database than SQLite and PostgreSQL.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreError("the database of the graph is no URL: sqlite:///file or postgresql+psycopg://...") from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return _sqlite(parsed, read_only=read_only)
    if backend == "postgresql":
        return _postgresql(parsed, read_only=read_only)
    raise StoreError(f"the knowledge graph can be in SQLite or PostgreSQL, not in {backend}")


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Interrupts this thread's statements after so many seconds.

    Raises:
        ExecutionTimeout: a statement was interrupted.
        StoreError: the database is missing, corrupt or has other tables.
    """
    before = getattr(_deadline, "at", None)
    _deadline.at = time.monotonic() + seconds
    try:
        yield
    except DBAPIError as error:
        if is_interrupted(error):
            raise ExecutionTimeout(f"the store did not answer within {seconds:.2f} s") from None
        raise StoreError(f"the knowledge graph cannot be read: {error.orig}") from error
    finally:
        _deadline.at = before


def is_interrupted(error: DBAPIError) -> bool:
    """Whether a statement was ended at its deadline."""
    reason = str(error.orig)
    return isinstance(error, OperationalError) and ("interrupt" in reason or "statement timeout" in reason)


def remaining() -> float | None:
    """Seconds until this thread's deadline; None when it has none."""
    at = getattr(_deadline, "at", None)
    return None if at is None else at - time.monotonic()


def _expired() -> int:
    left = remaining()
    return int(left is not None and left <= 0)


def _sqlite(url: URL, *, read_only: bool) -> Engine:
    if url.database and url.database != ":memory:" and read_only:
        path = Path(url.database).absolute()
        if not path.is_file():
            raise StoreError(f"there is no knowledge graph in {path}: run `cragmesh kg load demo`")
        url = URL.create("sqlite", database=f"file:{path}", query={"mode": "ro", "uri": "true"})
    engine = create_engine(url, connect_args={"check_same_thread": False}, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        if read_only:
            cursor.execute("PRAGMA query_only = on")
            cursor.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
        cursor.execute("PRAGMA temp_store = memory")
        cursor.close()
        connection.set_progress_handler(_expired, STEPS_BETWEEN_CHECKS)
        connection.create_function(LOWERED, 1, _lowered, deterministic=True)
        if read_only:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)

    return engine


def _lowered(text: object) -> object:
    return text.lower() if isinstance(text, str) else text


def _postgresql(url: URL, *, read_only: bool) -> Engine:
    options = "-c default_transaction_read_only=on" if read_only else ""
    engine = create_engine(
        url, connect_args={"options": options} if options else {}, pool_pre_ping=True, hide_parameters=True
    )

    @event.listens_for(engine, "begin")
    def limit(connection: Any) -> None:
        left = remaining()
        if left is not None:
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, int(left * 1000))}")

    return engine
