"""Batches in a database: SQLite for one gateway, PostgreSQL for several, which share the work by leases.

Output and error files are views of the replies, which are written one by one.
"""

import asyncio
import contextvars
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Row,
    Select,
    Table,
    create_engine,
    delete,
    event,
    exists,
    func,
    insert,
    make_url,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from services.gateway.batches.tables import BATCHES, FILES, IS_OPEN, REQUESTS, SCHEMA
from services.gateway.batches.wire import WINDOW_S, CreateBatch, Line, listed, read_lines, unanswered_line
from services.kit.admission import BodyTooLarge
from services.kit.errors import InvalidRequest, NotFound, Overloaded, Unavailable
from services.kit.telemetry import log

# A question's 30 seconds, and as many again: then another gateway takes what one that died had begun.
LEASE_S = 60
# Until a request that a service was away for is tried again.
RETRY_S = 60
TRIES = 5
# What a client reads of a file at a time.
PIECE_BYTES = 256 * 1024
MAX_OPEN = 20
PAGE_LINES = 200
OPEN, COMPLETED, CANCELLED, EXPIRED, FAILED = "in_progress", "completed", "cancelled", "expired", "failed"
OUTPUT, ERRORS = "_output", "_errors"


# Of a database that does not answer: seconds, milliseconds, milliseconds.
_CONNECTING = {"connect_timeout": 5, "options": "-c statement_timeout=10000", "tcp_user_timeout": 10_000}
THREADS = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item:
    """A request whose turn has come."""

    batch: str
    number: int
    owner: str
    custom_id: str
    body: str
    tries: int


