"""A cache of replies and pages: a table of SQLite in memory or in a file, bounded in bytes and age."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from services.kit.telemetry import log

T = TypeVar("T")

# The value is last and the index has all the rest, so that what is old or too much is found without a look at values.
_TABLES = (
    "DROP TABLE IF EXISTS entry",
    "CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, stored REAL, size INTEGER, value BLOB)",
    "CREATE INDEX IF NOT EXISTS reply_by_age ON reply (stored, key, size)",
)
_GET = "SELECT value FROM reply WHERE key = ? AND stored > ?"
_PUT = "INSERT OR REPLACE INTO reply VALUES (?, ?, ?, ?)"
_OLD = "DELETE FROM reply WHERE stored <= ?"
# The oldest beyond what there is room for.
_OVER = (
    "DELETE FROM reply WHERE key IN (SELECT key FROM"
    " (SELECT key, SUM(size) OVER (ORDER BY stored DESC, key) AS held FROM reply) WHERE held > ?)"
)


class Cache:
    """Bytes by key, in a file or in memory; a failing database is logged and counts as a miss.

    Nothing is kept where `max_bytes`, of keys and values, or an entry's lifetime, `age_s`, is 0.
    """

    def __init__(self, file: Path | None, *, max_bytes: int, age_s: float) -> None:
        self._max_bytes = max_bytes
        self._age_s = age_s
        # SQLite is used from one thread, which is never the event loop's.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cache")
        self._database = self._thread.submit(_open, file).result()

    async def get(self, key: str) -> bytes | None:
        def read() -> bytes | None:
            row = self._database.execute(_GET, (key, time.time() - self._age_s)).fetchone()
            return row[0] if row else None

        return await self._run(read)

    async def put(self, key: str, value: bytes) -> None:
        def write() -> None:
            with self._database:
                now, size = time.time(), len(key) + len(value)
                self._database.execute(_PUT, (key, now, size, value))
                self._database.execute(_OLD, (now - self._age_s,))
                self._database.execute(_OVER, (self._max_bytes,))

        if self._max_bytes and self._age_s:
            await self._run(write)

    def close(self) -> None:
        self._thread.submit(self._database.close).result()
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T | None:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            log.warning("the cache fails", error=str(error))
            return None


def _open(file: Path | None) -> sqlite3.Connection:
    """The database in the file, or in memory where the file is none or cannot be used."""
    if file:
        try:
            return _connect(file)
        except (sqlite3.Error, OSError) as error:
            log.warning("the cache's file cannot be used: it is kept in memory", file=str(file), error=str(error))
    return _connect(":memory:")


def _connect(place: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(place, check_same_thread=False)
    try:
        for statement in _TABLES:
            database.execute(statement)
    except sqlite3.Error:
        database.close()
        raise
    return database
