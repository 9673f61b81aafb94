"""After a load: ties between sources that came in either order.

A source without identifiers names a film "heat-1995-12-15"; a later one numbers it 949. The first becomes the second
here, with all that refers to it, and nominations find films that were loaded after them.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Column, Connection, Table, and_, exists, func, select, update

from services.kg.domains.movie.tables import (
    movie,
    movie_cast,
    movie_crew,
    movie_genre,
    movie_person,
    oscar,
    oscar_nominee,
)
from services.kg.load.identity import movie_id as slug_movie_id
from services.kg.load.identity import slug
from services.kg.store.tables import stated_total

# Columns that hold an identifier of the kind, and the relations of `stated_total` that do.
_FILM_COLUMNS: Sequence[Column[str]] = (
    movie_cast.c.movie_id,
    movie_crew.c.movie_id,
    movie_genre.c.movie_id,
    oscar.c.movie_id,
)
_PERSON_COLUMNS: Sequence[Column[str]] = (movie_cast.c.person_id, movie_crew.c.person_id, oscar_nominee.c.person_id)
_ATTRIBUTES = {movie: ("release_date", "original_title", "original_language", "budget", "revenue", "rating", "length"),
               movie_person: ("birthday",)}  # fmt: skip


def reconcile(connection: Connection, domains: Iterable[str]) -> None:
    """Tie what belongs together in those domains."""
    if "movie" in domains:
        _merge_films(connection)
        _merge_people(connection)
        _tie_oscars(connection)


def _merge_films(connection: Connection) -> None:
    numbered = _numbered(connection, movie, movie.c.movie_id)
    if not numbered:
        return
    films: dict[tuple[str, str | None], str] = {}
    named: list[tuple[str, str, str | None]] = []
    for identifier, title, released in connection.execute(
        select(movie.c.movie_id, movie.c.title, movie.c.release_date)
    ):
        if identifier.isdecimal():
            films[slug(title), released] = identifier
            # One without a date is whichever there is, if there is but one.
            key = (slug(title), None)
            films[key] = "" if key in films else identifier
        elif identifier in {slug_movie_id(title, released), slug(title)}:
            named.append((identifier, title, released))
    for identifier, title, released in named:
        target = films.get((slug(title), released))
        if target:
            _become(connection, movie, movie.c.movie_id, _FILM_COLUMNS, identifier, target)


def _merge_people(connection: Connection) -> None:
    if not _numbered(connection, movie_person, movie_person.c.person_id):
        return
    people: dict[str, str] = {}
    named: list[tuple[str, str]] = []
    for identifier, surface in connection.execute(select(movie_person.c.person_id, movie_person.c.name)):
        if identifier.isdecimal():
            people[slug(surface)] = "" if slug(surface) in people else identifier
        elif identifier == slug(surface):
            named.append((identifier, surface))
    for identifier, surface in named:
        target = people.get(slug(surface))
        if target:
            _become(connection, movie_person, movie_person.c.person_id, _PERSON_COLUMNS, identifier, target)


def _numbered(connection: Connection, table: Table, column: Column[str]) -> bool:
    """Whether a source has numbered them; slugs that begin with a digit hold a letter or a hyphen too."""
    return any(
        identifier.isdecimal()
        for identifier in connection.scalars(select(column).where(func.substr(column, 1, 1).between("0", "9")))
    )


def _become(
    connection: Connection, table: Table, key: Column[str], columns: Sequence[Column[str]], old: str, new: str
) -> None:
    """One entity becomes another: rows that both have stay as the other's, and what only it knows fills gaps."""
    for column in columns:
        holder = column.table
        others = [other for other in holder.primary_key if other.name != column.name]
        twin = holder.alias()
        if column.primary_key:
            same = and_(twin.c[column.name] == new, *(twin.c[one.name] == holder.c[one.name] for one in others))
            connection.execute(holder.delete().where(column == old, exists().where(same)))
        connection.execute(update(holder).where(column == old).values({column.name: new}))
    taken = select(stated_total.c.relation).where(stated_total.c.entity_id == new).scalar_subquery()
    mine = stated_total.c.relation.startswith("movie.")
    connection.execute(
        stated_total.delete().where(stated_total.c.entity_id == old, mine, stated_total.c.relation.in_(taken))
    )
    connection.execute(update(stated_total).where(stated_total.c.entity_id == old, mine).values(entity_id=new))
    row = connection.execute(select(table).where(key == old)).mappings().one()
    gaps = {name: func.coalesce(table.c[name], row[name]) for name in _ATTRIBUTES[table] if row[name] is not None}
    if gaps:
        connection.execute(update(table).where(key == new).values(gaps))
    connection.execute(table.delete().where(key == old))


def _tie_oscars(connection: Connection) -> None:
    films: dict[str, list[tuple[str, int]]] | None = None
    open_rows = connection.execute(
        select(oscar.c.oscar_id, oscar.c.film, oscar.c.film_year, oscar.c.year).where(
            oscar.c.movie_id.is_(None), oscar.c.film.is_not(None)
        )
    ).all()
    for identifier, film, film_year, year in open_rows:
        if films is None:
            films = {}
            for key, title, released in connection.execute(
                select(movie.c.movie_id, movie.c.title, movie.c.release_date).where(movie.c.release_date.is_not(None))
            ):
                films.setdefault(slug(title), []).append((key, int(released[:4])))
        wanted = film_year or year - 1
        near = sorted((abs(made - wanted), key) for key, made in films.get(slug(film), []))
        if near and near[0][0] <= 1:
            connection.execute(update(oscar).where(oscar.c.oscar_id == identifier).values(movie_id=near[0][1]))