class Store:
    """Files and batches of all callers; each sees its own alone. Every method blocks.

    Args:
        url: `sqlite:///FILE` or `postgresql+psycopg://...`.
        max_bytes: of one caller's files and their copies in batches.
        days: that files and ended batches are kept.
        now: seconds since 1970.

    Raises:
        ValueError: the URL names another kind of database.
        Unavailable: from each method, where the database cannot be used.
    """

    def __init__(self, url: str, *, max_bytes: int, days: int, now: Callable[[], float] = time.time) -> None:
        backend = make_url(url).get_backend_name()
        if backend not in ("sqlite", "postgresql"):
            raise ValueError(f"batches can be kept in SQLite or PostgreSQL, not in {backend}")
        # A connection a call: it is closed even where the gateway has ended meanwhile.
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            connect_args=dict(_CONNECTING) if backend == "postgresql" else {},
            # An error is logged, and would show questions and answers.
            hide_parameters=True,
        )
        # Threads of its own: a database that does not answer holds up nothing else.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="batches")
        if backend == "sqlite":
            event.listen(self._engine, "connect", _prepare_sqlite)
        self._max_bytes = max_bytes
        self._days = days
        self._now = now
        self._has_tables = False
        self._tables_lock = threading.Lock()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._engine.dispose()

    async def call(self, method: Callable[..., T], *args: Any, **options: Any) -> T:
        """The result of a method, in a thread."""
        run = partial(contextvars.copy_context().run, method, *args, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def add_file(self, owner: str, filename: str, content: bytes) -> dict[str, Any]:
        """Keep an input file.

        Raises:
            BodyTooLarge: its owner's files would take too many bytes.
        """
        row = {
            "id": f"file-{secrets.token_hex(12)}",
            "owner": owner,
            "created_at": int(self._now()),
            "filename": filename[:255],
            "bytes": len(content),
        }
        with self._transaction() as connection:
            self._make_room(connection, owner, len(content))
            connection.execute(insert(FILES).values(**row, content=content))
        return self._file_object(row)

    def files(self, owner: str, after: str | None, limit: int) -> dict[str, Any]:
        with self._transaction() as connection:
            rows = _page(connection, FILES, owner, after, limit)
        return listed([self._file_object(row._asdict()) for row in rows], limit)

    def file(self, owner: str, name: str) -> dict[str, Any]:
        """A file by its id, as do all below.

        Raises:
            NotFound: the owner has none of that id.
        """
        with self._transaction() as connection:
            if not (output := _output_of(name)):
                return self._file_object(_owned(connection, FILES, owner, name)._asdict())
            batch = _with_output(connection, owner, *output)
            size = select(func.sum(func.length(REQUESTS.c.reply) + 1)).where(*_lines_of(batch.id, output[1]))
            row = {"id": name, "created_at": batch.ended_at, "filename": f"{name}.jsonl"}
            row["bytes"] = connection.execute(size).scalar() or 0
        return self._file_object(row) | {"purpose": "batch_output"}

    def content(self, owner: str, name: str) -> Iterator[bytes]:
        """The file piece by piece; raises before the first."""
        with self._transaction() as connection:
            if not (output := _output_of(name)):
                content = _owned(connection, FILES, owner, name).content
                return (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))
            batch = _with_output(connection, owner, *output)
        return self._replies(batch, output[1])

    def remove_file(self, owner: str, name: str) -> dict[str, Any]:
        """Remove a file: of a batch that ended, its replies, and the questions that they answer."""
        with self._transaction() as connection:
            if output := _output_of(name):
                batch = _with_output(connection, owner, *output)
                connection.execute(delete(REQUESTS).where(*_lines_of(batch.id, output[1])))
                is_empty = ~exists().where(REQUESTS.c.batch == batch.id)
                connection.execute(update(BATCHES).where(BATCHES.c.id == batch.id, is_empty).values(bytes=0))
            else:
                _owned(connection, FILES, owner, name)
                connection.execute(delete(FILES).where(FILES.c.id == name))
        return {"id": name, "object": "file", "deleted": True}

    def add_batch(self, owner: str, request: CreateBatch) -> dict[str, Any]:
        """Begin a batch; one with a faulty file has failed at once and lists the faults.

        Raises:
            NotFound: there is no such file.
            InvalidRequest: the file is an output.
            Overloaded: its owner has `MAX_OPEN` batches under way.
        """
        with self._transaction() as connection:
            if _output_of(request.input_file_id):
                raise InvalidRequest("input_file_id: its purpose is not batch")
            file = _owned(connection, FILES, owner, request.input_file_id)
            under_way = select(func.count()).where(BATCHES.c.owner == owner, BATCHES.c.status == OPEN)
            if connection.execute(under_way).scalar_one() >= MAX_OPEN:
                raise Overloaded(f"{MAX_OPEN} batches are under way, which is all that one key may have")
            self._make_room(connection, owner, file.bytes)
        lines, faults = read_lines(file.content)
        now = int(self._now())
        row = {
            "id": f"batch_{secrets.token_hex(12)}",
            "owner": owner,
            "created_at": now,
            "expires_at": now + WINDOW_S,
            "input_file_id": file.id,
            "bytes": 0 if faults else file.bytes,
            "status": FAILED if faults else OPEN,
            "ended_at": now if faults else None,
            "metadata": json.dumps(request.metadata) if request.metadata else None,
            "errors": json.dumps(faults) if faults else None,
            "total": 0 if faults else len(lines),
        }
        with self._transaction() as connection:
            connection.execute(insert(BATCHES).values(**row))
            if not faults:
                connection.execute(insert(REQUESTS), [_request(row["id"], *line) for line in enumerate(lines)])
        return self.batch(owner, str(row["id"]))

    def batch(self, owner: str, name: str) -> dict[str, Any]:
        with self._transaction() as connection:
            return _batch_object(_owned(connection, BATCHES, owner, name))

    def batches(self, owner: str, after: str | None, limit: int) -> dict[str, Any]:
        with self._transaction() as connection:
            return listed([_batch_object(row) for row in _page(connection, BATCHES, owner, after, limit)], limit)

    def cancel(self, owner: str, name: str) -> dict[str, Any]:
        """End a batch now; its replies can be read. One that has ended stays as it is."""
        with self._transaction() as connection:
            _owned(connection, BATCHES, owner, name)
            self._end(connection, name, CANCELLED)
        return self.batch(owner, name)

    def take(self) -> Item | None:
        """The next request, leased; None where no request is due."""
        now = int(self._now())
        due = (
            select(REQUESTS.c.batch, REQUESTS.c.number)
            .join(BATCHES)
            .where(IS_OPEN, BATCHES.c.status == OPEN, BATCHES.c.expires_at > now, REQUESTS.c.not_before <= now)
            .order_by(REQUESTS.c.number, BATCHES.c.created_at)
            .limit(1)
            .with_for_update(of=REQUESTS, skip_locked=True)
        )
        with self._transaction() as connection:
            if (key := connection.execute(due).first()) is None:
                return None
            connection.execute(update(REQUESTS).where(*_at(*key)).values(not_before=now + LEASE_S))
            columns = REQUESTS.c.custom_id, REQUESTS.c.body, REQUESTS.c.tries, BATCHES.c.owner
            row = connection.execute(select(*columns).join(BATCHES).where(*_at(*key))).one()
        return Item(*key, owner=row.owner, custom_id=row.custom_id, body=row.body, tries=row.tries)

    def give_back(self, item: Item, *, failed: bool) -> None:
        """End a lease: the request is due at once or, where an attempt failed, after `RETRY_S`."""
        later = {"not_before": int(self._now()) + RETRY_S, "tries": item.tries + 1} if failed else {"not_before": 0}
        with self._transaction() as connection:
            connection.execute(update(REQUESTS).where(*_at(item.batch, item.number), IS_OPEN).values(**later))

    def finish(self, item: Item, reply: str, *, good: bool) -> None:
        """Keep a request's first reply; the last one ends the batch."""
        counter = BATCHES.c.completed if good else BATCHES.c.failed
        with self._transaction() as connection:
            first = update(REQUESTS).where(*_at(item.batch, item.number), IS_OPEN).values(reply=reply, good=good)
            if connection.execute(first).rowcount:
                batch = BATCHES.c.id == item.batch
                connection.execute(update(BATCHES).where(batch).values({counter: counter + 1}))
                done = BATCHES.c.completed + BATCHES.c.failed == BATCHES.c.total
                ended = {"status": COMPLETED, "ended_at": int(self._now())}
                connection.execute(update(BATCHES).where(batch, done, BATCHES.c.status == OPEN).values(**ended))

    def sweep(self) -> None:
        """End batches that have expired, and remove files and batches that are older than `days`."""
        now = int(self._now())
        before = now - self._days * 86_400
        with self._transaction() as connection:
            expired = select(BATCHES.c.id).where(BATCHES.c.status == OPEN, BATCHES.c.expires_at <= now)
            for name in connection.execute(expired).scalars().all():
                self._end(connection, name, EXPIRED)
            connection.execute(delete(BATCHES).where(BATCHES.c.ended_at < before))
            connection.execute(delete(FILES).where(FILES.c.created_at < before))

    def _end(self, connection: Connection, name: str, status: str) -> None:
        ended = {"status": status, "ended_at": int(self._now())}
        is_open = BATCHES.c.id == name, BATCHES.c.status == OPEN
        if connection.execute(update(BATCHES).where(*is_open).values(**ended)).rowcount:
            connection.execute(update(REQUESTS).where(REQUESTS.c.batch == name, IS_OPEN).values(reply=""))

    def _replies(self, batch: Row[Any], kind: str) -> Iterator[bytes]:
        last = -1
        columns = REQUESTS.c.number, REQUESTS.c.custom_id, REQUESTS.c.reply
        lines = select(*columns).where(*_lines_of(batch.id, kind)).order_by(REQUESTS.c.number).limit(PAGE_LINES)
        while True:
            with self._transaction() as connection:
                rows = connection.execute(lines.where(REQUESTS.c.number > last)).all()
            if not rows:
                return
            last = rows[-1].number
            texts = (row.reply or unanswered_line(row.custom_id, row.number, batch.status) for row in rows)
            yield "".join(f"{text}\n" for text in texts).encode()

    def _make_room(self, connection: Connection, owner: str, size: int) -> None:
        sums: list[Select[Any]] = [select(func.sum(t.c.bytes)).where(t.c.owner == owner) for t in (FILES, BATCHES)]
        if sum(connection.execute(one).scalar() or 0 for one in sums) + size > self._max_bytes:
            mib = self._max_bytes // 2**20
            raise BodyTooLarge(f"files and batches of this key may take {mib} MiB together: remove some")

    def _file_object(self, row: dict[str, Any]) -> dict[str, Any]:
        own = {name: row[name] for name in ("id", "bytes", "created_at", "filename")}
        expires = row["created_at"] + self._days * 86_400
        return own | {"object": "file", "purpose": "batch", "status": "processed", "expires_at": expires}

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._tables_lock:
                if not self._has_tables:
                    SCHEMA.create_all(self._engine)
                    self._has_tables = True
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            log.error("the database of batches cannot be used", exc_info=error)
            raise Unavailable("the database of batches cannot be used") from error


