"""Oscars, which a mapping cannot describe: one award has many names, and people stand in free text."""

import math

from sqlalchemy import and_, exists, select, update

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
# The place of a credit without one: after all others.
UNPLACED = 9_999


def oscar(writer: Writer, columns: Row) -> None:
    """Put a nomination, tied to the film by title and year and to its people by name.

    Raises:
        BadRow: it has no year or category.
    """
    year = whole(needed(columns, "year"), "year") or 0
    category, nominee, film = needed(columns, "category"), text(columns.get("nominee")), text(columns.get("film"))
    key, ceremony = CATEGORIES.code(category, year), whole(columns.get("ceremony"), "ceremony") or year - _BEFORE_FIRST
    film_year = whole(columns.get("film_year"), "film_year") or year - 1
    # The same in every source.
    identifier = f"{ceremony}/{key}/{slug(film or '')}/{slug(nominee or '')}"
    if (columns.get("occurrence") or 1) > 1:
        identifier += f"/{columns['occurrence']}"
    row = {
        "oscar_id": identifier,
        "year": year,
        "film_year": film_year,
        "ceremony": ceremony,
        "category": category.upper() if category.islower() else category,
        "category_key": key,
        "nominee": nominee,
        "film": film,
        "winner": truth(columns.get("winner"), "winner"),
        "movie_id": writer.registry.find(Mention("movie", film, near=film_year)) if film else None,
    }
    writer.graph.put("oscar", row)
    # The nominee of an international feature is a country.
    for name in () if key == "international_feature" else nominees(nominee or ""):
        person = writer.registry.make(Mention("movie_person", name, fill=True))
        writer.graph.put("oscar_nominee", {"oscar_id": identifier, "person_id": person})


def after(graph: Graph, moment: str | None) -> None:
    """Remove credits without a place if there are others with one, and tie nominations to films that came later."""
    cast = graph.tables["movie_cast"]
    placed = cast.alias()
    same = and_(placed.c.movie_id == cast.c.movie_id, placed.c.person_id == cast.c.person_id)
    graph.connection.execute(
        cast.delete().where(cast.c.ord == UNPLACED, exists().where(same, placed.c.ord != UNPLACED))
    )
    _tie_oscars(graph)


def _tie_oscars(graph: Graph) -> None:
    oscars, movie = graph.tables["oscar"], graph.tables["movie"]
    untied = graph.connection.execute(
        select(oscars.c.oscar_id, oscars.c.film, oscars.c.film_year, oscars.c.year).where(
            oscars.c.movie_id.is_(None), oscars.c.film.is_not(None)
        )
    ).all()
    if not untied:
        return
    films: dict[str, list[tuple[str, int]]] = {}
    dated = select(movie.c.movie_id, movie.c.title, movie.c.release_date).where(movie.c.release_date.is_not(None))
    for identifier, title, released in graph.connection.execute(dated):
        films.setdefault(slug(title), []).append((identifier, int(released[:4])))
    for oscar_id, film, film_year, year in untied:
        distances = [(abs(made - (film_year or year - 1)), movie_id) for movie_id, made in films.get(slug(film), [])]
        distance, nearest = min(distances, default=(math.inf, ""))
        if distance <= 1:
            graph.connection.execute(update(oscars).where(oscars.c.oscar_id == oscar_id).values(movie_id=nearest))


RECORDS: dict[str, Put] = {"oscar": oscar}
