"""Films, their casts and crews, and the Oscars."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Integer, case, cast, exists, func, select

from services.kg.domains.movie import oscars
from services.kg.domains.movie.tables import (
    movie,
    movie_cast,
    movie_crew,
    movie_genre,
    movie_person,
    oscar,
    oscar_nominee,
)
from services.kg.language.catalogue import Domain, Facet, Function, Key, Parameter, Preset
from services.kg.language.tree import Operator
from services.kg.outcome import Outcome

YEAR = cast(func.substr(movie.c.release_date, 1, 4), Integer)
GENRES = (
    select(func.aggregate_strings(movie_genre.c.genre, ", "))
    .where(movie_genre.c.movie_id == movie.c.movie_id)
    .scalar_subquery()
)
FILM = (
    movie.c.movie_id.label("_movie_id"),
    movie.c.title,
    movie.c.original_title,
    movie.c.original_language,
    movie.c.release_date,
    YEAR.label("year"),
    movie.c.budget,
    movie.c.revenue,
    (movie.c.revenue - movie.c.budget).label("profit"),
    movie.c.rating,
    movie.c.length,
    GENRES.label("genres"),
)


def _has_genre(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
    wanted = [str(value).lower().replace("_", " ") for value in values]
    found = exists().where(movie_genre.c.movie_id == c["_movie_id"], func.lower(movie_genre.c.genre).in_(wanted))
    return ~found if operator == "neq" else found


def _plays(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
    """A role is found in a longer credit, "Bruce Wayne / Batman", and never in an empty one."""
    clause: ColumnElement[bool] = func.lower(c["character"]).contains(str(values[0]).lower(), autoescape=True)
    for value in values[1:]:
        clause |= func.lower(c["character"]).contains(str(value).lower(), autoescape=True)
    return ~clause if operator == "neq" else clause


def _in_category(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
    """By the award meant, whatever the Academy called it in a year; a category nobody knows by its words."""
    keys = [key for value in values for key in oscars.find_category(str(value))]
    if keys:
        clause: ColumnElement[bool] = c["_category_key"].in_(keys)
    else:
        clause = func.lower(c["category"]).contains(str(values[0]).lower(), autoescape=True)
    return ~clause if operator == "neq" else clause


def _nominated(c: Any, people: tuple[Any, ...]) -> ColumnElement[bool]:
    return exists().where(oscar_nominee.c.oscar_id == c["_oscar_id"], oscar_nominee.c.person_id.in_(people))


FILM_KEYS = (
    Key("title", aliases=("movie_name", "movie", "film", "movie_title"), entity="movie", id_column="_movie_id"),
    Key("year", "integer", ("release_year", "movie_year"), label="year of release"),
    Key("release_date", "date", ("date", "released", "release")),
    Key(
        "revenue",
        "money",
        ("box_office", "boxoffice", "gross", "earnings", "worldwide_gross", "income"),
        label="box office revenue",
    ),
    Key("budget", "money", ("cost", "production_budget", "production_cost")),
    Key("profit", "money"),
    Key("rating", "number", ("score", "vote_average", "imdb_rating"), unit="of 10"),
    Key("length", "integer", ("runtime", "duration", "running_time"), unit="minutes"),
    Key("original_title", aliases=("official_title", "first_title")),
    Key("original_language", aliases=("language", "lang")),
    Key("genres", aliases=("genre",), compare=_has_genre),
)
NAME = Key("name", aliases=("person", "person_name", "actor", "actress"), entity="movie_person", id_column="_person_id")
FILM_PARAMETER = Parameter("movie", column="_movie_id", entities=("movie",))
PERSON_PARAMETER = Parameter("person", column="_person_id", entities=("movie_person",))

CAST = Function(
    "get_movie_person_cast",
    "movie",
    "who acted in a film, or which films a person acted in",
    (FILM_PARAMETER, PERSON_PARAMETER),
    select(
        *FILM,
        movie_person.c.person_id.label("_person_id"),
        movie_person.c.name,
        movie_person.c.birthday,
        movie_cast.c.character,
        movie_cast.c.gender,
        movie_cast.c.ord.label("order"),
    ).select_from(
        movie_cast.join(movie, movie.c.movie_id == movie_cast.c.movie_id).join(
            movie_person, movie_person.c.person_id == movie_cast.c.person_id
        )
    ),
    (
        NAME,
        Key("character", aliases=("role", "part", "plays", "character_name"), compare=_plays),
        Key("order", "integer", ("billing",), label="place in the credits"),
        Key("gender", "integer"),
        Key("birthday", "date", ("birth_date", "born", "dob")),
        *FILM_KEYS,
    ),
    subject=("title", "year", "name"),
    default=("name", "character"),
    default_of={"person": ("title", "release_date")},
    order=("order",),
    pair=("movie", "person"),
    totals={"movie": "movie.cast", "person": "movie.acted"},
    conditioned=True,
    event="release_date",
    aliases=("get_movie_cast", "get_cast"),
)
CREW = Function(
    "get_movie_person_crew",
    "movie",
    "who worked behind a film as Director, Producer, Writer ..., or the films of such a person",
    (FILM_PARAMETER, PERSON_PARAMETER),
    select(
        *FILM,
        movie_person.c.person_id.label("_person_id"),
        movie_person.c.name,
        movie_person.c.birthday,
        movie_crew.c.job,
    ).select_from(
        movie_crew.join(movie, movie.c.movie_id == movie_crew.c.movie_id).join(
            movie_person, movie_person.c.person_id == movie_crew.c.person_id
        )
    ),
    (
        NAME,
        Key("job", aliases=("position", "department")),
        Key("birthday", "date", ("birth_date", "born", "dob")),
        *FILM_KEYS,
    ),
    subject=("title", "year", "name", "job"),
    default=("name", "job"),
    default_of={"person": ("title", "release_date")},
    order=("job", "name"),
    pair=("movie", "person"),
    totals={"movie": "movie.crew", "person": "movie.crewed", "person job=director": "movie.directed"},
    conditioned=True,
    event="release_date",
    aliases=("get_movie_crew", "get_crew"),
)
OSCARS = Function(
    "get_movie_person_oscar",
    "movie",
    "Oscar nominations and wins, by film, person, year of the ceremony, category",
    (replace(FILM_PARAMETER, text_column="film"), Parameter("person", entities=("movie_person",), clause=_nominated)),
    select(
        oscar.c.oscar_id.label("_oscar_id"),
        oscar.c.movie_id.label("_movie_id"),
        oscar.c.category_key.label("_category_key"),
        oscar.c.year,
        oscar.c.film_year,
        oscar.c.ceremony,
        oscar.c.category,
        oscar.c.nominee.label("name"),
        oscar.c.film,
        case((oscar.c.winner, 1), else_=0).label("winner"),
    ),
    (
        Key("name", aliases=("nominee", "person", "winner_name", "actor", "actress"), entity="movie_person"),
        Key("film", aliases=("movie", "title", "movie_name"), entity="movie", id_column="_movie_id"),
        Key("year", "integer", ("year_ceremony", "ceremony_year"), label="year of the ceremony"),
        Key("film_year", "integer", ("year_film",)),
        Key("ceremony", "integer", ("ceremony_number", "edition")),
        Key("category", aliases=("award", "oscar"), compare=_in_category),
        Key("winner", "flag", ("won", "win")),
    ),
    subject=("film", "year", "category", "name", "winner"),
    default=("name", "film", "category", "winner"),
    order=("-winner", "-year", "category"),
    totals={"person": "movie.oscars", "movie": "movie.film_oscars"},
    narrates=True,
    conditioned=True,
    aliases=("get_movie_person_year_oscar", "get_oscar", "get_movie_oscar"),
)
FILMS = Function(
    "get_movie",
    "movie",
    "a film's release date, box office, budget, length, rating, language, original title, genres; ALL for a series",
    (replace(FILM_PARAMETER, series=True),),
    select(*FILM),
    FILM_KEYS,
    subject=("title", "year"),
    default=("title", "release_date", "revenue", "budget", "rating", "length", "original_language", "genres"),
    order=("release_date",),
    facets={
        "cast": Facet("get_movie_person_cast", ("name", "character"), aliases=("actors", "stars", "starring")),
        "crew": Facet("get_movie_person_crew", ("name", "job")),
        "director": Facet("get_movie_person_crew", ("name",), (Preset("job", "Director"),), aliases=("directors",)),
        "producer": Facet("get_movie_person_crew", ("name",), (Preset("job", "Producer"),), aliases=("producers",)),
        "oscar_awards": Facet("get_movie_person_oscar", aliases=("oscars", "awards")),
    },
)
PEOPLE = Function(
    "get_person",
    "movie",
    "birthday of an actor, director or other film person",
    (Parameter("person", column="_person_id", entities=("movie_person",), required=True),),
    select(movie_person.c.person_id.label("_person_id"), movie_person.c.name, movie_person.c.birthday),
    (NAME, Key("birthday", "date", ("birth_date", "born", "dob", "age", "birth", "date_of_birth", "birth_year"))),
    subject=("name",),
    default=("birthday",),
    facets={
        "acted_movies": Facet("get_movie_person_cast", ("title",), aliases=("movies", "films", "filmography")),
        "directed_movies": Facet("get_movie_person_crew", ("title",), (Preset("job", "Director"),)),
        "oscar_awards": Facet("get_movie_person_oscar", aliases=("oscars", "awards")),
    },
    aliases=("get_movie_person",),
)
YEAR_FILMS = Function(
    "get_year_movies",
    "movie",
    "films that came out in a year",
    (Parameter("year", "integer", "year", required=True),),
    select(*FILM),
    FILM_KEYS,
    subject=("title", "year"),
    default=("title",),
    order=("release_date", "title"),
    totals={"year": "movie.year"},
    aliases=("get_movies_in_year",),
)


def describe(function: str, row: Mapping[str, Any]) -> str:
    """A row's subject in words."""
    if function == "get_person":
        return str(row["name"])
    if function == "get_movie_person_oscar":
        how = "won" if row.get("winner") else "was nominated for"
        film = f' for "{row["film"]}"' if row.get("film") else ""
        return f"{row['name']} {how} the {row['year']} Oscar ({row['category']}){film}"
    title = f'"{row["title"]}" ({row["year"] or "year unknown"})'
    return f"the film {title}"