def _prepare_sqlite(connection: Any, _: Any) -> None:
    with closing(connection.cursor()) as cursor:
        for pragma in ("journal_mode = wal", "busy_timeout = 5000", "foreign_keys = on", "secure_delete = on"):
            cursor.execute(f"PRAGMA {pragma}")


def _request(batch: Any, number: int, line: Line) -> dict[str, Any]:
    return {"batch": batch, "number": number, "custom_id": line.custom_id, "body": json.dumps(line.body)}


def _at(batch: str, number: int) -> tuple[Any, ...]:
    return REQUESTS.c.batch == batch, REQUESTS.c.number == number


def _output_of(name: str) -> tuple[str, str] | None:
    """The batch and the kind (`OUTPUT`, `ERRORS`) of an output file's id; None for an input file's."""
    for kind in (OUTPUT, ERRORS):
        if name.startswith("file-batch_") and name.endswith(kind):
            return name.removeprefix("file-").removesuffix(kind), kind
    return None


def _lines_of(batch: str, kind: str) -> tuple[Any, ...]:
    return REQUESTS.c.batch == batch, REQUESTS.c.good.is_(kind == OUTPUT), ~IS_OPEN


def _owned(connection: Connection, table: Table, owner: str, name: str) -> Row[Any]:
    row = connection.execute(select(table).where(table.c.id == name, table.c.owner == owner)).first()
    if row is None:
        raise NotFound(f"no {'file' if table is FILES else 'batch'} of that id")
    return row


