"""Where batches outlive the gateway: SQLite for one, PostgreSQL for several, which share the work by leases.

Output and error files are no copies: they are read off the replies, which are written one by one.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    Table,
    create_engine,
    delete,
    event,
    func,
    insert,
    make_url,
    or_,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from services.gateway.batches.tables import BATCHES, FILES, IS_OPEN, REQUESTS, SCHEMA
from services.gateway.batches.wire import WINDOW_S, CreateBatch, Line, listed, read, unanswered_line
from services.kit.admission import BodyTooLarge
from services.kit.errors import InvalidRequest, NotFound, Overloaded, Unavailable
from services.kit.telemetry import log

# A question's 30 seconds, and as many again: what a gateway that died had begun is then taken by another.
LEASE_S = 60
# A question that a service was away for is asked again, each time a minute later.
RETRY_S = 60
TRIES = 5
MAX_OPEN = 20
PAGE_LINES = 200
OPEN, COMPLETED, CANCELLED, EXPIRED, FAILED = "in_progress", "completed", "cancelled", "expired", "failed"
OUTPUT, ERRORS = "_output", "_errors"


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
        max_bytes: what one caller's files, and copies of them in batches, may take.
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
        # A connection for each call, which closes it even where the gateway has ended meanwhile.
        self._engine = create_engine(url, poolclass=NullPool)
        if backend == "sqlite":
            event.listen(self._engine, "connect", _prepare_sqlite)
        self._max_bytes = max_bytes
        self._days = days
        self._now = now
        self._made = False
        self._making = threading.Lock()

    def close(self) -> None:
        self._engine.dispose()

    def add_file(self, owner: str, filename: str, content: bytes) -> dict[str, Any]:
        """Keep an input file.

        Raises:
            BodyTooLarge: its owner has too much here.
        """
        row = {
            "id": f"file-{secrets.token_hex(12)}",
            "owner": owner,
            "created_at": int(self._now()),
            "filename": filename[:255],
            "bytes": len(content),
        }
        with self._begin() as connection:
            self._make_room(connection, owner, len(content))
            connection.execute(insert(FILES).values(**row, content=content))
        return self._file(row)

    def files(self, owner: str, after: str | None, limit: int) -> dict[str, Any]:
        with self._begin() as connection:
            rows = _page(connection, FILES, owner, after, limit)
        return listed([self._file(row._asdict()) for row in rows], limit)

    def file(self, owner: str, name: str) -> dict[str, Any]:
        """A file by its id, as do all below.

        Raises:
            NotFound: the owner has none of that id.
        """
        with self._begin() as connection:
            if not (part := _part(name)):
                return self._file(_one(connection, FILES, owner, name)._asdict())
            batch = self._ended(connection, owner, *part)
            size = select(func.sum(func.length(REQUESTS.c.reply) + 1)).where(*_lines_of(batch.id, part[1]))
            size_bytes = connection.execute(size).scalar() or 0
        row = {"id": name, "created_at": batch.ended_at, "bytes": size_bytes, "filename": f"{name}.jsonl"}
        return self._file(row) | {"purpose": "batch_output"}

    def content(self, owner: str, name: str) -> Iterator[bytes]:
        """The file piece by piece; raises before the first."""
        with self._begin() as connection:
            if not (part := _part(name)):
                return iter((_one(connection, FILES, owner, name).content,))
            batch = self._ended(connection, owner, *part)
        return self._replies(batch, part[1])

    def remove_file(self, owner: str, name: str) -> dict[str, Any]:
        """Remove a file: of a batch that ended, its replies, and the questions that they answer."""
        with self._begin() as connection:
            if part := _part(name):
                batch = self._ended(connection, owner, *part)
                connection.execute(delete(REQUESTS).where(*_lines_of(batch.id, part[1])))
            else:
                _one(connection, FILES, owner, name)
                connection.execute(delete(FILES).where(FILES.c.id == name))
        return {"id": name, "object": "file", "deleted": True}

    def add_batch(self, owner: str, asked: CreateBatch) -> dict[str, Any]:
        """Begin a batch; one whose file is not what it must be is there, has failed and says why.

        Raises:
            NotFound: there is no such file.
            InvalidRequest: the file is an output.
            Overloaded: its owner has as many under way as may be.
        """
        with self._begin() as connection:
            if _part(asked.input_file_id):
                raise InvalidRequest("input_file_id: its purpose is not batch")
            file = _one(connection, FILES, owner, asked.input_file_id)
            theirs = BATCHES.c.owner == owner, BATCHES.c.status == OPEN
            if connection.execute(select(func.count()).where(*theirs)).scalar_one() >= MAX_OPEN:
                raise Overloaded(f"{MAX_OPEN} batches are under way, which is all that one key may have")
            self._make_room(connection, owner, file.bytes)
        lines, faults = read(file.content)
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
            "metadata": json.dumps(asked.metadata) if asked.metadata else None,
            "errors": json.dumps(faults) if faults else None,
            "total": 0 if faults else len(lines),
        }
        with self._begin() as connection:
            connection.execute(insert(BATCHES).values(**row))
            if not faults:
                connection.execute(insert(REQUESTS), [_request(row["id"], *line) for line in enumerate(lines)])
        return self.batch(owner, str(row["id"]))

    def batch(self, owner: str, name: str) -> dict[str, Any]:
        with self._begin() as connection:
            return _object(_one(connection, BATCHES, owner, name))

    def batches(self, owner: str, after: str | None, limit: int) -> dict[str, Any]:
        with self._begin() as connection:
            return listed([_object(row) for row in _page(connection, BATCHES, owner, after, limit)], limit)

    def cancel(self, owner: str, name: str) -> dict[str, Any]:
        """End a batch now; one that has ended stays as it is. What was answered can be read."""
        with self._begin() as connection:
            _one(connection, BATCHES, owner, name)
            self._end(connection, name, CANCELLED)
        return self.batch(owner, name)

    def take(self) -> Item | None:
        """The next request, leased; None where there is none now."""
        now = int(self._now())
        mine = (
            select(REQUESTS.c.batch, REQUESTS.c.number)
            .join(BATCHES)
            .where(IS_OPEN, BATCHES.c.status == OPEN, BATCHES.c.expires_at > now, REQUESTS.c.not_before <= now)
            .order_by(REQUESTS.c.number, BATCHES.c.created_at)
            .limit(1)
            .with_for_update(of=REQUESTS, skip_locked=True)
        )
        with self._begin() as connection:
            if (key := connection.execute(mine).first()) is None:
                return None
            connection.execute(update(REQUESTS).where(*_is(*key)).values(not_before=now + LEASE_S))
            columns = REQUESTS.c.custom_id, REQUESTS.c.body, REQUESTS.c.tries, BATCHES.c.owner
            row = connection.execute(select(*columns).join(BATCHES).where(*_is(*key))).one()
        return Item(*key, owner=row.owner, custom_id=row.custom_id, body=row.body, tries=row.tries)

    def give_back(self, item: Item, *, failed: bool) -> None:
        """Leave a request to whoever is next, at once or, where an attempt failed, after a while."""
        later = {"not_before": int(self._now()) + RETRY_S, "tries": item.tries + 1} if failed else {"not_before": 0}
        with self._begin() as connection:
            connection.execute(update(REQUESTS).where(*_is(item.batch, item.number), IS_OPEN).values(**later))

    def finish(self, item: Item, reply: str, *, good: bool) -> None:
        """Keep a reply, once, whoever else has one; the last ends the batch."""
        counter = BATCHES.c.completed if good else BATCHES.c.failed
        with self._begin() as connection:
            kept = update(REQUESTS).where(*_is(item.batch, item.number), IS_OPEN).values(reply=reply, good=good)
            if connection.execute(kept).rowcount:
                batch = BATCHES.c.id == item.batch
                connection.execute(update(BATCHES).where(batch).values({counter: counter + 1}))
                done = BATCHES.c.completed + BATCHES.c.failed == BATCHES.c.total
                ended = {"status": COMPLETED, "ended_at": int(self._now())}
                connection.execute(update(BATCHES).where(batch, done, BATCHES.c.status == OPEN).values(**ended))

    def sweep(self) -> None:
        """End what has expired, and remove what is older than is kept."""
        now = int(self._now())
        before = now - self._days * 86_400
        with self._begin() as connection:
            late = select(BATCHES.c.id).where(BATCHES.c.status == OPEN, BATCHES.c.expires_at <= now)
            for name in connection.execute(late).scalars().all():
                self._end(connection, name, EXPIRED)
            connection.execute(delete(BATCHES).where(BATCHES.c.ended_at < before))
            connection.execute(delete(FILES).where(FILES.c.created_at < before))

    def _end(self, connection: Connection, name: str, status: str) -> None:
        ended = {"status": status, "ended_at": int(self._now())}
        is_open = BATCHES.c.id == name, BATCHES.c.status == OPEN
        if connection.execute(update(BATCHES).where(*is_open).values(**ended)).rowcount:
            connection.execute(update(REQUESTS).where(REQUESTS.c.batch == name, IS_OPEN).values(reply=""))

    def _ended(self, connection: Connection, owner: str, name: str, kind: str) -> Row[Any]:
        batch = _one(connection, BATCHES, owner, name)
        if _object(batch)[f"{kind.strip('_').removesuffix('s')}_file_id"] is None:
            raise NotFound("no file of that id")
        return batch

    def _replies(self, batch: Row[Any], kind: str) -> Iterator[bytes]:
        reached = -1
        columns = REQUESTS.c.number, REQUESTS.c.custom_id, REQUESTS.c.reply
        lines = select(*columns).where(*_lines_of(batch.id, kind)).order_by(REQUESTS.c.number).limit(PAGE_LINES)
        while True:
            with self._begin() as connection:
                rows = connection.execute(lines.where(REQUESTS.c.number > reached)).all()
            if not rows:
                return
            reached = rows[-1].number
            texts = (row.reply or unanswered_line(row.custom_id, row.number, batch.status) for row in rows)
            yield "".join(f"{text}\n" for text in texts).encode()

    def _make_room(self, connection: Connection, owner: str, size: int) -> None:
        sums: list[Select[Any]] = [select(func.sum(t.c.bytes)).where(t.c.owner == owner) for t in (FILES, BATCHES)]
        if sum(connection.execute(one).scalar() or 0 for one in sums) + size > self._max_bytes:
            mib = self._max_bytes // 2**20
            raise BodyTooLarge(f"files and batches of this key may take {mib} MiB together: remove some")

    def _file(self, row: dict[str, Any]) -> dict[str, Any]:
        kept = {name: row[name] for name in ("id", "bytes", "created_at", "filename")}
        expires = row["created_at"] + self._days * 86_400
        return kept | {"object": "file", "purpose": "batch", "status": "processed", "expires_at": expires}

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        try:
            with self._making:
                if not self._made:
                    SCHEMA.create_all(self._engine)
                    self._made = True
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


def _is(batch: str, number: int) -> tuple[Any, ...]:
    return REQUESTS.c.batch == batch, REQUESTS.c.number == number


def _part(name: str) -> tuple[str, str] | None:
    """The batch and the kind that the id of an output file stands for."""
    for kind in (OUTPUT, ERRORS):
        if name.startswith("file-batch_") and name.endswith(kind):
            return name.removeprefix("file-").removesuffix(kind), kind
    return None


def _lines_of(batch: str, kind: str) -> tuple[Any, ...]:
    return REQUESTS.c.batch == batch, REQUESTS.c.good.is_(kind == OUTPUT), ~IS_OPEN


def _one(connection: Connection, table: Table, owner: str, name: str) -> Row[Any]:
    row = connection.execute(select(table).where(table.c.id == name, table.c.owner == owner)).first()
    if row is None:
        raise NotFound(f"no {'file' if table is FILES else 'batch'} of that id")
    return row


def _page(connection: Connection, table: Table, owner: str, after: str | None, limit: int) -> list[Row[Any]]:
    """The newest first, from behind `after`, and one more than the limit."""
    columns = [column for column in table.c if column.name != "content"]
    rows = select(*columns).where(table.c.owner == owner)
    if after is not None:
        last = _one(connection, table, owner, after)
        older = table.c.created_at < last.created_at
        rows = rows.where(or_(older, (table.c.created_at == last.created_at) & (table.c.id < last.id)))
    return list(connection.execute(rows.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit + 1)))


def _object(row: Row[Any]) -> dict[str, Any]:
    ended = row.status != OPEN
    unanswered = row.total - row.completed
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
        **({f"{row.status}_at": row.ended_at} if ended else {}),
        "output_file_id": f"file-{row.id}{OUTPUT}" if ended and row.completed else None,
        "error_file_id": f"file-{row.id}{ERRORS}" if ended and unanswered else None,
        "errors": {"object": "list", "data": json.loads(row.errors)} if row.errors else None,
        "request_counts": {"total": row.total, "completed": row.completed, "failed": row.failed},
        "metadata": json.loads(row.metadata) if row.metadata else None,
    }
