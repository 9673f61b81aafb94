"""Tables that no single domain owns.

Identifiers and dates are text in every table: identifiers come as numbers from one source and as names from another,
and dates are ISO 8601, complete ("2003-04-21") or not ("2003-04", "2003"), so that they sort and compare as strings
alike in SQLite and PostgreSQL.
"""

from sqlalchemy import BigInteger, Column, MetaData, Table, Text

# Of all tables of the graph.
METADATA = MetaData()

# A source often states a total without naming all: a cast of 97 of whom it lists five. A count must say 97.
stated_total = Table(
    "stated_total",
    METADATA,
    # The rows that are counted, as `<domain>.<relation>`: movie.cast, movie.crew, movie.acted, movie.directed,
    # movie.oscars, music.works, music.members, music.grammys, finance.dividends.
    Column("relation", Text, primary_key=True),
    Column("entity_id", Text, primary_key=True),
    Column("total", BigInteger, nullable=False),
)

source = Table(
    "source",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("domain", Text, primary_key=True),
    # Of the files, so that loading the same again can be skipped.
    Column("digest", Text, nullable=False),
    Column("loaded_at", Text, nullable=False),
    # The last moment that the source knows of; facts of later questions may be stale, and are marked as such.
    Column("as_of", Text),
    Column("rows", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
)
