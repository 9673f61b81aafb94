"""The calls of the CRAG mock API for a program about films; the results of some lead to others."""

from typing import Any, Final

from services.kg.live.fill import Live, objects, record
from services.kg.load.values import text
from services.kg.store.names import Surface
from services.kit.concurrency import all_of

# Years of Oscars that the API has; others are an error.
OSCAR_YEARS: Final = range(1990, 2022)
MAX_FILMS = 150
_CREDITS = ("get_person", "get_movie_person_cast", "get_movie_person_crew")


async def fetch(live: Live) -> None:
    """Films and people by name, the nominations of the years, and the films of the people that are meant."""
    years = live.years(OSCAR_YEARS) if live.uses("get_movie_person_oscar", "get_year_movies") else []
    films, people, _ = await all_of(
        [
            live.call_each("movie/get_movie_info", "query", live.names("movie")),
            live.call_each("movie/get_person_info", "query", live.names("movie_person")),
            all_of(live.fetch("movie/get_year_info", query=str(year)) for year in years),
        ]
    )
    persons = [one for result in people for one in objects(result)]
    await live.put([record("movie/get_movie_info", one) for result in films for one in objects(result)])
    await live.put([record("movie/get_person_info", one) for one in persons])
    if live.uses(*_CREDITS):
        await _films_of(live, persons)


async def _films_of(live: Live, people: list[dict[str, Any]]) -> None:
    """The films of the people that are meant, who have them by identifier."""
    identifiers: list[int] = []
    surfaces = [
        Surface(str(one["id"]), str(one["name"]), float(len(one.get("acted_movies") or ())))
        for one in people
        if one.get("id") is not None and text(one.get("name"))
    ]
    for name in live.names("movie_person"):
        chosen = await live.choose("movie_person", name, surfaces)
        for one in people:
            if str(one.get("id")) in chosen:
                for key in ("directed_movies", "acted_movies"):
                    identifiers += [film for film in one.get(key) or () if isinstance(film, int)]
    unique = list(dict.fromkeys(identifiers))
    films = await live.call_each("movie/get_movie_info_by_id", "query", unique[:MAX_FILMS])
    await live.put([record("movie/get_movie_info_by_id", one) for one in films if isinstance(one, dict)])