def _with_output(connection: Connection, owner: str, name: str, kind: str) -> Row[Any]:
    """A batch that has an output file of a kind."""
    batch = _owned(connection, BATCHES, owner, name)
    if _output_id(batch, kind) is None:
        raise NotFound("no file of that id")
    return batch


def _output_id(batch: Row[Any], kind: str) -> str | None:
    lines = batch.completed if kind == OUTPUT else batch.total - batch.completed
    return f"file-{batch.id}{kind}" if batch.status != OPEN and lines else None


def _page(connection: Connection, table: Table, owner: str, after: str | None, limit: int) -> list[Row[Any]]:
    """The owner's rows behind `after`, newest first, one more than the limit."""
    columns = [column for column in table.c if column.name != "content"]
    rows = select(*columns).where(table.c.owner == owner)
    if after is not None:
        last = _owned(connection, table, owner, after)
        rows = rows.where(tuple_(table.c.created_at, table.c.id) < (last.created_at, last.id))
    return list(connection.execute(rows.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit + 1)))


def _batch_object(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "input_file_id": row.input_file_id,
        "status": row.status,
        "created_at": row.created_at,
        "in_progress_at": row.created_at if row.status != FAILED else None,
        "expires_at": row.expires_at,
        **({f"{row.status}_at": row.ended_at} if row.status != OPEN else {}),
        "output_file_id": _output_id(row, OUTPUT),
        "error_file_id": _output_id(row, ERRORS),
        "errors": {"object": "list", "data": json.loads(row.errors)} if row.errors else None,
        "request_counts": {"total": row.total, "completed": row.completed, "failed": row.failed},
        "metadata": json.loads(row.metadata) if row.metadata else None,
    }
