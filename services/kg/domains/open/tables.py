"""Tables of the open domain: Wikipedia-like entities with a summary and the facts of an infobox."""

from sqlalchemy import Column, Integer, Table, Text

from services.kg.store.base import METADATA

open_entity = Table(
    "open_entity",
    METADATA,
    # The page's title.
    Column("entity", Text, primary_key=True),
    Column("summary", Text),
)

open_fact = Table(
    "open_fact",
    METADATA,
    Column("entity", Text, primary_key=True),
    # Of an infobox, lower case with underscores: birth_place.
    Column("key", Text, primary_key=True),
    # Plain text: links, templates, references and markup are resolved when it is loaded.
    Column("value", Text, nullable=False),
    Column("ord", Integer, nullable=False),
)
