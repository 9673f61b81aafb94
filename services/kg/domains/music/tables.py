"""Tables of the music domain: artists, bands, works, Grammys and the Billboard Hot 100."""

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from services.kg.store.base import METADATA

artist = Table(
    "artist",
    METADATA,
    Column("artist_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # ISO 3166-1 alpha-2, or XW (worldwide), XE (Europe).
    Column("birth_place", Text),
    # Birth of a person, founding of a band.
    Column("begin_date", Text),
    Column("end_date", Text),
    Column("is_band", Boolean),
)

# Members present and past alike: sources do not tell them apart.
band_member = Table(
    "band_member",
    METADATA,
    Column("band_id", Text, primary_key=True),
    Column("member_name", Text, primary_key=True),
    Column("member_id", Text),
    Column("ord", Integer),
    Index("band_member_member", "member_id"),
)

# Songs and albums: sources mix them.
work = Table(
    "work",
    METADATA,
    Column("work_id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    # Song or album where the source says so.
    Column("kind", Text),
    Column("country", Text),
    Column("release_date", Text),
)

artist_work = Table(
    "artist_work",
    METADATA,
    Column("artist_id", Text, primary_key=True),
    Column("work_id", Text, primary_key=True),
    Index("artist_work_work", "work_id"),
)

grammy = Table(
    "grammy",
    METADATA,
    Column("grammy_id", Text, primary_key=True),
    # As sources count: the 61st Grammys are of 2018, and were given in February 2019.
    Column("year", Integer, nullable=False),
    Column("edition", Integer),
    Column("category", Text, nullable=False),
    # best_new_artist, best_album, best_song, best_record, or a slug of the category.
    Column("category_key", Text, nullable=False),
    # The song, album or person that was nominated.
    Column("nominee", Text),
    Column("artist", Text),
    Column("workers", Text),
    Column("winner", Boolean, nullable=False),
    Column("work_id", Text),
    Index("grammy_year", "year", "category_key"),
    Index("grammy_work", "work_id"),
)

# An artist by exact name among nominee, artists and workers; a substring would count Prince for Prince Royce.
grammy_artist = Table(
    "grammy_artist",
    METADATA,
    Column("grammy_id", Text, primary_key=True),
    Column("artist_id", Text, primary_key=True),
    Index("grammy_artist_artist", "artist_id"),
)

billboard = Table(
    "billboard",
    METADATA,
    # The chart's week, by its date.
    Column("date", Text, primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("song", Text, nullable=False),
    Column("artist", Text, nullable=False),
    # Null for a new entry.
    Column("rank_last_week", Integer),
    Column("top_position", Integer),
    Column("weeks_in_chart", Integer),
    Column("work_id", Text),
    Index("billboard_work", "work_id", "date"),
)
