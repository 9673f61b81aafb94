"""Tables of the movie domain: films, people, casts, crews and Oscars."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, Table, Text

from services.kg.store.base import METADATA

movie = Table(
    "movie",
    METADATA,
    Column("movie_id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("original_title", Text),
    # ISO 639-1.
    Column("original_language", Text),
    Column("release_date", Text),
    # US dollars; null where the source has 0, which is its word for unknown.
    Column("budget", BigInteger),
    Column("revenue", BigInteger),
    # 0 to 10.
    Column("rating", Float),
    # Minutes.
    Column("length", Integer),
    Index("movie_release", "release_date"),
)

movie_genre = Table(
    "movie_genre",
    METADATA,
    Column("movie_id", Text, primary_key=True),
    Column("genre", Text, primary_key=True),
)

movie_person = Table(
    "movie_person",
    METADATA,
    Column("person_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("birthday", Text),
)

movie_cast = Table(
    "movie_cast",
    METADATA,
    Column("movie_id", Text, primary_key=True),
    Column("person_id", Text, primary_key=True),
    # Position in the credits, 0 first.
    Column("ord", Integer, primary_key=True),
    Column("character", Text),
    # 1 female, 2 male, 0 or null unknown.
    Column("gender", Integer),
    Index("movie_cast_person", "person_id"),
)

movie_crew = Table(
    "movie_crew",
    METADATA,
    Column("movie_id", Text, primary_key=True),
    Column("person_id", Text, primary_key=True),
    Column("job", Text, primary_key=True),
    Index("movie_crew_person", "person_id"),
)

oscar = Table(
    "oscar",
    METADATA,
    Column("oscar_id", Text, primary_key=True),
    # Of the ceremony; the films are of the year before.
    Column("year", Integer, nullable=False),
    Column("film_year", Integer),
    Column("ceremony", Integer),
    # As the Academy wrote it that year.
    Column("category", Text, nullable=False),
    # One slug for all names that an award had over the years: see `oscars.category_key`.
    Column("category_key", Text, nullable=False),
    Column("nominee", Text),
    Column("film", Text),
    Column("winner", Boolean, nullable=False),
    Column("movie_id", Text),
    Index("oscar_year", "year", "category_key"),
    Index("oscar_movie", "movie_id"),
)

# "A, B and C" share one nomination.
oscar_nominee = Table(
    "oscar_nominee",
    METADATA,
    Column("oscar_id", Text, primary_key=True),
    Column("person_id", Text, primary_key=True),
    Index("oscar_nominee_person", "person_id"),
)
