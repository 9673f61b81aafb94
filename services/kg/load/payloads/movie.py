"""Films and people as the CRAG mock API and its files hold them."""

from collections.abc import Mapping
from typing import Any

from services.kg.domains.movie.tables import movie, movie_cast, movie_crew, movie_genre, movie_person
from services.kg.load.errors import BadRow
from services.kg.load.graph import UNPLACED, Graph
from services.kg.load.payloads.awards import put_oscar
from services.kg.load.values import day, items, needed, number, positive, text, truth, whole
from services.kg.store.tables import stated_total


def put_movie(graph: Graph, stated: Mapping[str, Any]) -> str:
    """A film with its genres, cast, crew and nominations. Its identifier.

    Raises:
        BadRow: it has no identifier or title, or a value of the wrong type.
    """
    identifier, title = needed(stated, "id"), needed(stated, "title")
    released = day(stated.get("release_date"), "release_date")
    graph.put(
        movie,
        movie_id=identifier,
        title=title,
        original_title=text(stated.get("original_title")),
        original_language=text(stated.get("original_language")),
        release_date=released,
        budget=positive(stated.get("budget"), "budget"),
        revenue=positive(stated.get("revenue"), "revenue"),
        rating=number(stated.get("rating"), "rating") or None,
        length=positive(stated.get("length"), "length"),
    )
    graph.know_film(identifier, title, released)
    for genre in items(stated.get("genres"), "genres"):
        name = text(genre.get("name") if isinstance(genre, Mapping) else genre)
        if name:
            graph.put(movie_genre, movie_id=identifier, genre=name)
    for member in items(stated.get("cast"), "cast"):
        person = _member(graph, member)
        if person:
            order = whole(member.get("order"), "order")
            graph.put(
                movie_cast,
                movie_id=identifier,
                person_id=person,
                ord=UNPLACED if order is None else order,
                character=text(member.get("character")),
                gender=whole(member.get("gender"), "gender"),
            )
    for member in items(stated.get("crew"), "crew"):
        person = _member(graph, member)
        if person:
            graph.put(movie_crew, movie_id=identifier, person_id=person, job=text(member.get("job")) or "Crew")
    for award in items(stated.get("oscar_awards"), "oscar_awards"):
        put_oscar_award(graph, award)
    return identifier


def _member(graph: Graph, stated: object) -> str | None:
    if not isinstance(stated, Mapping):
        return None
    identifier, name = text(stated.get("id")), text(stated.get("name"))
    if identifier is None or name is None:
        return None
    # A person's own entry has the better spelling.
    graph.put(movie_person, weak=True, person_id=identifier, name=name)
    graph.know(movie_person, identifier, name)
    return identifier


def put_person(graph: Graph, stated: Mapping[str, Any], *, credits: bool = False) -> str:
    """A person, with how many films they acted in and directed. Their identifier.

    Args:
        credits: tie the person to the films by identifier too, for when the films' own casts are not at hand.

    Raises:
        BadRow: there is no identifier or name.
    """
    identifier, name = needed(stated, "id"), needed(stated, "name")
    graph.put(movie_person, person_id=identifier, name=name, birthday=day(stated.get("birthday"), "birthday"))
    graph.know(movie_person, identifier, name)
    for key, relation in (("acted_movies", "movie.acted"), ("directed_movies", "movie.directed")):
        films = {film for film in (text(one) for one in items(stated.get(key), key)) if film}
        if films:
            graph.put(stated_total, relation=relation, entity_id=identifier, total=len(films))
        for film in sorted(films) if credits else ():
            if key == "acted_movies":
                graph.put(movie_cast, movie_id=film, person_id=identifier, ord=UNPLACED)
            else:
                graph.put(movie_crew, movie_id=film, person_id=identifier, job="Director")
    for award in items(stated.get("oscar_awards"), "oscar_awards"):
        put_oscar_award(graph, award)
    return identifier


def put_oscar_award(graph: Graph, stated: object) -> None:
    """One nomination.

    Raises:
        BadRow: it has no year or category.
    """
    if not isinstance(stated, Mapping):
        raise BadRow("oscar_awards", "is no list of objects")
    year = whole(stated.get("year_ceremony"), "year_ceremony")
    if year is None:
        raise BadRow("year_ceremony", "is missing")
    put_oscar(
        graph,
        year=year,
        ceremony=whole(stated.get("ceremony"), "ceremony"),
        category=needed(stated, "category"),
        nominee=text(stated.get("name")),
        film=text(stated.get("film")),
        winner=truth(stated.get("winner"), "winner"),
    )


def put_year(graph: Graph, stated: Mapping[str, Any]) -> None:
    """The nominations of a year; its list of films says only their identifiers."""
    for award in items(stated.get("oscar_awards"), "oscar_awards"):
        put_oscar_award(graph, award)
        graph.seen("movie", text(award.get("year_ceremony")))