def lead(outcome: Outcome) -> str:
    """What a statement's rows are in words."""
    films = [f'"{entity.surface}"' for entity in outcome.entities if entity.kind == "movie"]
    people = [entity.surface for entity in outcome.entities if entity.kind == "movie_person"]
    both = " and ".join(films), " and ".join(people)
    jobs = {str(row["job"]) for row in outcome.rows if row.get("job")}
    match outcome.function.name if outcome.function else "":
        case "get_movie_person_cast" if films and people:
            return f"roles of {both[1]} in {both[0]}"
        case "get_movie_person_cast" if people:
            return f"films in which {both[1]} {'both ' if len(people) > 1 else ''}acted"
        case "get_movie_person_cast":
            return f"actors in {'both ' if len(films) > 1 else ''}{both[0] or 'the films'}"
        case "get_movie_person_crew" if people:
            job = f" as {', '.join(sorted(jobs))}" if 0 < len(jobs) < 4 else ""
            return f"films that {both[1]} worked on{job}"
        case "get_movie_person_crew":
            job = f"{', '.join(sorted(jobs))}" if 0 < len(jobs) < 4 else "crew"
            return f"{job} of {both[0] or 'the films'}"
        case "get_movie_person_oscar":
            return f"Oscar nominations and wins{' of ' + (both[1] or both[0]) if people or films else ''}"
        case "get_person":
            return f"the film person {both[1]}"
        case _:
            return f"films{' named ' + both[0] if films else ''}"


DOMAIN = Domain(
    "movie",
    "films, their casts and crews, box office, Oscars",
    (FILMS, PEOPLE, CAST, CREW, OSCARS, YEAR_FILMS),
    describe,
    lead,
)
