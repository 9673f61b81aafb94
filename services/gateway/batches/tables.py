"""The tables that batches are kept in."""

import sqlalchemy as sql
from sqlalchemy import Column, String, Table, Text

SCHEMA = sql.MetaData()
FILES = Table(
    "batch_files",
    SCHEMA,
    Column("id", String(80), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("created_at", sql.BigInteger, nullable=False),
    Column("filename", Text, nullable=False),
    Column("bytes", sql.BigInteger, nullable=False),
    Column("content", sql.LargeBinary, nullable=False),
)
BATCHES = Table(
    "batches",
    SCHEMA,
    Column("id", String(80), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("created_at", sql.BigInteger, nullable=False),
    Column("expires_at", sql.BigInteger, nullable=False),
    Column("input_file_id", String(80), nullable=False),
    Column("bytes", sql.BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("ended_at", sql.BigInteger),
    Column("metadata", Text),
    Column("errors", Text),
    Column("total", sql.Integer, nullable=False),
    Column("completed", sql.Integer, nullable=False, default=0),
    Column("failed", sql.Integer, nullable=False, default=0),
)
# `reply` is null while a request is open, and empty where its batch ended before its turn.
REQUESTS = Table(
    "batch_requests",
    SCHEMA,
    Column("batch", sql.ForeignKey(BATCHES.c.id, ondelete="CASCADE"), primary_key=True),
    Column("number", sql.Integer, primary_key=True),
    Column("custom_id", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("reply", Text),
    Column("good", sql.Boolean, nullable=False, default=False),
    Column("not_before", sql.BigInteger, nullable=False, default=0),
    Column("tries", sql.Integer, nullable=False, default=0),
)
IS_OPEN = REQUESTS.c.reply.is_(None)
# By number, so that batches are served in turns, a line of each.
sql.Index("open_batch_requests", REQUESTS.c.number, sqlite_where=IS_OPEN, postgresql_where=IS_OPEN)
