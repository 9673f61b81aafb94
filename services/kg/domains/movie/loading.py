"""Oscars as sources write them, which data cannot say: one award under many names, people within free text."""

from sqlalchemy import Connection, exists, select, update

from services.kg.definition.vocabulary import Vocabulary
from services.kg.domains import CATALOGUE
from services.kg.domains.credits import nominees
from services.kg.load.graph import Graph, Row
from services.kg.load.identity import slug
from services.kg.load.mapper import Put
from services.kg.load.reading import Writer
from services.kg.load.registry import Mention
from services.kg.load.values import needed, text, truth, whole

CATEGORIES = CATALOGUE.domains["movie"].folder.model("categories.yaml", Vocabulary)[0]
# The 76th ceremony was held in 2004; they are yearly since 1935.
_BEFORE_FIRST = 1928
# A place in the credits that is not stated: after all that are.
UNPLACED = 9_999


def oscar(writer: Writer, stated: Row) -> None:
    """One nomination, tied to the film by title and year and to its people by name.

    Raises:
        BadRow: it has no year or category.
    """
    year = whole(needed(stated, "year"), "year") or 0
    category, nominee, film = needed(stated, "category"), text(stated.get("nominee")), text(stated.get("film"))
    key, ceremony = CATEGORIES.code(category, year), whole(stated.get("ceremony"), "ceremony") or year - _BEFORE_FIRST
    film_year = whole(stated.get("film_year"), "film_year") or year - 1
    # Two sources that report a nomination write one row.
    identifier = f"{ceremony}/{key}/{slug(film or '')}/{slug(nominee or '')}"
    if (stated.get("occurrence") or 1) > 1:
        identifier += f"/{stated['occurrence']}"
    row = {
        "oscar_id": identifier,
        "year": year,
        "film_year": film_year,
        "ceremony": ceremony,
        "category": category.upper() if category.islower() else category,
        "category_key": key,
        "nominee": nominee,
        "film": film,
        "winner": truth(stated.get("winner"), "winner"),
        "movie_id": writer.registry.find(Mention("movie", film, near=film_year)) if film else None,
    }
    writer.graph.put("oscar", row)
    # There the nominee is a country.
    for name in () if key == "international_feature" else nominees(nominee or ""):
        person = writer.registry.make(Mention("movie_person", name, fill=True))
        writer.graph.put("oscar_nominee", {"oscar_id": identifier, "person_id": person})


def after(graph: Graph, moment: str | None) -> None:
    """Once all is read: credits without a place give way to those with one, and nominations find films read later."""
    connection, cast = graph.connection, graph.tables["movie_cast"]
    placed = cast.alias()
    connection.execute(
        cast.delete().where(
            cast.c.ord == UNPLACED,
            exists().where(
                placed.c.movie_id == cast.c.movie_id, placed.c.person_id == cast.c.person_id, placed.c.ord != UNPLACED
            ),
        )
    )
    _tie_oscars(graph, connection)


def _tie_oscars(graph: Graph, connection: Connection) -> None:
    oscars, movie = graph.tables["oscar"], graph.tables["movie"]
    films: dict[str, list[tuple[str, int]]] | None = None
    untied = select(oscars.c.oscar_id, oscars.c.film, oscars.c.film_year, oscars.c.year).where(
        oscars.c.movie_id.is_(None), oscars.c.film.is_not(None)
    )
    for identifier, film, film_year, year in connection.execute(untied).all():
        if films is None:
            films = {}
            dated = select(movie.c.movie_id, movie.c.title, movie.c.release_date).where(
                movie.c.release_date.is_not(None)
            )
            for key, title, released in connection.execute(dated):
                films.setdefault(slug(title), []).append((key, int(released[:4])))
        made_near = sorted((abs(made - (film_year or year - 1)), key) for key, made in films.get(slug(film), []))
        if made_near and made_near[0][0] <= 1:
            tied = update(oscars).where(oscars.c.oscar_id == identifier).values(movie_id=made_near[0][1])
            connection.execute(tied)


RECORDS: dict[str, Put] = {"oscar": oscar}
